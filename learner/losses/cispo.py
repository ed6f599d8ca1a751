"""CISPO: the ratio is clipped and held constant, so that no token loses its gradient [arXiv 2506.13585].

    -sg(min(r, 1 + eps_hi)) A logprob,   averaged over all tokens of the batch

sg stops the gradient. The clipped surrogate drops the gradient of a token outside the range; here the token's
weight is bounded instead. There is no lower bound. ``eps_hi`` is often large, for instance 4.
"""

from __future__ import annotations

from torch import where

from learner.losses.kl import kl_penalty
from learner.losses.types import (
    LossConfig,
    LossInputs,
    LossOutputs,
    difference,
    token_mean,
    token_share,
    token_statistics,
)


def cispo(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics. ``clip_fraction`` counts the ratios above the bound.

    The value of the loss depends on the log-probabilities themselves and means little; only its gradient
    matters.
    """
    _, high = config.clip_range
    ratio = difference(inputs, inputs.old_logprobs).exp().detach()
    metrics = token_statistics("ratio", ratio, inputs.mask)
    metrics |= token_share("clip_fraction", ratio > high, inputs.mask)
    logprobs = where(inputs.mask.bool(), inputs.logprobs, 0.0)
    penalty, kl_metrics = kl_penalty(inputs, config)
    tokens = -ratio.clamp(max=high) * inputs.advantages * logprobs
    return LossOutputs(token_mean(tokens + penalty, inputs, config), metrics | kl_metrics)
