"""The ladder: every way to an answer compared with self-consistency at the same cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, isfinite
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from debate import DebateConfig, Policy, Problem, Turn
from debate.types import TurnId
from debate_rl.metrics.intervals import Estimate, clustered_mean, ratio
from debate_rl.strategies.equal_cost import Contender, Grader, Pool, Progress, Values
from debate_rl.strategies.solving import SolvePlan, solve_all
from debate_rl.strategies.work import Answered, Judge, Tally
from envs import DataError
from rewards import Truth
from rewards.truth import FLIPS, flips

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
    solve: Callable[..., Any] = solve_all
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


class Rounds(NamedTuple):
    """Steps of agents from one round to the next, on one problem: how many went each way.

    ``flips``: right ("c") or wrong ("w") before and after, as ``rewards.truth.flips``. ``pressed``: the steps
    of agents whose answer was another one than that of more than half of the others; ``followed``: those of
    them behind which the agent gave that answer.
    """

    flips: Mapping[str, int]
    pressed: int
    followed: int


class Equal(NamedTuple):
    """Self-consistency at the cost of a rung: of ``samples`` solutions, right by problem."""

    samples: float
    right: Values


@dataclass(frozen=True, slots=True)
class Climbed:
    """One rung over all problems, by the id of each: whether it was right, and what it cost and how it went.

    ``cost``: a mean for each budget; ``read``, ``comparisons``, ``unread``: means. ``oracle``: whether any of
    its solutions was right. ``missing``: the share of the newest solutions that give no answer. Problems on
    which the grader gave no verdict on any solution of the rung are left out of both.
    """

    name: str
    right: Values
    oracle: Values
    cost: Mapping[Budget, float]
    read: float
    comparisons: float
    unread: float
    missing: float
    rounds: Mapping[str, Rounds]
    equal: Mapping[Budget, Equal]


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
    missing: float = 0.0


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
    return Ladder(problems, climbed, refused, each, plan.seed, plan.samples, missing)


def equal_samples(cost: float, each: float) -> float:
    """Return how many solutions have a cost, 1 at least.

    >>> equal_samples(35.0, 10.0), equal_samples(5.0, 10.0), equal_samples(5.0, 0.0)
    (3.5, 1.0, 1.0)
    """
    return max(1.0, cost / each) if each else 1.0


def _measured(name: str, problems: Sequence[Problem], answers: Sequence[Answered], grader: Grader) -> Climbed:
    right, oracle, rounds = dict[str, float](), dict[str, float](), dict[str, Rounds]()
    newest = list[bool]()
    for problem, answered in zip(problems, answers, strict=True):
        grades: list[Truth] = [grader.grade(problem, turn) for turn in answered.turns]
        grade = False if answered.turn is None else grader.grade(problem, answered.turn)
        if None in (grade, *grades):
            continue
        right[problem.id] = float(grade is True)
        oracle[problem.id] = float(any(one is True for one in grades))
        rounds[problem.id] = rounds_of(problem, answered.turns, grades, grader)
        last = max((turn.id.round for turn in answered.turns), default=0)
        graded = zip(answered.turns, grades, strict=True)
        newest += [one == "missing" for turn, one in graded if turn.id.round == last]
    if not right:
        raise DataError(f"{name}: the grader gave no verdict on any of {len(answers)} problems")
    generated = fmean(one.tokens_generated for one in answers)
    read = fmean(one.tokens_read for one in answers)
    return Climbed(
        name,
        right,
        oracle,
        {"generated": generated, "total": generated + read},
        read,
        fmean(one.comparisons for one in answers),
        fmean(one.unread for one in answers),
        fmean(newest) if newest else 1.0,
        rounds,
        {},
    )


def rounds_of(problem: Problem, turns: Sequence[Turn], grades: Sequence[Truth], grader: Grader) -> Rounds:
    """Return what became of the agents on one problem; ``turns`` are all solutions, of every round."""
    known: dict[TurnId, Truth] = {turn.id: grade for turn, grade in zip(turns, grades, strict=True)}
    numbers = sorted({id.round for id in known})
    if len(numbers) < 2:
        return Rounds(dict.fromkeys(FLIPS, 0), 0, 0)
    agents = sorted({id.agent for id in known})
    tally, answers = Tally(problem, grader.environment, 0), dict[TurnId, int | None]()
    for turn in turns:
        answer = grader.answer(problem, turn)
        answers[turn.id] = None if answer is None else tally.index_of(answer)
    followed = list[bool]()
    for before, after in pairwise(numbers):
        for agent in agents:
            others = Counter(answers.get(TurnId(other, before)) for other in agents if other != agent)
            answer, times = others.most_common(1)[0] if others else (None, 0)
            own = answers.get(TurnId(agent, before))
            if own is not None and answer not in (None, own) and 2 * times > others.total():
                followed.append(answers.get(TurnId(agent, after)) == answer)
    rows: list[list[Truth]] = [[known[id] for id in sorted(known) if id.agent == agent] for agent in agents]
    return Rounds(flips(rows), len(followed), sum(followed))


class Compared(NamedTuple):
    """Self-consistency at a rung's cost: its solutions, what they are worth, and the rung less it."""

    samples: float
    self_consistency: Estimate
    difference: Estimate


