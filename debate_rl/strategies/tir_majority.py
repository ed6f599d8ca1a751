"""Tool-integrated reasoning with a majority over k solutions that may run programs."""

from __future__ import annotations

from debate_rl.strategies.majority import majority
from debate_rl.strategies.types import Answered, Asked


async def tir_majority(asked: Asked) -> Answered:
    """Return the most frequent answer; ``asked.policy`` runs the programs that solutions write."""
    return await majority(asked)
