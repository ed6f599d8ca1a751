"""What all learners share, whichever backend runs the model: settings, counters, and the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import torch
from torch import Tensor

from debate.seeds import derive_seed
from learner.losses import LossConfig, LossInputs, LossOutputs, Totals, find_loss
from learner.losses.corrections import masked_importance, truncated_importance
from learner.losses.kl import kl_as_reward
from learner.types import Row
from learner.update.batches import MicroBatch
from learner.update.config import LearnerConfig, check_settings
from learner.update.optimizer import lr_factor
from learner.update.tally import Tally, WorstTokens, tally_mismatch


class Steps:
    """The steps of a learner.

    ``bad_steps`` counts the most recent consecutive steps that could not move the weights; the training loop
    should stop after too many. ``halfway``: whether a step has begun its updates and not ended, so that an
    error left the weights between two steps. ``worst`` has the tokens of the last step that are furthest from
    the reference and the sampler. ``advance`` is called with a step's number of finished passes and
    their total.
    """

    def __init__(self, config: LearnerConfig, total_steps: int | None) -> None:
        check_settings(config, total_steps)
        self.config, self.total_steps = config, total_steps
        self.steps, self.bad_steps, self.halfway = 0, 0, False
        self.worst = WorstTokens()
        self.advance: Callable[[int, int], None] = lambda *_: None
        self._loss = find_loss(config.loss)
        names = ("eps", "eps_hi", "beta", "max_tokens", "beta_judge", "kl", "normalise")
        self._loss_config = LossConfig(**{name: getattr(config, name) for name in names})

    def skip(self) -> dict[str, float]:
        """Skip a step whose rewards are unusable, count it as bad, and return the metrics."""
        lr = self._set_lr()
        self._count_step([False])
        return {"lr": lr, "updates": 0.0, "skipped_updates": 0.0, "bad_steps": float(self.bad_steps)}

    def _count_step(self, outcomes: Sequence[bool]) -> None:
        """Count a step as bad if it has updates and none was applied.

        A step without updates is neither good nor bad.
        """
        self.steps, self.halfway = self.steps + 1, False
        self.bad_steps = 0 if any(outcomes) else self.bad_steps + bool(outcomes)

    def _counted(self, outcomes: Sequence[bool], lr: float) -> dict[str, float]:
        """Count a step by whether each of its updates was applied, and return its metrics."""
        self._count_step(outcomes)
        done = sum(outcomes)
        updates = {"lr": lr, "updates": float(done), "skipped_updates": float(len(outcomes) - done)}
        return updates | {"bad_steps": float(self.bad_steps)}

    def _set_lr(self) -> float:
        """Return the learning rate of this step."""
        of = self.config
        factor = lr_factor(self.steps, warmup=of.warmup_steps, schedule=of.schedule, total=self.total_steps)
        return of.lr * factor

    def _shuffled(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows in a random order for minibatches, drawn from the seed and the step's number."""
        order = list(rows)
        Random(derive_seed(self.config.seed, "minibatches", self.steps)).shuffle(order)
        return order

    def _tally_mismatch(self, batch: MicroBatch, logprobs: Tensor, tally: Tally) -> None:
        tally_mismatch(batch, logprobs, tally)
        self.worst.look_at_sampler(batch, logprobs, "sampler_before")

    def _look(self, batch: MicroBatch, logprobs: Tensor, tally: Tally) -> None:
        """Tally the log-probabilities (B, T) at an update. At the first update they become the old ones."""
        if batch.old is None:
            self._tally_mismatch(batch, logprobs, tally)
            from_sampler = self.config.old_logprobs == "sampling"
            batch.old = batch.sampling_logprobs if from_sampler else logprobs
        self.worst.look(batch, logprobs)

    def _outputs(self, batch: MicroBatch, logprobs: Tensor, totals: Totals) -> LossOutputs:
        """Return the loss and its metrics, with the KL and the importance weights of the settings."""
        assert batch.old is not None
        odds = logprobs, batch.old, batch.sampling_logprobs, batch.ref
        inputs = LossInputs(*odds, batch.advantages, batch.mask, batch.stream)
        config, corrections = replace(self._loss_config, totals=totals), dict[str, Tensor]()
        if self.config.kl_in == "reward":
            inputs = replace(inputs, advantages=kl_as_reward(inputs, config))
            config = replace(config, beta=0.0, beta_judge=0.0)
        if self.config.caps_weights:
            weigh = masked_importance if self.config.tis == "sequence_mask" else truncated_importance
            advantages, corrections = weigh(inputs, float(self.config.tis_cap))
            inputs = replace(inputs, advantages=advantages)
        outputs = self._loss(inputs, config)
        return LossOutputs(outputs.loss, outputs.metrics | corrections)


def totals_of(rows: Sequence[Row]) -> Totals:
    """Return the size of a batch of rows."""
    arrays = ((row.action_mask, row.stream) for row in rows)
    return Totals.sum(Totals.of(*(torch.from_numpy(array)[None] for array in pair)) for pair in arrays)
