"""The KL to the reference, as a penalty in the loss or in the reward.

It is estimated from the sampled tokens alone [Schulman, "Approximating KL", 2020]. With d = logprob -
ref_logprob of a token, in nats:

    k1 = d                    unbiased, of either sign
    k2 = d^2 / 2              biased, never negative
    k3 = exp(-d) - 1 + d      unbiased, never negative, of low variance [a loss in GRPO, arXiv 2402.03300]

The gradient of a KL estimate is not an estimate of the KL's gradient [arXiv 2506.09477]. On tokens sampled
from the current weights, with the contexts fixed, the expected gradient is

    of k1 as a loss     zero
    of k2 as a loss     that of KL(policy, reference)
    of k3 as a loss     that of KL(reference, policy)
    of k1 as a reward   that of KL(policy, reference)

So choose k2 or k3 as a loss, and k1 as a reward. k3 punishes a token that became rare exponentially: one
token at exp(10) shows as a spike of ``kl_max`` long before the mean moves.
"""

from __future__ import annotations

from torch import Tensor, where

from learner.losses.types import KlEstimator, LossConfig, LossInputs, token_statistics
from learner.token_streams import JUDGE


def estimate(kind: KlEstimator, logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor) -> Tensor:
    """Return the estimate for each token, (B, T), in nats; 0 outside the mask.

    >>> from torch import tensor
    >>> lp, ref, mask = tensor([[-1.0, 9.0]]), tensor([[-3.0, 9.0]]), tensor([[True, False]])
    >>> [estimate(kind, lp, ref, mask)[0, 0].item() for kind in ("k1", "k2")]
    [2.0, 2.0]
    >>> round(estimate("k3", lp, ref, mask)[0, 0].item(), 4)  # exp(-2) - 1 + 2
    1.1353
    """
    mask = mask.bool()
    d = where(mask, logprobs, 0.0) - where(mask, ref_logprobs, 0.0)
    if kind == "k1":
        return d
    return d.square() / 2 if kind == "k2" else (-d).expm1() + d


def kl_penalty(inputs: LossInputs, config: LossConfig) -> tuple[Tensor | float, dict[str, Tensor]]:
    """Return beta * KL for each token, with the beta of its stream, and the metrics of k3.

    The metrics always use k3, so that runs with different estimators can be compared. ValueError if a beta is
    set but there is no reference.
    """
    if inputs.ref_logprobs is None:
        _refuse_no_reference(config)
        return 0.0, {}
    k3 = estimate("k3", inputs.logprobs, inputs.ref_logprobs, inputs.mask)
    metrics = token_statistics("kl", k3, inputs.mask)
    if not any(_betas(config)):
        return 0.0, metrics
    kl = k3 if config.kl == "k3" else estimate(config.kl, inputs.logprobs, inputs.ref_logprobs, inputs.mask)
    return _weighted(kl, inputs, config), metrics


def kl_as_reward(inputs: LossInputs, config: LossConfig) -> Tensor:
    """Return the advantages (B, T) minus beta * KL of each token, at the old weights: A_t - beta * k_t.

    The estimate is part of the token's own reward and not of earlier tokens' rewards (a discount of 0), and
    has no baseline. Each stream has its own beta, so no stream pays for the other's KL. Source: the per-token
    KL reward of arXiv 2203.02155 (there with a critic and without a discount). k1 in the reward and k2 in the
    loss have the same gradient [arXiv 2510.01555]. ValueError if a beta is set but there is no reference.
    """
    if inputs.ref_logprobs is None:
        _refuse_no_reference(config)
        return inputs.advantages
    kl = estimate(config.kl, inputs.old_logprobs, inputs.ref_logprobs, inputs.mask).detach()
    return inputs.advantages - _weighted(kl, inputs, config)


def _weighted(kl: Tensor, inputs: LossInputs, config: LossConfig) -> Tensor:
    beta, beta_judge = _betas(config)
    return where(inputs.stream == JUDGE, beta_judge * kl, beta * kl)


def _betas(config: LossConfig) -> tuple[float, float]:
    return config.beta, config.beta if config.beta_judge is None else config.beta_judge


def _refuse_no_reference(config: LossConfig) -> None:
    beta, beta_judge = _betas(config)
    if beta or beta_judge:
        raise ValueError(f"beta={beta}, beta_judge={beta_judge}, but ref_logprobs is None; pass it")
