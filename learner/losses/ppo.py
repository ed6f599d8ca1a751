"""PPO with a dual clip: the clipped surrogate, bounded for negative advantages, averaged over all tokens.

    A >= 0: -min(r A, clip(r, 1 - eps, 1 + eps_hi) A)   [PPO, arXiv 1707.06347]
    A < 0:  -max(min(r A, clip(r, 1 - eps, 1 + eps_hi) A), c A),   c = dual_clip   [arXiv 1912.09729]

Without the second bound, the loss r |A| of a bad token whose ratio has grown would be unbounded. There is no
critic: the advantages are relative to the group.
"""

from __future__ import annotations

from torch import minimum

from learner.losses.grpo import clipped_surrogate
from learner.losses.kl import kl_penalty
from learner.losses.types import LossConfig, LossInputs, LossOutputs, token_mean, token_share


def ppo(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss and its metrics. ``dual_clip_fraction`` counts the tokens at the second bound."""
    surrogate, metrics = clipped_surrogate(inputs, config)
    bound = -config.dual_clip * inputs.advantages
    bounded = (inputs.advantages < 0) & (surrogate > bound)
    metrics |= token_share("dual_clip_fraction", bounded, inputs.mask)
    penalty, kl_metrics = kl_penalty(inputs, config)
    tokens = minimum(surrogate, bound).where(inputs.advantages < 0, surrogate)
    return LossOutputs(token_mean(tokens + penalty, inputs, config), metrics | kl_metrics)
