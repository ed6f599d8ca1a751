"""The likelihood reward: how well a frozen reader predicts the gold answer from the reasoning alone.

    R = mean over the gold answer's tokens of log p(token | reasoning, tokens before)  -  that of a baseline

The question is hidden, so what the reader needs must be in the reasoning [Markovian training, arXiv
2404.18988]. The mean over tokens is the source's: a long answer is no less likely for its length. The values
are measured where the model is (``debate_rl.likelihood``) and stored with the debate.
"""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from debate.values import Value
from rewards.config import RewardConfig
from rewards.types import Rewards, Stream


class Likelihoods(Value, frozen=True):
    """What a reader gives the gold answer, in nats for each of its tokens, the question hidden.

    ``logprobs`` (N, R): after the reasoning of each solution; None if it did not fit the context.
    ``baseline``: behind the baseline of the problem; None without one.
    """

    logprobs: Stream
    baseline: float | None = None


def likelihood_stream(likelihoods: Likelihoods) -> Stream:
    """Return each solution's log-probability minus the baseline's, (N, R).

    >>> likelihood_stream(Likelihoods(((-0.5, None),), -2.0))
    ((1.5, None),)
    """
    baseline = likelihoods.baseline or 0.0
    return tuple(
        tuple(None if value is None else value - baseline for value in row) for row in likelihoods.logprobs
    )


def with_likelihood(rewards: Rewards, likelihoods: Likelihoods | None, config: RewardConfig) -> Rewards:
    """Return the rewards with a likelihood stream, under a scheme that has one and where it was measured."""
    if likelihoods is None or not config.reads_likelihood:
        return replace(rewards, likelihood=UNSET)
    return replace(rewards, likelihood=likelihood_stream(likelihoods))
