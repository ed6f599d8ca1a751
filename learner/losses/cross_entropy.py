"""Cross-entropy of given replies: -logprob of each token, times its weight, averaged over all tokens.

This is the loss of supervised training. ``LossInputs.advantages`` are the weights of the tokens, usually 1.
The sampler's log-probabilities are not used. The mean is over the tokens of the whole batch, not by row, and
equals the loss of ``transformers`` on the same batch.
"""

from __future__ import annotations

from learner.losses.kl import kl_penalty
from learner.losses.types import LossConfig, LossInputs, LossOutputs, token_mean


def cross_entropy(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss in nats per token, and the metrics of the KL if there is a reference."""
    penalty, metrics = kl_penalty(inputs, config)
    return LossOutputs(token_mean(-inputs.logprobs * inputs.advantages + penalty, inputs, config), metrics)
