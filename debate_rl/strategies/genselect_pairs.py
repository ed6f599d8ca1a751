"""GenSelect in pairs: a knock-out tournament in which the model names the better of two solutions."""

from __future__ import annotations

from debate_rl.strategies.selecting import knock_out
from debate_rl.strategies.types import Answered, Asked


async def genselect_pairs(asked: Asked) -> Answered:
    """Return the answer of the solution that wins the knock-out of ``asked.samples`` of them."""
    return await knock_out(asked, 2)
