"""What changes a loss from outside, whichever it is: importance weights and an entropy bonus."""

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
"""Nats at which a sequence's weight is capped when it is logged."""


def truncated_importance(inputs: LossInputs, cap: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the advantages (B, T) times min(exp(old_logprob - sampling_logprob), cap), and the metrics.

    Tokens were drawn by the sampler and are learnt by the trainer, whose probabilities differ with kernels
    and precision; the weight corrects for it, and the cap bounds its variance [truncated importance
    sampling: Ionides 2008; Yao et al., "Your efficient RL framework secretly brings you off-policy RL
    training", 2025]. Weights are not negative and every loss here is linear in the size of an advantage, so
    to weight the advantage is to weight the token's loss. ``tis_mean`` and ``tis_max`` are of the weights
    before the cap, ``tis_truncated`` is the share beyond it.
    """
    mask = inputs.mask.bool()
    gap = where(mask, inputs.old_logprobs, 0.0) - where(mask, inputs.sampling_logprobs, 0.0)
    weights = gap.detach().exp()
    metrics = token_statistics("tis", weights, mask)
    metrics |= token_share("tis_truncated", weights > cap, mask)
    return weights.clamp(max=cap) * inputs.advantages, metrics


def masked_importance(inputs: LossInputs, cap: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the advantages (B, T) times exp(sum of old_logprob - sampling_logprob), and the metrics.

    The sum is over the tokens of one stream of a row, as in gspo; where the weight is over ``cap`` it is 0:
    nothing is learnt from these tokens, which still count in denominators [masked importance sampling of
    sequences: Liu et al., "When speed kills stability", 2025; the default of TRL 1.16, ``sequence_mask``,
    with a cap of 3]. One bound is enough: a weight far below 1 is next to 0 by itself. The metrics are those
    of ``truncated_importance``, of the weights of sequences.
    """
    mask = inputs.mask.bool()
    gap = where(mask, inputs.old_logprobs, 0.0) - where(mask, inputs.sampling_logprobs, 0.0)
    weights = stream_sum(gap.detach(), inputs).clamp(max=MOST).exp()
    beyond = weights > cap
    metrics = token_statistics("tis", weights, mask) | token_share("tis_truncated", beyond, mask)
    return where(beyond, 0.0, weights) * inputs.advantages, metrics


def entropy_bonus(entropy: Tensor, weight: float, totals: Totals) -> Tensor:
    """Return -weight * mean entropy, a part of the loss, from the masked tokens' entropies (n,) in nats.

    The mean is over all tokens of the batch, ``totals``, whatever the loss divides by, so that one weight
    means the same under every loss [the entropy bonus of PPO, arXiv 1707.06347].
    """
    return -weight * entropy.sum() / max(totals.tokens, 1)
