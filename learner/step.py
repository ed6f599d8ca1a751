"""One learner step: rows in, new weights, metrics out."""

from __future__ import annotations

import copy
import logging
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from debate.seeds import derive_seed
from learner.batches import MicroBatch, micro_batches
from learner.config_learner import LearnerConfig
from learner.forward import action_logprobs
from learner.losses import LossConfig, LossInputs, Totals, find_loss
from learner.losses.types import token_statistics
from learner.tally import Tally
from learner.types import Row

__all__ = ["Learner", "LearnerConfig", "lr_factor"]

log = logging.getLogger(__name__)


class Learner:
    """A causal language model (transformers or peft) with its optimizer, schedule and reference.

    The reference of a LoRA model is the model with its adapter off; of full weights, ``reference`` or a
    frozen copy made here. So build the learner before a checkpoint's weights are loaded, or pass the
    reference. Only parameters that require a gradient are trained.
    """

    def __init__(
        self,
        model: nn.Module,
        config: LearnerConfig,
        *,
        total_steps: int | None = None,
        reference: nn.Module | None = None,
    ) -> None:
        _check(config, total_steps)
        self.model = model
        self.config = config
        self.total_steps = total_steps
        self.steps = 0
        self.reference = reference
        if reference is None and config.needs_reference and not hasattr(model, "disable_adapter"):
            self.reference = copy.deepcopy(model).requires_grad_(False).eval()
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            self.parameters,
            lr=config.lr,
            betas=config.betas,
            eps=config.adam_eps,
            weight_decay=config.weight_decay,
        )
        self._loss = find_loss(config.loss)
        self._loss_config = LossConfig(
            eps=config.eps,
            eps_hi=config.eps_hi,
            beta=config.beta,
            max_tokens=config.max_tokens,
            beta_judge=config.beta_judge,
        )

    def step(self, rows: Sequence[Row]) -> dict[str, float]:
        """Update the weights ``epochs * minibatches`` times (fewer when rows are few); return the metrics.

        ``mismatch_*`` compare trainer and sampler before the first update; ``kl_*`` are towards the
        reference. An update whose gradient is not finite is left out and counted in ``skipped_updates``.
        """
        tally = Tally()
        lr = self._set_lr()
        minibatches = self._minibatches(rows)
        self._before_updates(minibatches, tally)
        self.model.train()
        outcomes = [self._update(batch, tally) for _ in range(self.config.epochs) for batch in minibatches]
        self.model.eval()
        self.steps += 1
        sizes = _sizes(rows, [batch for minibatch in minibatches for batch in minibatch])
        return (
            tally.result()
            | sizes
            | {
                "lr": lr,
                "updates": float(sum(outcomes)),
                "skipped_updates": float(len(outcomes) - sum(outcomes)),
            }
        )

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs beside the weights."""
        return {"optimizer": self.optimizer.state_dict(), "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a state from ``state_dict``."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.go_on(int(state["steps"]))

    def go_on(self, steps: int) -> None:
        """Go on after so many steps, with this configuration's settings and not those in the loaded state."""
        self.steps = steps
        config = self.config
        for group in self.optimizer.param_groups:
            group.update(betas=config.betas, eps=config.adam_eps, weight_decay=config.weight_decay)

    def _set_lr(self) -> float:
        factor = lr_factor(
            self.steps,
            warmup=self.config.warmup_steps,
            schedule=self.config.schedule,
            total=self.total_steps,
        )
        lr = self.config.lr * factor
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        return lr

    def _minibatches(self, rows: Sequence[Row]) -> list[list[MicroBatch]]:
        """Return the rows, shuffled by the seed and the step's number, as minibatches of micro-batches."""
        order = list(rows)
        Random(derive_seed(self.config.seed, "minibatches", self.steps)).shuffle(order)
        count = self.config.minibatches
        device = self.parameters[0].device
        parts = [order[start::count] for start in range(count)]
        return [micro_batches(part, self.config.micro_batch_tokens, device=device) for part in parts if part]

    @torch.no_grad()
    def _before_updates(self, minibatches: Sequence[Sequence[MicroBatch]], tally: Tally) -> None:
        """Fill in reference and old log-probabilities while the weights are still those that sampled.

        The first minibatch needs no pass of its own: its first forward pass comes before any update.
        """
        self.model.eval()
        for place, minibatch in enumerate(minibatches):
            for batch in minibatch:
                if self.config.needs_reference:
                    batch.ref = self._reference_logprobs(batch)
                if place == 0:
                    continue
                if self.config.old_logprobs == "sampling":
                    batch.old = batch.sampling_logprobs
                else:
                    batch.old = action_logprobs(self.model, batch)[0]
                    _tally_mismatch(batch, batch.old, tally)

    def _reference_logprobs(self, batch: MicroBatch) -> Tensor:
        if self.reference is not None:
            return action_logprobs(self.reference, batch)[0]
        model: Any = self.model
        with model.disable_adapter():
            return action_logprobs(model, batch)[0]

    def _update(self, minibatch: Sequence[MicroBatch], tally: Tally) -> bool:
        """Apply the gradient of all micro-batches; return False when it was not finite and was left out."""
        config = replace(self._loss_config, totals=_totals(minibatch))
        loss = sum(self._backward(batch, config, tally) for batch in minibatch)
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.config.max_grad_norm))
        finite = math.isfinite(norm)
        if finite:
            self.optimizer.step()
            clipped = float(norm > self.config.max_grad_norm)
            tally.add({"loss": loss, "grad_norm": norm, "grad_norm_max": norm, "grad_clipped": clipped})
        self.optimizer.zero_grad(set_to_none=True)
        return finite

    def _backward(self, batch: MicroBatch, config: LossConfig, tally: Tally) -> float:
        logprobs, entropy = action_logprobs(self.model, batch)
        if batch.old is None:
            _tally_mismatch(batch, logprobs.detach(), tally)
            from_sampler = self.config.old_logprobs == "sampling"
            batch.old = batch.sampling_logprobs if from_sampler else logprobs.detach()
        outputs = self._loss(_inputs(batch, logprobs, batch.old), config)
        outputs.loss.backward()
        tally.add(outputs.metrics, weight=len(entropy))
        tally.add(token_statistics("entropy", entropy, torch.ones_like(entropy)), weight=len(entropy))
        return float(outputs.loss.detach())


