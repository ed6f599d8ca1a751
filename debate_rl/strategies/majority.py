"""Majority, maj@k: the answer that the most of k solutions give [self-consistency, arXiv 2203.11171]."""

from __future__ import annotations

from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import vote


async def majority(asked: Asked) -> Answered:
    """Return the most frequent answer of ``asked.samples`` solutions; ties are drawn by the seed."""
    return await vote(asked)
