"""GRPO: the clipped surrogate, averaged over each sequence and then over sequences [arXiv 2402.03300].

    -min(r A, clip(r, 1 - eps, 1 + eps_hi) A),   r = exp(logprob - old_logprob)

Every sequence has the same weight, so a token of a long sequence has less. Long wrong answers are therefore
punished less per token, which Dr. GRPO points out and fixes.
"""

from __future__ import annotations

from torch import Tensor, minimum

from learner.losses.kl import kl_penalty
from learner.losses.types import (
    LossConfig,
    LossInputs,
    LossOutputs,
    difference,
    sequence_mean,
    token_share,
    token_statistics,
)


def grpo(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics."""
    surrogate, metrics = clipped_surrogate(inputs, config)
    penalty, kl_metrics = kl_penalty(inputs, config)
    return LossOutputs(sequence_mean(surrogate + penalty, inputs, config), metrics | kl_metrics)


def clipped_surrogate(inputs: LossInputs, config: LossConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the clipped surrogate for each token, (B, T), and the ratio's metrics.

    ``clip_fraction`` counts the tokens whose gradient is removed by the clip: their ratio is outside the
    range, on the side to which the advantage pushes.
    """
    low, high = config.clip_range
    ratio = difference(inputs, inputs.old_logprobs).exp()
    plain = ratio * inputs.advantages
    clipped = ratio.clamp(low, high) * inputs.advantages
    metrics = token_statistics("ratio", ratio, inputs.mask)
    return -minimum(plain, clipped), metrics | token_share("clip_fraction", clipped < plain, inputs.mask)
