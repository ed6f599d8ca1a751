"""The likelihood reward: how well a frozen model predicts the gold answer from the reasoning alone.

    R = mean over the gold answer's tokens of log p(token | reasoning, tokens before)  -  that of a baseline

The question is hidden, so the reasoning must contain everything needed to predict the answer [Markovian
training, arXiv 2404.18988]. The mean over tokens follows the source: a long answer is not less likely because
of its length. The values are measured where the model is loaded (``debate_rl.likelihood``) and stored with
the debate.
"""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from debate.values import Value
from rewards.config import RewardConfig
from rewards.types import Rewards, Stream


class Likelihoods(Value, frozen=True):
    """The gold answer's mean log-probability per token under a frozen model, in nats, without the question.

    ``logprobs`` (N, R): after the reasoning of each solution; None if it did not fit the context.
    ``baseline``: after the baseline of the problem; None without one.
    """

    logprobs: Stream
    baseline: float | None = None


def likelihood_stream(likelihoods: Likelihoods) -> Stream:
    """Return each solution's log-probability minus the baseline, (N, R).

    >>> likelihood_stream(Likelihoods(((-0.5, None),), -2.0))
    ((1.5, None),)
    """
    baseline = likelihoods.baseline or 0.0
    return tuple(
        tuple(None if value is None else value - baseline for value in row) for row in likelihoods.logprobs
    )


def with_likelihood(rewards: Rewards, likelihoods: Likelihoods | None, config: RewardConfig) -> Rewards:
    """Return the rewards with a likelihood stream, if the scheme has one and it was measured."""
    if likelihoods is None or not config.reads_likelihood:
        return replace(rewards, likelihood=UNSET)
    return replace(rewards, likelihood=likelihood_stream(likelihoods))
