"""Strategies compared with self-consistency at the same cost.

One agent alone samples many solutions of each problem; the accuracy of self-consistency with any number of
samples is computed from these. Intervals are clustered by problem, and differences are paired by problem. All
strategies have the same seed, so strategies that request only solutions get the same solutions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from math import ceil, floor
from statistics import fmean
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from debate import DebateConfig, Policy, Problem, Turn
from debate_rl.evaluation.grading import answer_of, grade_turn
from debate_rl.evaluation.report import plain_estimate
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.strategies.solving import (
    STRATEGIES,
    Refused,
    answered_of,
    ask_all,
    check_plan,
    solve_all,
)
from debate_rl.strategies.voting import Tally
from debate_rl.strategies.work import Answered, Judge, Solution, SolvePlan, Work, spent_on
from envs import DataError, Environment
from envs.types import Mode
from rewards import Truth

Values: TypeAlias = Mapping[str, float]
"""A value per problem, by problem id."""
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a strategy, the number of answered problems, and the number of problems."""
Solve: TypeAlias = Callable[..., list[Answered | Refused]]
"""A function with the signature of ``solve_all``."""
Budget: TypeAlias = Literal["generated", "total"]
BUDGETS: Final[Mapping[Budget, str]] = {
    "generated": "generated tokens",
    "total": "tokens read and generated",
}
"""The kinds of cost at which self-consistency is compared."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A strategy to compare. ``adapted`` adapts a plan to the strategy.

    ``solve``: like ``solve_all``. ``refuses``: returns why the strategy cannot solve the problems, or None.
    """

    strategy: str
    adapted: Callable[[SolvePlan], SolvePlan] = lambda plan: plan
    solve: Solve = solve_all
    refuses: Callable[[SolvePlan, Sequence[Problem]], str | None] = lambda *_: None

    @property
    def tools(self) -> bool:
        """True if solutions of the strategy run programs, whatever the recipe says."""
        return STRATEGIES[self.strategy].tools

    def plan(self, plan: SolvePlan) -> SolvePlan:
        """Return the plan of the contender."""
        own = replace(plan, strategy=self.strategy)
        tools = own.protocol.model_copy(update={"tools": "python"})
        return self.adapted(replace(own, protocol=tools) if self.tools else own)

    def why_not(
        self, plan: SolvePlan, problems: Sequence[Problem], judge: DebateConfig | None = None
    ) -> str | None:
        """Return why the strategy cannot solve these problems, or None if it can.

        ``judge``: the protocol of a separate judge model.
        """
        try:
            check_plan(self.plan(plan), problems, judge)
        except ValueError as error:
            return str(error)
        return self.refuses(plan, problems)


CONTENDERS: Mapping[str, Contender] = MappingProxyType(
    {
        "single": Contender("majority", lambda plan: replace(plan, samples=1)),
        **{name: Contender(name) for name in STRATEGIES},
    }
)
"""Every strategy, and "single": one sampled solution."""
SELECTION = ("best_of_n", "swiss", "genselect")
LADDER = ("single", "greedy", "majority", *SELECTION, "self_correction", "debate_majority", "debate_winner")
"""The strategies that a debate is compared with, cheaper ones first."""


class Grader:
    """Grades solutions, and each different answer to a problem only once."""

    def __init__(self, environment: Environment, mode: Mode) -> None:
        self.environment = environment
        self.mode: Mode = mode
        self._known = dict[tuple[str, str], Truth]()

    def answer(self, problem: Problem, turn: Turn) -> str | None:
        """Return the answer of a solution, or None."""
        return (answer_of(self.environment, problem, turn, self.mode) or "").strip() or None

    def grade(self, problem: Problem, turn: Turn) -> Truth:
        """Return True, False, "missing", or None if the grader gave no verdict."""
        key = problem.id, answer_of(self.environment, problem, turn, self.mode) or ""
        if key not in self._known:
            self._known[key] = grade_turn(self.environment, problem, turn, self.mode).verdict
        return self._known[key]


