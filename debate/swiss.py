"""A final ballot by Swiss pairing: judges vote in stages, one pair each, and later stages pair the leaders.

After V1 [arXiv 2603.04304]: first every solution is compared, then the solutions with the best results, which
are still in doubt. In each stage half of the remaining judges vote, so N judges need about log2 N + 1 stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from random import Random
from statistics import fmean
from typing import TypeAlias

from debate.early_stop import Agreed
from debate.seeds import derive_seed
from debate.types import Outcome, Problem, Turn, Vote

Pair: TypeAlias = tuple[int, int]
"""Two agents whose solutions are compared."""
Result: TypeAlias = tuple[Pair, int]
"""A pair and its judge's verdict: +1 for the first, -1 for the second, 0 for a tie or no verdict."""

_FOR_LEFT: dict[Outcome, int] = {"left": 1, "right": -1, "tie": 0}


def next_pairs(answers: Sequence[int], said: Mapping[int, Result], *, seed: int) -> dict[int, Pair]:
    """Return the judges that vote next, each with its pair; {} once all N have voted.

    ``answers``, (N,): equal numbers for solutions with the same answer. ``said``: the results so far, by
    judge. Solutions without a comparison come first, then those with the best mean result. A pair has two
    different answers if possible, and never the judge's own work. Judges whose own work leads vote first,
    because later their work would be needed in the pairs of leaders. A stage compares no solution twice.
    Needs 3 agents.

    >>> next_pairs([0, 0, 1], {}, seed=1)
    {1: (2, 0)}
    >>> next_pairs([0, 0, 1], {1: ((2, 0), 1)}, seed=1)
    {2: (1, 0)}
    """
    results: dict[int, list[int]] = {agent: [] for agent in range(len(answers))}
    for (first, second), outcome in said.values():
        results[first].append(outcome)
        results[second].append(-outcome)
    drawn = Random(derive_seed(seed, "swiss")).sample(range(len(answers)), len(answers))
    ranking = sorted(drawn, key=lambda agent: _place(results[agent]))
    free = [judge for judge in ranking if judge not in said]
    asked, left = dict[int, Pair](), ranking
    for judge in free:
        sides = [agent for agent in left if agent != judge]
        if len(asked) < max(1, len(free) // 2) and len(sides) >= 2:
            first, *others = sides
            second = next((agent for agent in others if answers[agent] != answers[first]), others[0])
            asked[judge] = (first, second)
            left = [agent for agent in left if agent not in (first, second)]
    return asked


def _place(results: Sequence[int]) -> tuple[float, int]:
    """Return a solution's sort key: highest mean result first; for equal means, fewest results first."""
    return (-fmean(results) if results else -inf, len(results))


def same_answers(problem: Problem, solutions: Sequence[Turn], agreed: Agreed) -> list[int]:
    """Return a number for each solution, (N,): the index of the first solution with the same answer.

    A solution without an answer is different from all others.
    """
    numbers: list[int] = []
    for index, turn in enumerate(solutions):
        earlier = (number for number in numbers if agreed(problem, [solutions[number], turn]))
        numbers.append(next(earlier, index))
    return numbers


def result_of(ballot: Turn, votes: Iterable[Vote]) -> Result:
    """Return a turn's verdict on its pair. Contradictory votes count as no verdict."""
    first, second = (turn.agent for turn in ballot.compared)
    told = {_FOR_LEFT[vote.outcome] * (1 if vote.left.agent == first else -1) for vote in votes}
    return (first, second), told.pop() if len(told) == 1 else 0
