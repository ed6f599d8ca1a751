"""DPPO: a trust region on the change of a token's probability instead of its ratio [arXiv 2602.04879].

    -sg(min(r, 20)) A logprob   where the token is kept, averaged over all tokens of the batch;   r = p / m

p is the token's current probability and m the sampler's. A token is masked if its advantage pushes its
probability further away and it has already moved too far:

    dppo_tv   A > 0 and p - m > eps_hi,   or A < 0 and m - p > eps
    dppo_kl   A > 0, p > m and KL > eps_hi,   or A < 0, p < m and KL > eps
              KL = m log(m / p) + (1 - m) log((1 - m) / (1 - p))

Both measure the divergence between sampler and policy on a vocabulary of two items, this token and all
others. A ratio of 3 hardly moves a token of probability .001, but ratio clipping stops it; a ratio of .8
moves a token of probability .9 a lot, but ratio clipping allows it. Usual thresholds are .15 to .2 for tv
(prime-rl, ``dppo_tv`` of verl) and .05 for kl. The bound on r is verl's. r corrects for the sampler, so
``tis_cap`` is not used.
"""

from __future__ import annotations

from torch import Tensor, where

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

MOST = 20.0
LEAST = 1e-8
"""Lower bound on the total probability of all other tokens."""


def dppo_tv(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics. ``clip_fraction`` counts the masked-out tokens."""
    now, before = _probabilities(inputs)
    return _dppo(inputs, config, now - before, now - before)


def dppo_kl(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics. ``clip_fraction`` counts the masked-out tokens."""
    now, before = _probabilities(inputs)
    gap = difference(inputs, inputs.sampling_logprobs).detach()
    others = [(1 - one).clamp(min=LEAST) for one in (now, before)]
    divergence = others[1] * (others[1].log() - others[0].log()) - before * gap
    return _dppo(inputs, config, divergence, now - before)


def _probabilities(inputs: LossInputs) -> tuple[Tensor, Tensor]:
    """Return the tokens' probabilities under the policy and under the sampler, (B, T); 1 outside the mask."""
    both = inputs.logprobs.detach(), inputs.sampling_logprobs
    now, before = (where(inputs.mask.bool(), logprobs, 0.0).exp() for logprobs in both)
    return now, before


def _dppo(inputs: LossInputs, config: LossConfig, divergence: Tensor, moved: Tensor) -> LossOutputs:
    high = config.eps if config.eps_hi is None else config.eps_hi
    up = (inputs.advantages > 0) & (moved > 0) & (divergence.abs() > high)
    left_out = up | ((inputs.advantages < 0) & (moved < 0) & (divergence.abs() > config.eps))
    ratio = difference(inputs, inputs.sampling_logprobs).exp().detach()
    metrics = token_statistics("ratio", ratio, inputs.mask) | token_share(
        "clip_fraction", left_out, inputs.mask
    )
    weights = where(left_out, 0.0, ratio.clamp(max=MOST)) * inputs.advantages
    penalty, kl_metrics = kl_penalty(inputs, config)
    tokens = -weights * where(inputs.mask.bool(), inputs.logprobs, 0.0)
    return LossOutputs(token_mean(tokens + penalty, inputs, config), metrics | kl_metrics)
