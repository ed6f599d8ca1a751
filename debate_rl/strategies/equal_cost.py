"""Self-consistency at the cost of anything: many solutions of each problem, and what a majority is worth.

Intervals are clustered by problem and differences paired by problem. All have the
same seed, so those that ask for solutions alone draw the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from math import floor
from statistics import fmean
from typing import TypeAlias

from debate import Policy, Problem, Turn
from debate_rl.evaluation.grading import answer_of, grade_turn
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.strategies.solving import Refused, SolvePlan, answered_of, ask_all, solve_all
from debate_rl.strategies.work import Answered, Asked, Judge, Solution, Tally, Work, spent_on
from envs import DataError, Environment
from envs.types import Mode
from rewards import Truth

Values: TypeAlias = Mapping[str, float]
"""A value of each problem, by its id."""
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is asked, the problems that it has answered, and how many there are."""
Solve: TypeAlias = Callable[..., list[Answered | Refused]]
"""How problems are solved, as ``solve_all``."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A strategy with the policy that it asks, and who judges; None is that policy."""

    plan: SolvePlan
    policy: Policy
    judge: Judge | None = None

    def answers(
        self, problems: Sequence[Problem], progress: Progress, name: str = "", solve: Solve = solve_all
    ) -> list[Answered]:
        """Return the answers to problems; DataError for one that could not be asked."""
        done, name = count(1), name or self.plan.strategy
        progress(name, 0, len(problems))

        def told(*_: object) -> None:
            progress(name, next(done), len(problems))

        found = solve(problems, self.plan, self.policy, judge=self.judge, told=told)
        return [answered_of(one, DataError) for one in found]


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
    """Solutions of each problem by one agent alone. ``cost``: of one, the means of its tokens.

    DataError where the grader gives no verdict on any problem.
    """

    def __init__(self, problems: Sequence[Problem], plan: SolvePlan, policy: Policy, grader: Grader) -> None:
        self.problems, self._plan, self._policy, self._grader = problems, plan, policy, grader
        self.size = 0
        self._answers = dict[str, list[int | None]]()
        self._grades = dict[str, list[Truth]]()
        self.cost = {"generated": 0.0, "total": 0.0}

    def draw(self, size: int) -> None:
        """Have so many solutions of each problem, those that were drawn before among them."""
        if size <= self.size:
            return
        found = ask_all(self.problems, self._plan, self._policy, partial(_solutions, size=size))
        groups = [answered_of(group, DataError) for group in found]
        spent = [spent_on(one.turn.completion) for group in groups for one in group]
        self.size, each = size, max(1, len(spent))
        generated = sum(out for _, out in spent)
        total = generated + sum(into for into, _ in spent)
        self.cost = {"generated": generated / each, "total": total / each}
        for problem, group in zip(self.problems, groups, strict=True):
            self._take(problem, group)
        if not self.right(1):
            raise DataError(f"self-consistency: the grader gave no verdict on any of {len(found)} problems")

    def _take(self, problem: Problem, group: Sequence[Solution]) -> None:
        tally = Tally(problem, self._plan.environment, 0)
        indices = [None if one.answer is None else tally.index_of(one.answer) for one in group]
        self._answers[problem.id] = indices
        self._grades[problem.id] = [
            self._grader.grade(problem, group[indices.index(at)].turn) for at in range(len(tally.answers))
        ]

    @property
    def missing(self) -> float:
        """The share of the solutions that give no answer."""
        return fmean(index is None for group in self._answers.values() for index in group)

    def right(self, size: float) -> Values:
        """Return the chance that a majority of so many solutions is right, by problem.

        Ties are drawn fairly; the mean over all disjoint sets of so many that were drawn. A size between two
        numbers is the larger one on that share of the problems. Problems without a verdict are left out.
        """
        below = floor(size)
        part = size - below
        if part:
            low, high = self.right(below), self.right(below + 1)
            return {id: (1 - part) * low[id] + part * high[id] for id in low if id in high}
        starts = range(0, self.size - below + 1, below)
        sets = [self.right_of(slice(start, start + below)) for start in starts]
        return {id: fmean(each[id] for each in sets) for id in sets[0] if all(id in each for each in sets)}

    def right_of(self, drawn: slice) -> Values:
        """Return the chance that the majority of these solutions is right, by problem."""
        chances = {
            id: majority_chance(answers[drawn], self._grades[id]) for id, answers in self._answers.items()
        }
        return {id: chance for id, chance in chances.items() if chance is not None}


