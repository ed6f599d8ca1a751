"""The vote over solutions that several strategies share: it is asked for in waves that waste nothing."""

from __future__ import annotations

from collections.abc import Callable

from debate_rl.strategies.tally import Tally, fewest_to_settle, settled
from debate_rl.strategies.types import Answered, Asked, End, Solution
from debate_rl.strategies.work import Work, need

Weight = Callable[[Solution], float]
"""The weight of a solution, in [0, 1]."""


def one_each(solution: Solution) -> float:
    """Return 1.0: every solution counts the same."""
    return 1.0


async def vote(asked: Asked, weight: Weight = one_each) -> Answered:
    """Return the answer that weighs most among ``asked.samples`` solutions.

    Solutions are asked for in waves, each of as many as must come before the lead may be out of reach: so
    no more are asked for than one by one, in about log2 waves. The solution that is returned is the one of
    most weight that gives the answer, the first of several.
    """
    need(asked, 1, "one solution")
    work, tally = Work(asked), Tally(asked.problem, asked.environment, asked.seed)
    ended: End = "done"
    while work.spent is None and (left := asked.samples - len(work.solutions)):
        count = fewest_to_settle(tally.lead(), left)
        before = len(work.solutions)
        await work.solve(count)
        for index, solution in enumerate(work.solutions[before:], start=before):
            tally.add(index, solution, weight(solution))
        left = asked.samples - len(work.solutions)
        if left and settled(tally.lead(), left):
            ended = "settled"
            break
    return work.answered(tally, best_of(work, tally, weight), ended)


def best_of(work: Work, tally: Tally, weight: Weight = one_each) -> int | None:
    """Return the solution of most weight that gives the leading answer; None without any answer."""
    first = tally.leader()
    if first is None:
        return None
    return max(tally.members[first], key=lambda index: (weight(work.solutions[index]), -index))