def lr_factor(step: int, *, warmup: int, schedule: str, total: int | None) -> float:
    """Return the share of the peak learning rate at a step (from 0), in [0, 1].

    Warm-up rises to 1 at step ``warmup - 1``; linear and cosine then fall to 0 at step ``total``.

    >>> [lr_factor(s, warmup=2, schedule="linear", total=6) for s in range(7)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    """
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant" or total is None:
        return 1.0
    progress = min((step - warmup) / max(total - warmup, 1), 1.0)
    return 1 - progress if schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2


def _check(config: LearnerConfig, total_steps: int | None) -> None:
    if config.schedule != "constant" and total_steps is None:
        raise ValueError(
            f"learner.schedule={config.schedule!r} needs the run's number of steps (total_steps)"
        )
    if config.loss == "dr_grpo" and config.max_tokens is None:
        raise ValueError("learner.loss='dr_grpo' needs learner.max_tokens, its constant divisor; got None")
    if config.loss == "dr_grpo":
        log.info("dr_grpo: gradients are about 5 times weaker than grpo's at the same learning rate")
    if config.adam_eps < 1e-6 and config.warmup_steps == 0:
        warnings.warn(
            f"learner.adam_eps={config.adam_eps} without warm-up is known to explode; "
            "set learner.adam_eps to 1e-5 or learner.warmup_steps to 30",
            stacklevel=3,
        )


def _totals(minibatch: Sequence[MicroBatch]) -> Totals:
    parts = [Totals.of(batch.mask) for batch in minibatch]
    return Totals(
        rows=sum(part.rows for part in parts),
        sequences=sum(part.sequences for part in parts),
        tokens=sum(part.tokens for part in parts),
    )


def _inputs(batch: MicroBatch, logprobs: Tensor, old: Tensor) -> LossInputs:
    return LossInputs(
        logprobs=logprobs,
        old_logprobs=old,
        sampling_logprobs=batch.sampling_logprobs,
        ref_logprobs=batch.ref,
        advantages=batch.advantages,
        mask=batch.mask,
        stream=batch.stream,
    )


def _tally_mismatch(batch: MicroBatch, logprobs: Tensor, tally: Tally) -> None:
    """Count how far the trainer is from the sampler: |lp - sampled lp|, and k3 of KL(sampler, trainer)."""
    difference = (logprobs - batch.sampling_logprobs)[batch.mask]
    kl = (difference.expm1() - difference).mean() if difference.numel() else 0.0
    everywhere = torch.ones_like(difference)
    tally.add(
        token_statistics("mismatch", difference.abs(), everywhere) | {"mismatch_kl": kl}, len(difference)
    )


def _sizes(rows: Sequence[Row], batches: Sequence[MicroBatch]) -> dict[str, float]:
    positions = sum(batch.input_ids.numel() for batch in batches)
    return {
        "rows": float(len(rows)),
        "action_tokens": float(sum(int(row.action_mask.sum()) for row in rows)),
        "padded_tokens": float(positions),
        "padding_share": sum(batch.padding for batch in batches) / max(positions, 1),
    }