class Pool:
    """Solutions of each problem by one agent alone. ``cost``: the mean tokens of one solution.

    DataError if the grader gives no verdict on any problem.
    """

    def __init__(self, problems: Sequence[Problem], plan: SolvePlan, policy: Policy, grader: Grader) -> None:
        self.problems, self._plan, self._policy, self._grader = problems, plan, policy, grader
        self.size = 0
        self._answers = dict[str, list[int | None]]()
        self._grades = dict[str, list[Truth]]()
        self.cost = {"generated": 0.0, "total": 0.0}

    def draw(self, size: int) -> None:
        """Sample solutions until each problem has ``size`` of them, including those sampled before."""
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
            tally = Tally(problem, self._plan.environment, 0)
            indices = [None if one.answer is None else tally.index_of(one.answer) for one in group]
            firsts = (group[indices.index(at)].turn for at in range(len(tally.answers)))
            self._answers[problem.id] = indices
            self._grades[problem.id] = [self._grader.grade(problem, turn) for turn in firsts]
        if not self.right(1):
            raise DataError(f"self-consistency: the grader gave no verdict on any of {len(found)} problems")

    @property
    def missing(self) -> float:
        """The fraction of solutions without an answer."""
        return fmean(index is None for group in self._answers.values() for index in group)

    def right(self, size: float) -> Values:
        """Return the chance that the majority of ``size`` solutions is right, by problem.

        Ties are broken uniformly at random. The chance is the mean over disjoint sets of this size. For a
        fractional size, it is interpolated between the two nearest integers. Problems without a verdict
        are left out.
        """
        below = floor(size)
        part = size - below
        if part:
            low, high = self.right(below), self.right(below + 1)
            return {id: (1 - part) * low[id] + part * high[id] for id in low if id in high}
        found: dict[str, float] = {}
        for id, answers in self._answers.items():
            sets = (answers[start : start + below] for start in range(0, self.size - below + 1, below))
            chances = [majority_chance(one, self._grades[id]) for one in sets]
            known = [chance for chance in chances if chance is not None]
            if len(known) == len(chances):
                found[id] = fmean(known)
        return found


