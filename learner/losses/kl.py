"""KL to the reference, estimated from the sampled tokens alone.

k3 = exp(ref - lp) - (ref - lp) - 1: unbiased at the sampling weights, never negative, and of low variance
[Schulman, "Approximating KL divergence", 2020; used as a loss by GRPO, arXiv 2402.03300]. It punishes a
token that became rare exponentially: one token at exp(10) shows as a spike of ``kl_max`` long before the
mean moves.
"""

from __future__ import annotations

from torch import Tensor, where

from learner.losses.types import JUDGE, LossConfig, LossInputs, difference, token_statistics


def k3(inputs: LossInputs, ref_logprobs: Tensor) -> Tensor:
    """Return the estimate for each token, (B, T), in nats; 0 outside the mask."""
    log_ratio = -difference(inputs, ref_logprobs)
    return log_ratio.expm1() - log_ratio


def kl_penalty(inputs: LossInputs, config: LossConfig) -> tuple[Tensor | float, dict[str, Tensor]]:
    """Return beta * k3 for each token (each stream with its own beta) and its metrics.

    ValueError when a beta is set and there is no reference.
    """
    beta_judge = config.beta if config.beta_judge is None else config.beta_judge
    if inputs.ref_logprobs is None:
        if config.beta or beta_judge:
            raise ValueError(f"beta={config.beta}, beta_judge={beta_judge}, but ref_logprobs is None")
        return 0.0, {}
    kl = k3(inputs, inputs.ref_logprobs)
    metrics = token_statistics("kl", kl, inputs.mask)
    if not (config.beta or beta_judge):
        return 0.0, metrics
    return where(inputs.stream == JUDGE, beta_judge * kl, config.beta * kl), metrics
