"""The ladder: every way to an answer compared with self-consistency at the same cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from debate import DebateConfig, Policy, Problem
from debate_rl.evaluation.report import plain_estimate
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.strategies.equal_cost import Contender, Grader, Pool, Progress, Solve, Values, mean_of
from debate_rl.strategies.solving import SolvePlan, solve_all
from debate_rl.strategies.work import Answered, Judge
from envs import DataError
from rewards import Truth

Budget: TypeAlias = Literal["generated", "total"]
BUDGETS: Final[Mapping[Budget, str]] = {
    "generated": "generated tokens",
    "total": "tokens read and generated",
}
"""What self-consistency is given the same of."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to an answer: a strategy, and how the plan is ``adapted`` to it.

    ``solve``: as ``solve_all``. ``refuses``: why the plan or the problems do not allow it, or None.
    """

    strategy: str
    adapted: Callable[[SolvePlan], SolvePlan] = lambda plan: plan
    solve: Solve = solve_all
    refuses: Callable[[SolvePlan, Sequence[Problem]], str | None] = lambda *_: None

    def plan(self, plan: SolvePlan) -> SolvePlan:
        """Return the plan of the rung."""
        return self.adapted(replace(plan, strategy=self.strategy))

    def why_not(
        self, plan: SolvePlan, problems: Sequence[Problem], judge: DebateConfig | None = None
    ) -> str | None:
        """Return why it cannot be asked these problems; None where it can. ``judge``: another's protocol."""
        try:
            self.plan(plan).check(problems, judge)
        except ValueError as error:
            return str(error)
        return self.refuses(plan, problems)


CHEAPER = ("greedy", "majority", "best_of_n", "swiss", "genselect", "self_correction")
RUNGS: Mapping[str, Rung] = MappingProxyType(
    {
        "single": Rung("majority", lambda plan: replace(plan, samples=1)),
        **{name: Rung(name) for name in (*CHEAPER, "debate_majority", "debate_winner")},
    }
)
"""Every rung by name, the cheaper ways first."""


class Equal(NamedTuple):
    """Self-consistency at the cost of a rung: of ``samples`` solutions, right by problem."""

    samples: float
    right: Values


@dataclass(frozen=True, slots=True)
class Climbed:
    """One rung over all problems, by the id of each: whether it was right, and what it cost and how it went.

    ``cost``: a mean for each budget; ``read``, ``comparisons``, ``unread``: means. ``oracle``: whether any of
    its solutions was right. ``missing``: the share of the newest solutions that give no answer. Problems on
    which the grader gave no verdict on any solution of the rung are left out of both. ``answers``: to each.
    """

    name: str
    right: Values
    oracle: Values
    cost: Mapping[Budget, float]
    read: float
    comparisons: float
    unread: float
    missing: float
    answers: Sequence[Answered]
    equal: Mapping[Budget, Equal]

    @property
    def accuracy(self) -> Estimate:
        """The share of problems that it is right on."""
        return _mean(self.right)

    @property
    def oracle_gap(self) -> Estimate:
        """The share of problems with any right solution, less its accuracy."""
        return gap(self.oracle, self.right)

    def compared(self, budget: Budget) -> tuple[float, Estimate, Estimate]:
        """Return how many solutions have its cost, what their majority is worth, and the rung less that."""
        samples, right = self.equal[budget]
        return samples, _mean(right), gap(self.right, right)

    def plain(self) -> dict[str, object]:
        """Return the rung for a JSON file."""
        equal: dict[str, object] = {}
        for budget in self.equal:
            samples, worth, less = self.compared(budget)
            figures = {"self_consistency": plain_estimate(worth), "difference": plain_estimate(less)}
            equal[budget] = {"samples": samples, **figures}
        return {
            "rung": self.name,
            "accuracy": plain_estimate(self.accuracy),
            "generated": self.cost["generated"],
            "read": self.read,
            "comparisons": self.comparisons,
            "unread": self.unread,
            "missing": self.missing,
            "oracle_gap": plain_estimate(self.oracle_gap),
            "equal": equal,
        }


@dataclass(frozen=True, slots=True)
class Ladder:
    """What was climbed, by rung, and of the others why not.

    ``each``: the cost of one solution; ``missing``: the share of self-consistency's that give no answer.
    """

    problems: Sequence[Problem]
    climbed: Mapping[str, Climbed]
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
            "rungs": [one.plain() for one in self.climbed.values()],
            "refused": dict(self.refused),
        }


def climb(
    problems: Sequence[Problem],
    names: Sequence[str],
    plan: SolvePlan,
    policy: Policy,
    *,
    judge: Judge | None = None,
    progress: Progress = lambda *_: None,
    rungs: Mapping[str, Rung] = RUNGS,
) -> Ladder:
    """Return the rungs of these names over the problems, each beside self-consistency at its cost.

    The cost of a rung, its mean over the problems, divided by that of one solution says how many solutions
    self-consistency has: 1 at least, and between two whole numbers the larger one on a share of the problems.
    All have the same seed. DataError for a problem that cannot be asked, or where the grader gives no verdict
    on any.
    """
    grader = Grader(plan.environment, plan.mode)
    refused = {name: "it was not asked for" for name in rungs if name not in names}
    found = dict[str, Climbed]()
    for name in names:
        if why := rungs[name].why_not(plan, problems, judge and judge.protocol):
            refused[name] = why
            continue
        one = Contender(rungs[name].plan(plan), policy, judge)
        answers = one.answers(problems, progress, name, rungs[name].solve)
        found[name] = _measured(name, problems, answers, grader)
    pool = Pool(problems, RUNGS["majority"].plan(plan), policy, grader)
    pool.draw(plan.samples)
    each, missing = pool.cost, pool.missing
    sizes = {
        name: {budget: equal_samples(one.cost[budget], each[budget]) for budget in BUDGETS}
        for name, one in found.items()
    }
    progress("self-consistency", 0, len(problems))
    pool.draw(ceil(max((size for of in sizes.values() for size in of.values()), default=1.0)))
    progress("self-consistency", len(problems), len(problems))
    climbed = {
        name: replace(one, equal={at: Equal(size, pool.right(size)) for at, size in sizes[name].items()})
        for name, one in found.items()
    }
    return Ladder(problems, climbed, refused, each, plan.seed, plan.samples, grader, missing)


def equal_samples(cost: float, each: float) -> float:
    """Return how many solutions have a cost, 1 at least.

    >>> equal_samples(35.0, 10.0), equal_samples(5.0, 10.0), equal_samples(5.0, 0.0)
    (3.5, 1.0, 1.0)
    """
    return max(1.0, cost / each) if each else 1.0


def _measured(name: str, problems: Sequence[Problem], answers: Sequence[Answered], grader: Grader) -> Climbed:
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
    generated, read = mean_of(answers, "tokens_generated"), mean_of(answers, "tokens_read")
    return Climbed(
        name,
        right,
        oracle,
        {"generated": generated, "total": generated + read},
        read,
        mean_of(answers, "comparisons"),
        mean_of(answers, "unread"),
        fmean(newest) if newest else 1.0,
        answers,
        {},
    )


def _mean(values: Values) -> Estimate:
    return clustered_mean(list(values.values()), list(values))


def gap(one: Values, other: Values) -> Estimate:
    """Return the mean difference over the problems with a value in both; DataError where there are none."""
    values = {id: one[id] - other[id] for id in one if id in other}
    if not values:
        raise DataError("no problem has a verdict of the grader on what is compared")
    return clustered_mean(list(values.values()), list(values), signed=True)
