"""DAPO: the clipped surrogate, averaged over the batch's tokens, with a wider upper clip [arXiv 2503.14476].

    sum over tokens / tokens of the batch,   eps_hi = 0.28

A token has the same weight in a long and in a short sequence. The wider upper range ("clip-higher") lets rare
tokens become more likely and keeps the entropy up. DAPO's third part, dynamic sampling, is
``train.dynamic_sampling``.
"""

from __future__ import annotations

from dataclasses import replace

from learner.losses.grpo import clipped_surrogate
from learner.losses.kl import kl_penalty
from learner.losses.types import LossConfig, LossInputs, LossOutputs, token_mean

EPS_HI = 0.28


def dapo(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics. If ``eps_hi`` is None, it is 0.28."""
    if config.eps_hi is None:
        config = replace(config, eps_hi=EPS_HI)
    surrogate, metrics = clipped_surrogate(inputs, config)
    penalty, kl_metrics = kl_penalty(inputs, config)
    return LossOutputs(token_mean(surrogate + penalty, inputs, config), metrics | kl_metrics)
