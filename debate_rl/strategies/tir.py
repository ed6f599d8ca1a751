"""Tool-integrated reasoning: one solution at temperature 0 that may run programs [ToRA, arXiv 2309.17452]."""

from __future__ import annotations

from debate_rl.strategies.greedy import greedy
from debate_rl.strategies.types import Answered, Asked


async def tir(asked: Asked) -> Answered:
    """Return the answer of one greedy solution; ``asked.policy`` runs the programs that it writes."""
    return await greedy(asked)
