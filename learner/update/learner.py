"""One learner step: rows in, new weights and metrics out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from learner.losses import Totals
from learner.losses.corrections import entropy_bonus
from learner.losses.types import token_statistics
from learner.types import Row
from learner.update.batches import (
    MicroBatch,
    Minibatch,
    collate,
    fresh_rows,
    micro_batches,
    no_row,
    sharing_rows,
    stars,
    unit_tokens,
)
from learner.update.config import LearnerConfig
from learner.update.forward import (
    CHECKPOINTING,
    CompiledLayers,
    action_logprobs,
    check_sharing,
    compute_type,
    reading,
    train_only_checkpointed_layers,
)
from learner.update.optimizer import adamw, settings_of, update_per_lr
from learner.update.ranks import ALONE, Ranks, deal, whole
from learner.update.reference import Reference
from learner.update.steps import Steps, totals_of
from learner.update.tally import Tally, WorstTokens, floats, sizes


class Learner(Steps):
    """A causal language model (transformers or peft) with its optimizer, schedule and reference.

    By default the reference (``learner.update.reference``) is the model at construction: build the learner
    before loading a checkpoint's weights, or pass a ``reference`` with full weights. Only parameters that
    require a gradient are trained.

    With several ``ranks``, the model and its reference are sharded (``learner.update.shards``). All ranks
    call the same methods with the same rows. Each rank learns from its part of the rows; updates and metrics
    are over all ranks.
    """

    def __init__(
        self,
        model: nn.Module,
        config: LearnerConfig,
        *,
        total_steps: int | None = None,
        reference: nn.Module | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(config, total_steps)
        self.model, self.ranks = model, ranks
        self._shares: bool | None = None if config.share_prefixes else False  # None until it was checked
        self._passes = 0, 0
        self.reference = Reference(model, reference) if config.needs_reference else None
        self.compute = compute_type(model, config.compute)
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        check_dtypes(self.parameters)
        check_products(self.compute, self.parameters)
        models = (model, self.reference.module if self.reference else None) if config.compile else ()
        self._compiled = CompiledLayers(*models)
        if config.gradient_checkpointing is True:  # only in training mode, so sampling is unchanged
            checkpointing: Any = model
            checkpointing.gradient_checkpointing_enable(CHECKPOINTING)
        self.optimizer = adamw(self.parameters, config)
        half = any(parameter.dtype == torch.float16 for parameter in model.parameters())
        self.scaler = torch.amp.GradScaler(self.parameters[0].device.type, enabled=half)

    def step(self, rows: Sequence[Row]) -> dict[str, float]:
        """Update the weights ``epochs * minibatches`` times (fewer with few rows) and return the metrics.

        ``mismatch_*`` compare trainer and sampler before the first update. ``kl_*`` are relative to the
        reference. An update whose gradient is not finite is skipped and counted in ``skipped_updates``. A
        step with only such updates is bad.
        """
        tally, self.worst = Tally(), WorstTokens()
        lr, refreshed = self._set_lr(), self._refreshed_reference()
        rows, ages = fresh_rows(rows, self.steps, self.config.max_staleness)
        checked = self._check_sharing(rows)
        sharing = bool(self._shares)
        minibatches = self._minibatches(rows, sharing)
        self._passes = 0, self.config.epochs * sum(len(minibatch.batches) for minibatch in minibatches)
        self.advance(*self._passes)
        models = self.model, self.reference.module if self.reference else None
        with self._compiled.used(), reading(*models, share=sharing, compute=self.compute):
            self._before_updates(minibatches, tally)
            train_only_checkpointed_layers(self.model)
            try:
                outcomes = [
                    self._update(batch, tally) for _ in range(self.config.epochs) for batch in minibatches
                ]
            finally:  # an error must not leave gradients that a later step would add to
                self.model.eval()
                self.optimizer.zero_grad(set_to_none=True)
        updates = self._counted(outcomes, lr)
        scale = {"loss_scale": self.scaler.get_scale()} if self.scaler.is_enabled() else {}
        read = sum(minibatch.positions for minibatch in minibatches)
        counts = sizes(rows, sum(self.ranks.gathered(read)))
        return tally.result(self.ranks) | counts | ages | updates | scale | refreshed | checked

    @torch.no_grad()
    def logprobs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probabilities (B, T) of the rows' actions under the current weights; 0 elsewhere."""
        batch = collate(rows, device=self.parameters[0].device)
        with reading(self.model, share=False, compute=self.compute):
            return self._logprobs(self.model, batch)[0].cpu()

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs in addition to the weights."""
        state = {"optimizer": self.optimizer.state_dict(), "steps": self.steps, "bad_steps": self.bad_steps}
        state["scaler"] = self.scaler.state_dict()
        return state if self.reference is None else state | {"reference": self.reference.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from ``state_dict``, but keep this configuration's optimizer settings."""
        saved, own = state_dict["optimizer"], settings_of(self.parameters, self.config)
        groups = [group | own for group in saved["param_groups"]]
        self.optimizer.load_state_dict(saved | {"param_groups": groups})
        self.bad_steps = int(state_dict["bad_steps"])
        if state_dict["scaler"] and self.scaler.is_enabled():
            self.scaler.load_state_dict(state_dict["scaler"])
        if self.reference is not None and "reference" in state_dict:
            self.reference.load_state_dict(state_dict["reference"])
        self.steps = int(state_dict["steps"])

    def _refreshed_reference(self) -> dict[str, float]:
        """Refresh the reference if it is due, and return the step of its weights if refreshes are on."""
        every = self.config.reference_every
        if self.reference is None or not every:
            return {}
        if self.steps - self.reference.step >= every:
            self.reference.refresh(self.steps)
        return {"reference_step": float(self.reference.step)}

    def _set_lr(self) -> float:
        lr = super()._set_lr()
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        return lr

    def _minibatches(self, rows: Sequence[Row], share: bool) -> list[Minibatch]:
        """Return the rows as minibatches, shuffled by the seed and the step's number.

        With ``share_prefixes``, a star is never split between minibatches, whether its prefixes are shared or
        not.
        """
        order = self._shuffled(rows)
        units = stars(order) if self.config.share_prefixes else [[row] for row in order]
        parts = [units[start :: self.config.minibatches] for start in range(self.config.minibatches)]
        return [self._minibatch(part, share) for part in parts if part]

    def _minibatch(self, units: Sequence[list[Row]], share: bool) -> Minibatch:
        """Return this rank's part of the rows, with empty passes added so that all ranks make as many."""
        places = deal([unit_tokens(unit, share) for unit in units], self.ranks.count)[self.ranks.index]
        own = list(chain(*(units[place] for place in places)))
        batches = self._micro_batches(own, share)
        positions = sum(batch.positions for batch in batches)
        for _ in range(max(self.ranks.gathered(len(batches))) - len(batches)):
            batches += self._micro_batches([no_row()], share)
        return Minibatch(batches, totals_of(list(chain(*units))), positions)

    def _micro_batches(self, rows: Sequence[Row], share: bool) -> list[MicroBatch]:
        device = self.parameters[0].device
        return micro_batches(rows, self.config.micro_batch_tokens, device=device, share=share)

    def _logprobs(
        self, model: nn.Module, batch: MicroBatch, *, entropy_gradient: bool = False
    ) -> tuple[Tensor, Tensor]:
        return action_logprobs(model, batch, entropy_gradient=entropy_gradient, compute=self.compute)

    def _check_sharing(self, rows: Sequence[Row]) -> dict[str, float]:
        """Check with the first rows whether shared prefixes may be read once, and return the measurements."""
        some = sharing_rows(rows) if self._shares is None else []
        if len(some) < 2:
            return {}
        with self._compiled.used():
            most = self.config.micro_batch_tokens
            problem, found = check_sharing(
                self.model, some, max_tokens=most, compute=self.compute, ranks=self.ranks
            )
        self._shares = not problem
        if problem:
            warnings.warn(f"learner.share_prefixes: {problem}; every row is read separately", stacklevel=3)
        return found

    @torch.no_grad()
    def _before_updates(self, minibatches: Sequence[Minibatch], tally: Tally) -> None:
        """Fill in reference and old log-probabilities before the weights change.

        The first minibatch needs no extra pass for old log-probabilities: its first forward pass comes before
        any update.
        """
        self.model.eval()
        if self.reference is not None:
            with self.reference.model() as reference:
                for batch in chain(*(minibatch.batches for minibatch in minibatches)):
                    batch.ref = self._logprobs(reference, batch)[0]
        for index, minibatch in enumerate(minibatches):
            for batch in minibatch.batches if index else ():
                if self.config.old_logprobs == "sampling":
                    batch.old = batch.sampling_logprobs
                else:
                    batch.old = self._logprobs(self.model, batch)[0]
                    self._tally_mismatch(batch, batch.old, tally)

    def _update(self, minibatch: Minibatch, tally: Tally) -> bool:
        """Apply the gradient of all micro-batches. Return False if it was not finite and was skipped."""
        losses = [self._backward(batch, minibatch.totals, tally) for batch in minibatch.batches]
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.config.max_grad_norm)
        norm, *losses = floats([whole(norm), *losses])
        finite = math.isfinite(norm)
        if finite:
            self.halfway = True
            self.scaler.step(self.optimizer)
            clipped, loss = float(norm > self.config.max_grad_norm), sum(self.ranks.gathered(sum(losses)))
            tally.add({"loss": loss, "grad_norm": norm, "grad_norm_max": norm, "grad_clipped": clipped})
            tally.add({"update_per_lr": update_per_lr(self.optimizer, self.ranks)})
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return finite

    def _backward(self, batch: MicroBatch, totals: Totals, tally: Tally) -> Tensor:
        bonus = self.config.entropy_bonus
        logprobs, entropy = self._logprobs(self.model, batch, entropy_gradient=bonus > 0)
        self._look(batch, logprobs.detach(), tally)
        outputs = self._outputs(batch, logprobs, totals)
        loss = outputs.loss
        if bonus:
            loss = loss + entropy_bonus(entropy, bonus, totals)
        self.scaler.scale(loss).backward()
        done, total = self._passes
        self._passes = done + 1, total
        self.advance(done + 1, total)
        tally.add(outputs.metrics, weight=len(entropy))
        if len(entropy):
            every = torch.ones_like(entropy, dtype=torch.bool)
            tally.add(token_statistics("entropy", entropy, every), weight=len(entropy))
        return loss.detach()


def check_dtypes(parameters: Sequence[nn.Parameter]) -> None:
    """Refuse or warn about trained weights whose data type rounds small updates away."""
    dtypes = {parameter.dtype for parameter in parameters}
    cure = "set model.dtype to float32, or train an adapter (model.lora_rank)"
    if torch.float16 in dtypes:
        why = "small updates would be lost in rounding, and gradients cannot be scaled"
        raise ValueError(f"model.dtype=float16 with full weights: {why}; {cure}")
    if torch.bfloat16 in dtypes:
        why = "updates below 1/256 of a weight are lost in rounding"
        warnings.warn(f"model.dtype=bfloat16 with full weights: {why}; {cure}", stacklevel=4)


def check_products(compute: torch.dtype | None, parameters: Sequence[nn.Parameter]) -> None:
    """Warn about products in bfloat16 on a processor for which torch has no fast kernel of them."""
    mkldnn = torch.backends.mkldnn.is_available()
    if compute is not torch.bfloat16 or not mkldnn or any(one.device.type != "cpu" for one in parameters):
        return
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        why = "this processor has no fast products in bfloat16, so training may take ten times as long"
        warnings.warn(f"learner.compute=bfloat16: {why}; set auto", stacklevel=3)