def majority_chance(answers: Sequence[int | None], grades: Sequence[Truth]) -> float | None:
    """Return the chance that the most frequent answer is right, ties drawn fairly; None without a verdict.

    >>> majority_chance([0, 1, None], [True, False]), majority_chance([1, 1, 0], [True, False])
    (0.5, 0.0)
    >>> majority_chance([None], []), majority_chance([0], [None]) is None
    (0.0, True)
    """
    counts = [answers.count(index) for index in range(len(grades))]
    most = max(counts, default=0)
    leading = [grade for grade, times in zip(grades, counts, strict=True) if most and times == most]
    if None in leading:
        return None
    return fmean(grade is True for grade in leading) if leading else 0.0


async def _solutions(asked: Asked, size: int) -> list[Solution]:
    work = Work(asked)
    await work.solve(size)
    return work.solutions


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """One strategy over all problems. ``self_consistency``: of ``samples`` solutions, of as many tokens.

    ``difference``: accuracy minus self-consistency, paired by problem. Tokens and comparisons are means
    over the problems; ``settled`` is the share of problems on which it stopped early.
    """

    strategy: str
    accuracy: Estimate
    samples: int
    self_consistency: Estimate
    difference: Estimate
    generated: float
    read: float
    comparisons: float
    unread: float
    settled: float

    def plain(self) -> dict[str, object]:
        """Return the row for a JSON file."""
        return asdict(self)


def strategy_rows(
    problems: Sequence[Problem],
    contenders: Sequence[Contender],
    sampler: Contender,
    *,
    progress: Progress = lambda *_: None,
) -> list[StrategyRow]:
    """Return a row for each strategy; ``sampler`` samples the solutions of self-consistency.

    The generated tokens of a strategy, its mean over the problems, are divided by those of one solution and
    rounded: so many solutions, at least one, are those of self-consistency. A problem on which the grader
    gave no verdict on an answer that counts is left out of the row. DataError where that leaves none.
    """
    grader = Grader(sampler.plan.environment, sampler.plan.mode)
    found = {one.plan.strategy: one.answers(problems, progress) for one in contenders}
    pool = Pool(problems, sampler.plan, sampler.policy, grader)
    pool.draw(sampler.plan.samples)
    each = pool.cost["generated"]
    generated = {name: mean_of(of, "tokens_generated") for name, of in found.items()}
    sizes = {name: max(1, round(spent / each)) if each else 1 for name, spent in generated.items()}
    pool.draw(max(sizes.values()))
    rows: list[StrategyRow] = []
    for name, answers in found.items():
        grades: dict[str, Truth] = {
            problem.id: False if one.turn is None else grader.grade(problem, one.turn)
            for problem, one in zip(problems, answers, strict=True)
        }
        right = {id: float(grade is True) for id, grade in grades.items() if grade is not None}
        majority = pool.right_of(slice(sizes[name]))
        ids = [id for id in right if id in majority]
        if not ids:
            raise DataError(f"{name}: the grader gave no verdict on any of {len(problems)} problems")
        gaps = [right[id] - majority[id] for id in ids]
        costs = ("tokens_generated", "tokens_read", "comparisons", "unread")
        row = StrategyRow(
            name,
            clustered_mean([right[id] for id in ids], ids),
            sizes[name],
            clustered_mean([majority[id] for id in ids], ids),
            clustered_mean(gaps, ids, signed=True),
            *(mean_of(answers, cost) for cost in costs),
            settled=fmean(one.ended == "settled" for one in answers),
        )
        rows.append(row)
    return rows


def mean_of(answers: Sequence[Answered], name: str) -> float:
    """Return the mean of a field over answers."""
    return fmean(getattr(one, name) for one in answers)
