"""Self-consistency at any cost: many solutions of each problem, and what a majority of some is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import floor
from statistics import fmean

from debate import Policy, Problem, Turn
from debate_rl.evaluation.grading import answer_of, grade_turn
from debate_rl.strategies.solving import Refused, SolvePlan, ask_all
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Asked, Solution
from debate_rl.strategies.work import Work, spent_on
from envs import DataError, Environment
from envs.types import Mode
from rewards import Truth

Values = dict[str, float]
"""A value of each problem, by its id."""


class Grader:
    """The grades of solutions; each answer to a problem is graded once."""

    def __init__(self, environment: Environment, mode: Mode) -> None:
        self.environment = environment
        self.mode: Mode = mode
        self._known = dict[tuple[str, str], Truth]()

    def answer(self, problem: Problem, turn: Turn) -> str | None:
        """Return the answer of a solution; None where it gives none."""
        return (answer_of(self.environment, problem, turn, self.mode) or "").strip() or None

    def grade(self, problem: Problem, turn: Turn) -> Truth:
        """Return True, False, "missing", or None where the grader gave no verdict."""
        key = problem.id, answer_of(self.environment, problem, turn, self.mode) or ""
        if key not in self._known:
            self._known[key] = grade_turn(self.environment, problem, turn, self.mode).verdict
        return self._known[key]


class Pool:
    """Solutions of each problem by one agent alone, and the cost of one: tokens and seconds, their means.

    DataError where the grader gives no verdict on any problem.

    ``spent()`` returns the seconds that ``policy`` has taken of the engine so far.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        plan: SolvePlan,
        policy: Policy,
        grader: Grader,
        spent: Callable[[], float],
    ) -> None:
        self.problems, self._plan, self._policy = problems, plan, policy
        self._grader, self._spent = grader, spent
        self.size = 0
        self._answers = dict[str, list[int | None]]()
        self._grades = dict[str, list[Truth]]()
        self.cost = {"generated": 0.0, "total": 0.0, "seconds": 0.0}

    def draw(self, count: int) -> None:
        """Have so many solutions of each problem, those that were drawn before among them."""
        if count <= self.size:
            return
        before = self._spent()
        found = ask_all(self.problems, self._plan, self._policy, partial(_solutions, count=count))
        counts = [
            spent_on(one.completion) for group in found if not isinstance(group, Refused) for one in group
        ]
        self.size, each = count, max(1, len(counts))
        generated, read = sum(out for _, out in counts), sum(into for into, _ in counts)
        self.cost = {
            "generated": generated / each,
            "total": (generated + read) / each,
            "seconds": (self._spent() - before) / each,
        }
        for problem, group in zip(self.problems, found, strict=True):
            if isinstance(group, Refused):
                raise DataError(group.reason)
            self._take(problem, group)
        if not self.right(1):
            raise DataError(f"self-consistency: the grader gave no verdict on any of {len(found)} problems")

    @property
    def missing(self) -> float:
        """The share of the solutions that give no answer."""
        return fmean(index is None for group in self._answers.values() for index in group)

    def _take(self, problem: Problem, group: Sequence[Solution]) -> None:
        tally = Tally(problem, self._plan.environment, 0)
        indices = [None if one.answer is None else tally.index_of(one.answer) for one in group]
        first = {index: at for at, index in reversed([*enumerate(indices)]) if index is not None}
        self._answers[problem.id] = indices
        self._grades[problem.id] = [
            self._grader.grade(problem, group[first[index]].turn) for index in range(len(first))
        ]

    def right(self, count: float) -> Values:
        """Return the chance that a majority of so many solutions is right, by problem.

        Ties are drawn fairly; the mean over all disjoint sets of so many that were drawn. A count between two
        numbers is the larger one on that share of the problems. Problems without a verdict are left out.
        """
        below = floor(count)
        part = count - below
        if part == 0:
            return {id: value for id in self._answers if (value := self._majority(id, below)) is not None}
        low, high = self.right(below), self.right(below + 1)
        return {id: (1 - part) * low[id] + part * high[id] for id in low if id in high}

    def _majority(self, id: str, count: int) -> float | None:
        answers, grades = self._answers[id], self._grades[id]
        starts = range(0, len(answers) - count + 1, count)
        chances = [majority_chance(answers[start : start + count], grades) for start in starts]
        known = [chance for chance in chances if chance is not None]
        return fmean(known) if known and len(known) == len(chances) else None


def majority_chance(answers: Sequence[int | None], grades: Sequence[Truth]) -> float | None:
    """Return the chance that the most frequent answer is right, ties drawn fairly; None without a verdict.

    >>> majority_chance([0, 1, None], [True, False]), majority_chance([1, 1, 0], [True, False])
    (0.5, 0.0)
    >>> majority_chance([None], []), majority_chance([0], [None]) is None
    (0.0, True)
    """
    counts = [answers.count(index) for index in range(len(grades))]
    most = max(counts, default=0)
    leading = [grade for grade, count in zip(grades, counts, strict=True) if most and count == most]
    if None in leading:
        return None
    return fmean(grade is True for grade in leading) if leading else 0.0


async def _solutions(asked: Asked, count: int) -> list[Solution]:
    work = Work(asked)
    await work.solve(count)
    return work.solutions
