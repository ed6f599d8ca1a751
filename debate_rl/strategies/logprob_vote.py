"""A vote weighted by the probability of each reply, normalised by its length [arXiv 2203.11171, eq. 1]."""

from __future__ import annotations

from debate_rl.strategies.confidence import mean_probability
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import vote


async def logprob_vote(asked: Asked) -> Answered:
    """Return the answer that weighs most, a solution's weight being exp(mean log p) of its tokens.

    ValueError where the engine gives no log-probabilities.
    """
    return await vote(asked, mean_probability)