def majority_chance(answers: Sequence[int | None], grades: Sequence[Truth]) -> float | None:
    """Return the chance that the most frequent answer is right, with random ties, or None without a verdict.

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


async def _solutions(work: Work, size: int) -> list[Solution]:
    await work.solve(size)
    return work.solutions


class Equal(NamedTuple):
    """Self-consistency with ``samples`` solutions, at the cost of a strategy; its accuracy by problem."""

    samples: float
    right: Values


@dataclass(frozen=True, slots=True)
class Measured:
    """The results of a strategy on all problems.

    ``right`` and ``oracle``, by problem id: 1 if the answer is right, and if any solution is right. Problems
    with an ungraded solution are left out. ``cost``: the mean for each budget. ``read``, ``comparisons``,
    ``unread``: means per problem. ``settled``: the fraction of problems on which the strategy stopped early.
    ``missing``: the fraction of the newest solutions without an answer. ``answers``: one per problem.
    """

    name: str
    right: Values
    oracle: Values
    cost: Mapping[Budget, float]
    read: float
    comparisons: float
    unread: float
    settled: float
    missing: float
    answers: Sequence[Answered]
    equal: Mapping[Budget, Equal]

    @property
    def accuracy(self) -> Estimate:
        """The fraction of problems on which the strategy is right."""
        return clustered_mean([*self.right.values()], [*self.right])

    @property
    def oracle_gap(self) -> Estimate:
        """The fraction of problems with at least one right solution, minus the accuracy."""
        return gap(self.oracle, self.right)

    def compared(self, budget: Budget) -> tuple[float, Estimate, Estimate]:
        """Return the number of solutions at equal cost, their majority's accuracy, and the lead over it."""
        samples, right = self.equal[budget]
        return samples, clustered_mean([*right.values()], [*right]), gap(self.right, right)

    def plain(self) -> dict[str, object]:
        """Return the figures for a JSON file."""
        equal: dict[str, object] = {}
        for budget in self.equal:
            samples, worth, less = self.compared(budget)
            figures = {"self_consistency": plain_estimate(worth), "difference": plain_estimate(less)}
            equal[budget] = {"samples": samples, **figures}
        return {
            "strategy": self.name,
            "accuracy": plain_estimate(self.accuracy),
            "generated": self.cost["generated"],
            "read": self.read,
            "comparisons": self.comparisons,
            "unread": self.unread,
            "settled": self.settled,
            "missing": self.missing,
            "oracle_gap": plain_estimate(self.oracle_gap),
            "equal": equal,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of strategies on the same problems, and the reasons why others were refused, by name.

    ``each``: the cost of one solution. ``missing``: the fraction of single solutions without an answer.
    """

    problems: Sequence[Problem]
    measured: Mapping[str, Measured]
    refused: Mapping[str, str]
    each: Mapping[str, float]
    seed: int
    samples: int
    grader: Grader
    missing: float = 0.0

    def plain(self) -> dict[str, object]:
        """Return the figures for a JSON file."""
        return {
            "problems": len(self.problems),
            "seed": self.seed,
            "samples": self.samples,
            "one_solution": {**self.each, "missing": self.missing},
            "strategies": [one.plain() for one in self.measured.values()],
            "refused": dict(self.refused),
        }


def compare_strategies(
    problems: Sequence[Problem],
    contenders: Mapping[str, Contender],
    plan: SolvePlan,
    policy: Policy,
    *,
    judge: Judge | None = None,
    programs: Policy | None = None,
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Return the results of the contenders, each with self-consistency at equal cost.

    The number of self-consistency solutions is the contender's mean cost divided by the mean cost of one
    solution, but at least 1; fractions are interpolated. ``programs``: the policy of contenders that run
    programs; None: ``policy``. DataError for a problem that does not fit the context, or if the grader
    gives no verdict on any problem.
    """
    grader = Grader(plan.environment, plan.mode)
    refused, found = dict[str, str](), dict[str, Measured]()
    for name, one in contenders.items():
        if why := one.why_not(plan, problems, judge and judge.protocol):
            refused[name] = why
            continue
        done = count(1)
        progress(name, 0, len(problems))

        def on_answer(*_: object, name: str = name, done: count[int] = done) -> None:
            progress(name, next(done), len(problems))

        speaker = programs if one.tools and programs is not None else policy
        came = one.solve(problems, one.plan(plan), speaker, judge=judge, on_answer=on_answer)
        found[name] = _measured(name, problems, [answered_of(each, DataError) for each in came], grader)
    pool = Pool(problems, CONTENDERS["majority"].plan(plan), policy, grader)
    pool.draw(plan.samples)
    each, missing = pool.cost, pool.missing
    sizes = {
        name: {budget: equal_samples(one.cost[budget], each[budget]) for budget in BUDGETS}
        for name, one in found.items()
    }
    progress("self-consistency", 0, len(problems))
    pool.draw(ceil(max((size for of in sizes.values() for size in of.values()), default=1.0)))
    progress("self-consistency", len(problems), len(problems))
    measured = {
        name: replace(one, equal={at: Equal(size, pool.right(size)) for at, size in sizes[name].items()})
        for name, one in found.items()
    }
    return Comparison(problems, measured, refused, each, plan.seed, plan.samples, grader, missing)


def equal_samples(cost: float, each: float) -> float:
    """Return the number of solutions of cost ``each`` that cost ``cost`` together, at least 1.

    >>> equal_samples(35.0, 10.0), equal_samples(5.0, 10.0), equal_samples(5.0, 0.0)
    (3.5, 1.0, 1.0)
    """
    return max(1.0, cost / each) if each else 1.0


def _measured(
    name: str, problems: Sequence[Problem], answers: Sequence[Answered], grader: Grader
) -> Measured:
    right, oracle, newest = dict[str, float](), dict[str, float](), list[bool]()
    for problem, answered in zip(problems, answers, strict=True):
        grades: list[Truth] = [grader.grade(problem, turn) for turn in answered.turns]
        grade = False if answered.turn is None else grader.grade(problem, answered.turn)
        if None in (grade, *grades):
            continue
        right[problem.id] = float(grade is True)
        oracle[problem.id] = float(any(one is True for one in grades))
        last = max((turn.id.round for turn in answered.turns), default=0)
        graded = zip(answered.turns, grades, strict=True)
        newest += [one == "missing" for turn, one in graded if turn.id.round == last]
    if not right:
        raise DataError(f"{name}: the grader gave no verdict on any of {len(answers)} problems")
    generated, read = (
        fmean(one.tokens_generated for one in answers),
        fmean(one.tokens_read for one in answers),
    )
    return Measured(
        name,
        right,
        oracle,
        {"generated": generated, "total": generated + read},
        read,
        comparisons=fmean(one.comparisons for one in answers),
        unread=fmean(one.unread for one in answers),
        settled=fmean(one.ended == "settled" for one in answers),
        missing=fmean(newest) if newest else 1.0,
        answers=answers,
        equal={},
    )


def gap(one: Values, other: Values) -> Estimate:
    """Return the mean difference over the problems with a value in both. DataError without such problems."""
    values = {id: one[id] - other[id] for id in one if id in other}
    if not values:
        raise DataError("the grader gave no verdict on any compared answer")
    return clustered_mean(list(values.values()), list(values), signed=True)
