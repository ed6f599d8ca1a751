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
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from learner.types import Row
from learner.update.batches import MicroBatch, collate, fresh_rows
from learner.update.config import LearnerConfig
from learner.update.steps import Steps, totals_of
from learner.update.tally import Tally, WorstTokens, sizes


class Service(Protocol):
    """What a service computes with the model that it trains.

    Arrays of a row are (L,), one value per token.
    """

    def prepare(self) -> None:
        """Measure what updates depend on. ValueError if the service cannot train."""
        ...

    def logprobs(self, rows: Sequence[Row], *, reference: bool = False) -> list[NDArray[np.float32]]:
        """Return log-probabilities in nats at temperature 1. ``reference``: use the start weights instead."""
        ...

    def update(
        self, rows: Sequence[Row], logprobs: Tensor, advantages: Tensor, *, lr: float
    ) -> dict[str, float]:
        """Apply one optimizer step along sum(A * gradient of logprob); return its metrics.

        ``logprobs`` and ``advantages`` (B, T) are those of the rows, padded on the right.
        """
        ...


class ServiceLearner(Steps):
    """Learns as ``learner.update.Learner`` does, by a service.

    Of the learner's metrics it lacks the entropy, ``grad_clipped`` and ``update_per_lr``.
    """

    compute = None

    def __init__(self, service: Service, config: LearnerConfig, *, total_steps: int | None = None) -> None:
        super().__init__(config, total_steps)
        self.service = service
        service.prepare()

    def step(self, rows: Sequence[Row]) -> dict[str, float]:
        """Update the weights as ``Learner.step`` does; return the metrics."""
        tally, self.worst = Tally(), WorstTokens()
        lr, count = self._set_lr(), self.config.minibatches
        rows, ages = fresh_rows(rows, self.steps, self.config.max_staleness)
        order = self._shuffled(rows)
        parts = [part for start in range(count) if (part := order[start::count])]
        batches = [(part, collate(part)) for part in parts]
        self._before_updates(batches, tally)
        outcomes, total = list[bool](), self.config.epochs * len(batches)
        for one in batches * self.config.epochs:
            outcomes.append(self._update(*one, lr, tally))
            self.advance(len(outcomes), total)
        read = sum(len(row.input_ids) for row in rows)
        return tally.result() | sizes(rows, read) | ages | self._counted(outcomes, lr)

    def logprobs(self, rows: Sequence[Row]) -> Tensor:
        """Return the log-probabilities (B, T) of the rows' actions under the current weights; 0 elsewhere."""
        return self._logprobs(rows, collate(rows))

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs in addition to the service's own."""
        return {"steps": self.steps, "bad_steps": self.bad_steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from ``state_dict``."""
        self.steps, self.bad_steps = int(state_dict["steps"]), int(state_dict["bad_steps"])

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
            elif index:
                batch.old = batch.sampling_logprobs

    def _update(self, rows: list[Row], batch: MicroBatch, lr: float, tally: Tally) -> bool:
        """Apply the gradient of a minibatch. Return False if it was not finite and was skipped."""
        logprobs = self._logprobs(rows, batch).requires_grad_()
        self._look(batch, logprobs.detach(), tally)
        outputs = self._outputs(batch, logprobs, totals_of(rows))
        [slope] = torch.autograd.grad(outputs.loss, logprobs)
        slope = slope.where(batch.mask, 0.0)
        if not math.isfinite(float(outputs.loss.detach() + slope.sum())):
            return False
        self.halfway = True
        applied = self.service.update(rows, logprobs.detach(), -slope, lr=lr)
        if not all(map(math.isfinite, applied.values())):  # the service has skipped it
            return False
        tally.add(applied)
        tally.add({"loss": outputs.loss})
        tally.add(outputs.metrics, weight=len(batch.predictors))
        return True
