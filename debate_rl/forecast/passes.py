"""How many forward passes over its rows a learner's step is worth."""

from __future__ import annotations

from learner.update.config import LearnerConfig


def learner_passes(learner: LearnerConfig, *, adapter: bool, replies: bool = False) -> float:
    """Return the forward passes that a step's rows cost.

    A backward pass costs two forward passes, and one where the weights themselves have no gradient (an
    adapter): 2 operations for each weight and token forward, 2 for the inputs' gradients, 2 for the weights'
    [the count of arXiv 2001.08361]. Reference, log-probabilities before the first update and gradient
    checkpointing are forward passes more. ``replies``: whether it learns replies, in one update a step.

    >>> learner_passes(LearnerConfig(beta=0.0, old_logprobs="sampling"), adapter=False)
    3.0
    >>> learner_passes(LearnerConfig(beta=0.1, gradient_checkpointing=True), adapter=True, replies=True)
    4.0
    """
    once = (2.0 if adapter else 3.0) + (learner.gradient_checkpointing is True)
    reference = float(learner.needs_reference)
    if replies:
        return once + reference
    first = 1 - 1 / learner.minibatches if learner.old_logprobs == "recompute" else 0.0
    return learner.epochs * once + reference + first
