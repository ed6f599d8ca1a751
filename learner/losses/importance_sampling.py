"""The plain importance-sampled policy gradient, -r A, averaged as in GRPO.

Nothing is clipped. At the first update r = 1 and the gradient is REINFORCE's. Later updates on the same rows
may diverge, so use it with one update per step.
"""

from __future__ import annotations

from learner.losses.kl import kl_penalty
from learner.losses.types import (
    LossConfig,
    LossInputs,
    LossOutputs,
    difference,
    sequence_mean,
    token_statistics,
)


def importance_sampling(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics."""
    ratio = difference(inputs, inputs.old_logprobs).exp()
    penalty, kl_metrics = kl_penalty(inputs, config)
    loss = sequence_mean(-ratio * inputs.advantages + penalty, inputs, config)
    return LossOutputs(loss, token_statistics("ratio", ratio, inputs.mask) | kl_metrics)