@dataclass(frozen=True, slots=True)
class RungFigures:
    """What a rung is worth. ``oracle_gap``: the share of problems with any right solution, less its accuracy.

    Of agents over rounds, None where there are none: ``corrected``, of those that were wrong in a round the
    share that is right in the next; ``misled``, of those that were right the share that is wrong;
    ``conformity``, of those whose answer was not that of most others the share that then gives it.
    """

    accuracy: Estimate
    oracle_gap: Estimate
    compared: Mapping[Budget, Compared]
    corrected: Estimate | None
    misled: Estimate | None
    conformity: Estimate | None


def figures_of(one: Climbed) -> RungFigures:
    """Return the figures of a rung."""
    rounds = [one.rounds[id] for id in one.right]
    ways = {way: [each.flips[way] for each in rounds] for way in FLIPS}
    codes = np.arange(len(rounds))
    return RungFigures(
        _mean(one.right),
        gap(one.oracle, one.right),
        {
            budget: Compared(equal.samples, _mean(equal.right), gap(one.right, equal.right))
            for budget, equal in one.equal.items()
        },
        corrected=ratio(ways["wc"], np.add(ways["wc"], ways["ww"]), codes),
        misled=ratio(ways["cw"], np.add(ways["cw"], ways["cc"]), codes),
        conformity=ratio([each.followed for each in rounds], [each.pressed for each in rounds], codes),
    )


def _mean(values: Values) -> Estimate:
    return clustered_mean(list(values.values()), list(values))


def gap(one: Values, other: Values) -> Estimate:
    """Return the mean difference over the problems with a value in both; DataError where there are none."""
    values = {id: one[id] - other[id] for id in one if id in other}
    if not values:
        raise DataError("no problem has a verdict of the grader on what is compared")
    return clustered_mean(list(values.values()), list(values), signed=True)


def plain(estimate: Estimate | None) -> dict[str, object] | None:
    """Return an estimate for a JSON file; a bound that is not finite is None."""
    if estimate is None:
        return None
    low, high = (bound if isfinite(bound) else None for bound in (estimate.low, estimate.high))
    p = {} if estimate.p is None else {"p": estimate.p}
    return {"value": estimate.value, "low": low, "high": high, "n": estimate.n, **p}


def plain_rung(one: Climbed, figures: RungFigures) -> dict[str, object]:
    """Return a rung for a JSON file."""
    names = ("oracle_gap", "corrected", "misled", "conformity")
    return {
        "rung": one.name,
        "accuracy": plain(figures.accuracy),
        "generated": one.cost["generated"],
        "read": one.read,
        "comparisons": one.comparisons,
        "unread": one.unread,
        "missing": one.missing,
        **{name: plain(getattr(figures, name)) for name in names},
        "equal": {
            budget: {
                "samples": found.samples,
                "self_consistency": plain(found.self_consistency),
                "difference": plain(found.difference),
            }
            for budget, found in figures.compared.items()
        },
    }
