"""Dr. GRPO: the clipped surrogate summed over tokens and divided by a constant [arXiv 2503.20783].

    sum over tokens / (B * max_tokens)

A token has the same weight in a long and in a short sequence. Completions are shorter than ``max_tokens``, so
the gradient is smaller than GRPO's at the same learning rate, about 5 times in practice. Use a higher
learning rate.
"""

from __future__ import annotations

from torch import Tensor, where

from learner.losses.grpo import clipped_surrogate
from learner.losses.kl import kl_penalty
from learner.losses.types import LossConfig, LossInputs, LossOutputs, Totals, normalised


def dr_grpo(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics. ValueError without ``max_tokens``."""
    most = config.max_tokens
    if most is None:
        raise ValueError("dr_grpo divides by max_tokens, which is None; set learner.max_tokens")
    surrogate, metrics = clipped_surrogate(inputs, config)
    penalty, kl_metrics = kl_penalty(inputs, config)

    def mean(mask: Tensor, totals: Totals) -> Tensor:
        return where(mask, surrogate + penalty, 0.0).sum() / max(totals.rows * most, 1)

    return LossOutputs(normalised(mean, inputs, config), metrics | kl_metrics)
