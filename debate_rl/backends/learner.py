"""A learner whose forward and backward passes are computed by a service.

Our losses need log-probabilities alone. So the service returns those of the rows, the loss and its derivative
with respect to each of them are computed here, and the service applies that derivative:

    gradient of L = sum over tokens t of (dL / dlogprob_t) * (gradient of logprob_t)

The sum on the right is the gradient of the importance-sampled policy gradient -exp(logprob - old) A at
old = logprob and A = -dL / dlogprob, a loss that every service has. So each loss, KL penalty, correction and
average of ``learner.losses`` has the same gradient here as in ``Learner``, for one more forward pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from debate.seeds import derive_seed
from learner.losses import LossConfig, LossInputs, find_loss
from learner.losses.corrections import masked_importance, truncated_importance
from learner.losses.kl import kl_as_reward
from learner.types import Row
from learner.update.batches import MicroBatch, collate, fresh_rows
from learner.update.config import LearnerConfig, check_settings
from learner.update.learner import lr_factor, totals_of
from learner.update.tally import Tally, WorstTokens, floats, sizes, tally_mismatch


class Service(Protocol):
    """What a service computes with the model that learns. Arrays of a row are (L,), one number a token."""

    def logprobs(self, rows: Sequence[Row], *, reference: bool = False) -> list[NDArray[np.float32]]:
        """Return log-probabilities in nats at temperature 1; ``reference``: of the weights at the start."""
        ...

    def update(
        self, rows: Sequence[Row], logprobs: Tensor, advantages: Tensor, *, lr: float
    ) -> dict[str, float]:
        """Apply one optimizer step along sum(A * gradient of logprob); return its metrics.

        ``logprobs`` and ``advantages`` (B, T) are those of the rows, padded on the right.
        """
        ...


class ServiceLearner:
    """``learner.update.Learner`` for a service; its public attributes and metrics are the same."""

    compute = None

    def __init__(self, service: Service, config: LearnerConfig, *, total_steps: int | None = None) -> None:
        check_settings(config, total_steps)
        self.service, self.config, self.total_steps = service, config, total_steps
        self.steps, self.bad_steps, self.halfway = 0, 0, False
        self.worst = WorstTokens()
        self._loss = find_loss(config.loss)
        names = ("eps", "eps_hi", "beta", "max_tokens", "beta_judge", "kl", "normalise")
        self._loss_config = LossConfig(**{name: getattr(config, name) for name in names})

    def step(self, rows: Sequence[Row]) -> dict[str, float]:
        """Update the weights as ``Learner.step`` does; return the metrics."""
        tally, self.worst = Tally(), WorstTokens()
        rows, ages = fresh_rows(rows, self.steps, self.config.max_staleness)
        order = list(rows)
        Random(derive_seed(self.config.seed, "minibatches", self.steps)).shuffle(order)
        count = self.config.minibatches
        parts = [part for start in range(count) if (part := order[start::count])]
        batches = [(part, collate(part)) for part in parts]
        self._before_updates(batches, tally)
        outcomes = [self._update(*one, tally) for _ in range(self.config.epochs) for one in batches]
        lr, done = self._lr(), sum(outcomes)
        self._count_step(outcomes)
        updates = {"lr": lr, "updates": float(done), "skipped_updates": float(len(outcomes) - done)}
        read = sum(len(row.input_ids) for row in rows)
        return tally.result() | sizes(rows, read) | ages | updates | {"bad_steps": float(self.bad_steps)}

    def skip(self) -> dict[str, float]:
        """Skip a step whose rewards are unusable, count it as bad, and return the metrics."""
        lr = self._lr()
        self._count_step([False])
        return {"lr": lr, "updates": 0.0, "skipped_updates": 0.0, "bad_steps": float(self.bad_steps)}

    def logprobs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probabilities (B, T) of the rows' actions under the current weights; 0 elsewhere."""
        return self._logprobs(rows, collate(rows))

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs besides what the service keeps."""
        return {"steps": self.steps, "bad_steps": self.bad_steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from ``state_dict``."""
        self.steps, self.bad_steps = int(state_dict["steps"]), int(state_dict["bad_steps"])

    def _lr(self) -> float:
        of = self.config
        factor = lr_factor(self.steps, warmup=of.warmup_steps, schedule=of.schedule, total=self.total_steps)
        return of.lr * factor

    def _count_step(self, outcomes: Sequence[bool]) -> None:
        self.steps, self.halfway = self.steps + 1, False
        self.bad_steps = 0 if any(outcomes) else self.bad_steps + bool(outcomes)

    def _logprobs(self, rows: Sequence[Row], batch: MicroBatch, *, reference: bool = False) -> Tensor:
        found = torch.zeros(batch.mask.shape)
        for line, values in zip(found, self.service.logprobs(rows, reference=reference), strict=True):
            line[: len(values)] = torch.from_numpy(values)
        return found.where(batch.mask, 0.0)

    def _before_updates(self, batches: Sequence[tuple[list[Row], MicroBatch]], tally: Tally) -> None:
        """Fill in reference and old log-probabilities before the weights change."""
        for index, (rows, batch) in enumerate(batches):
            if self.config.needs_reference:
                batch.ref = self._logprobs(rows, batch, reference=True)
            if index and self.config.old_logprobs == "recompute":
                batch.old = self._logprobs(rows, batch)
                self._tally_mismatch(batch, batch.old, tally)

    def _tally_mismatch(self, batch: MicroBatch, logprobs: Tensor, tally: Tally) -> None:
        tally_mismatch(batch, logprobs, tally)
        self.worst.look_at_sampler(batch, logprobs, "sampler_before")

    def _update(self, rows: list[Row], batch: MicroBatch, tally: Tally) -> bool:
        """Apply the gradient of a minibatch. Return False if it was not finite and was skipped."""
        logprobs = self._logprobs(rows, batch).requires_grad_()
        now = logprobs.detach()
        from_sampler = self.config.old_logprobs == "sampling"
        if batch.old is None:
            if not from_sampler:
                self._tally_mismatch(batch, now, tally)
            batch.old = batch.sampling_logprobs if from_sampler else now
        self.worst.look(batch, now)
        loss, metrics = self._loss_of(
            LossInputs(
                *(logprobs, batch.old, batch.sampling_logprobs, batch.ref),
                *(batch.advantages, batch.mask, batch.stream),
            ),
            rows,
        )
        [slope] = torch.autograd.grad(loss, logprobs)
        slope = slope.where(batch.mask, 0.0)
        if not math.isfinite(sum(floats([loss.detach(), slope.sum()]))):
            return False
        self.halfway = True
        metrics |= self.service.update(rows, now, -slope, lr=self._lr())
        tally.add({"loss": loss.detach()})
        tally.add(metrics, weight=len(batch.predictors))
        return True

    def _loss_of(self, inputs: LossInputs, rows: Sequence[Row]) -> tuple[Tensor, dict[str, Any]]:
        config, own = replace(self._loss_config, totals=totals_of(rows)), self.config
        corrections: dict[str, Any] = {}
        if own.kl_in == "reward":
            inputs = replace(inputs, advantages=kl_as_reward(inputs, self._loss_config))
            config = replace(config, beta=0.0, beta_judge=0.0)
        if own.caps_weights:
            weigh = masked_importance if own.tis == "sequence_mask" else truncated_importance
            advantages, corrections = weigh(inputs, float(own.tis_cap))
            inputs = replace(inputs, advantages=advantages)
        outputs = self._loss(inputs, config)
        return outputs.loss, outputs.metrics | corrections
