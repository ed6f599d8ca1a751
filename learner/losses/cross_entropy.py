"""Cross-entropy of given replies: -logprob of each token, times its weight, averaged over all tokens.

The loss of supervised training. ``LossInputs.advantages`` are the weights of the tokens, 1 where a reply is
learnt as it is; the log-probabilities of a sampler are not looked at. The mean is over the tokens of the
whole batch, and not by row: the one that ``transformers`` has of the same batch.
"""

from __future__ import annotations

from learner.losses.kl import kl_penalty
from learner.losses.types import LossConfig, LossInputs, LossOutputs, token_mean


def cross_entropy(inputs: LossInputs, config: LossConfig) -> LossOutputs:
    """Return the loss in nats a token, and the metrics of the KL where there is a reference."""
    penalty, metrics = kl_penalty(inputs, config)
    return LossOutputs(token_mean(-inputs.logprobs * inputs.advantages + penalty, inputs, config), metrics)
