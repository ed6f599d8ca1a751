"""A vote weighted by how low the entropy of each reply's tail is, after DeepConf [arXiv 2508.15260].

DeepConf takes the top-k log-probabilities of each step; here it is that of the sampled token: ``confidence``.
"""

from __future__ import annotations

from debate_rl.strategies.confidence import tail_probability
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import vote


async def tail_vote(asked: Asked) -> Answered:
    """Return the answer that weighs most, a solution's weight being exp(-entropy) of its tail.

    ValueError where the engine gives no log-probabilities.
    """
    return await vote(asked, tail_probability)
