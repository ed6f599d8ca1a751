"""Corrections that apply to any loss: importance weights and an entropy bonus."""

from __future__ import annotations

from torch import Tensor, where

from learner.losses.types import (
    LossInputs,
    Totals,
    stream_sum,
    token_share,
    token_statistics,
)

MOST = 20.0
"""The maximum log-weight of a sequence, in nats. It keeps logged weights finite."""


def truncated_importance(inputs: LossInputs, cap: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the advantages (B, T) times min(exp(old_logprob - sampling_logprob), cap), and the metrics.

    Tokens are drawn by the sampler and learned by the trainer. Their probabilities differ because of kernels
    and precision. The weight corrects for the difference, and the cap bounds its variance [truncated
    importance sampling: Ionides 2008; Yao et al., "Your efficient RL framework secretly brings you off-policy
    RL training", 2025]. Weights are not negative and every loss here is linear in the size of an advantage,
    so weighting the advantage is the same as weighting the token's loss. ``tis_mean`` and ``tis_max`` are
    over the weights before the cap. ``tis_truncated`` is the fraction of weights above it.
    """
    mask = inputs.mask.bool()
    gap = where(mask, inputs.old_logprobs, 0.0) - where(mask, inputs.sampling_logprobs, 0.0)
    weights = gap.detach().exp()
    metrics = token_statistics("tis", weights, mask)
    metrics |= token_share("tis_truncated", weights > cap, mask)
    return weights.clamp(max=cap) * inputs.advantages, metrics


def masked_importance(inputs: LossInputs, cap: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the advantages (B, T) times exp(sum of old_logprob - sampling_logprob), and the metrics.

    The sum is over the tokens of one stream in a row, as in gspo. If the weight is above ``cap``, it becomes
    0: these tokens are not trained on, but still count in denominators [masked importance sampling of
    sequences: Liu et al., "When speed kills stability", 2025; the default of TRL 1.16, ``sequence_mask``,
    with a cap of 3]. No lower bound is needed, because a weight far below 1 is already close to 0. The
    metrics are as in ``truncated_importance``, over the weights of sequences.
    """
    mask = inputs.mask.bool()
    gap = where(mask, inputs.old_logprobs, 0.0) - where(mask, inputs.sampling_logprobs, 0.0)
    weights = stream_sum(gap.detach(), inputs).clamp(max=MOST).exp()
    beyond = weights > cap
    metrics = token_statistics("tis", weights, mask) | token_share("tis_truncated", beyond, mask)
    return where(beyond, 0.0, weights) * inputs.advantages, metrics


def entropy_bonus(entropy: Tensor, weight: float, totals: Totals) -> Tensor:
    """Return the loss term -weight * mean entropy, from the masked tokens' entropies (n,) in nats.

    The mean is over all tokens of the batch (``totals``), whatever the loss divides by, so that a weight
    means the same under every loss [the entropy bonus of PPO, arXiv 1707.06347].
    """
    return -weight * entropy.sum() / max(totals.tokens, 1)
