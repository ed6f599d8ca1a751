"""How sure a model was of its own reply, from the log-probabilities of the tokens that it sampled.

No engine gives the entropy of every step, but each reports the log-probability of the token that it drew:
minus that, over a window, is an unbiased estimate of the mean entropy there, of the distribution that was
sampled (temperature, top_p and top_k applied).
"""

from __future__ import annotations

from math import exp
from statistics import fmean

from debate import Completion
from debate_rl.strategies.types import Solution

WINDOW = 2048
"""Tokens of the tail at most [DeepConf, arXiv 2508.15260]; of a short reply it is the last quarter."""


def sampled_logprobs(completion: Completion) -> list[float]:
    """Return the log-probabilities, in nats, of the tokens that were sampled, and not written by force.

    ValueError where the engine gave none.
    """
    if not completion.logprobs:
        raise ValueError(
            "this strategy weighs solutions by the log-probabilities of their tokens, and the server gives "
            "none (vLLM's does at temperature 1); use majority, or a model in this process or in vLLM"
        )
    forced = set(completion.forced)
    return [value for index, value in enumerate(completion.logprobs) if index not in forced]


def mean_probability(solution: Solution) -> float:
    """Return the geometric mean probability of a reply's tokens, in (0, 1]: exp(mean log p).

    The length-normalised weight of self-consistency [arXiv 2203.11171, eq. 1].
    """
    return exp(fmean(sampled_logprobs(solution.completion) or [0.0]))


def tail_probability(solution: Solution) -> float:
    """Return the same of the reply's tail, in (0, 1]: exp(-H), H the estimated mean entropy of its tokens."""
    every = sampled_logprobs(solution.completion)
    return exp(fmean(every[-tail_length(len(every)) :] or [0.0]))


def tail_length(tokens: int) -> int:
    """Return how many tokens the tail of a reply has: its last quarter, ``WINDOW`` at most.

    >>> tail_length(10), tail_length(100_000), tail_length(0)
    (3, 2048, 1)
    """
    return max(1, min(WINDOW, -(-tokens // 4)))
