"""Greedy: one solution at temperature 0."""

from __future__ import annotations

from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import best_of
from debate_rl.strategies.work import Work, need


async def greedy(asked: Asked) -> Answered:
    """Return the answer of one solution by one agent alone, at temperature 0."""
    need(asked, 1, "one solution")
    work, tally = Work(asked), Tally(asked.problem, asked.environment, asked.seed)
    await work.solve(1, greedy=True)
    for index, solution in enumerate(work.solutions):
        tally.add(index, solution)
    return work.answered(tally, best_of(work, tally) if work.solutions else None, "done")
