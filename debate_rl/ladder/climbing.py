"""Climb the ladder: ask every rung, and put each beside self-consistency at the same cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import fmean
from typing import Final, Literal, TypeAlias

from debate import DebateConfig, Problem
from debate_rl.evaluation.kept_replies import KeptReplies
from debate_rl.ladder.metered import Meter, Metered
from debate_rl.ladder.pool import Grader, Pool, Values
from debate_rl.ladder.rounds import Rounds, rounds_of
from debate_rl.ladder.rungs import RUNGS
from debate_rl.strategies.solving import Refused, SolvePlan
from debate_rl.strategies.types import Answered, Judge
from envs import DataError
from rewards import Truth

Budget: TypeAlias = Literal["generated", "total", "seconds"]
BUDGETS: Final[Mapping[Budget, str]] = {
    "generated": "generated tokens",
    "total": "tokens read and generated",
    "seconds": "seconds of the engine",
}
"""What self-consistency is given the same of."""
TOKENS: Final[tuple[Budget, ...]] = ("generated", "total")
SECONDS: Final[tuple[Budget, ...]] = ("seconds",)
MOST = 2
"""Times as many solutions as tokens buy are drawn at most for what seconds buy."""
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a rung, the problems that it has answered, and how many there are."""


@dataclass(frozen=True, slots=True)
class KeptJudge:
    """Another model that compares solutions, its replies kept, and the protocol whose ballots it knows."""

    policy: KeptReplies
    protocol: DebateConfig


@dataclass(frozen=True, slots=True)
class Beside:
    """Self-consistency at the cost of a rung: of ``samples`` solutions, right by problem.

    ``short``: the cost would buy more of them than are drawn.
    """

    samples: float
    right: Values
    short: bool = False


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
    beside: Mapping[Budget, Beside] = field(default_factory=dict["Budget", "Beside"])


@dataclass(frozen=True, slots=True)
class Ladder:
    """What was climbed, by rung, and of the others why not.

    ``each``: the cost of one solution; ``missing``: the share of self-consistency's that give no answer.
    """

    problems: Sequence[Problem]
    climbed: Mapping[str, Climbed]
    refused: Mapping[str, str]
    each: Mapping[Budget, float]
    seed: int
    samples: int
    missing: float = 0.0


def climb(
    problems: Sequence[Problem],
    names: Sequence[str],
    plan: SolvePlan,
    policy: KeptReplies,
    *,
    judge: KeptJudge | None = None,
    progress: Progress = lambda *_: None,
) -> Ladder:
    """Return every rung of these names over the problems, each beside self-consistency at its cost.

    The cost of a rung, its mean over the problems, divided by that of one solution says how many solutions
    self-consistency has: 1 at least, and between two whole numbers the larger one on a share of the problems.
    All have the same seed, and a reply that several ask for is sampled once and counted for each. A
    summariser of the plan keeps its replies too. DataError for a problem that cannot be asked, or where the
    grader gives no verdict on any.
    """
    grader = Grader(plan.environment, plan.mode)
    refused = {name: "it was not asked for" for name in RUNGS if name not in names}
    found = dict[str, Climbed]()
    for name in names:
        if why := RUNGS[name].why_not(plan, problems, judge and judge.protocol):
            refused[name] = why
        else:
            found[name] = _climbed(name, problems, plan, policy, judge, grader, progress)
    meter = Meter()
    majority = RUNGS["majority"].plan(plan)
    pool = Pool(problems, majority, Metered(policy, meter), grader, lambda: meter.seconds)
    pool.draw(plan.samples)
    missing = pool.missing
    each: dict[Budget, float] = {budget: pool.cost[budget] for budget in BUDGETS}
    counts: dict[str, dict[Budget, float]] = {
        name: {budget: equal_samples(one.cost[budget], each[budget]) for budget in BUDGETS}
        for name, one in found.items()
    }
    beside = _beside(counts, pool, progress)
    climbed = {name: replace(one, beside=beside[name]) for name, one in found.items()}
    return Ladder(problems, climbed, refused, each, plan.seed, plan.samples, missing)


def _beside(
    counts: Mapping[str, Mapping[Budget, float]], pool: Pool, progress: Progress
) -> dict[str, dict[Budget, Beside]]:
    """Return self-consistency at the cost of each rung, given how many solutions that buys of each budget.

    What tokens buy comes first and is what it is whatever the time was; what seconds buy is ``MOST`` times as
    much at most.
    """
    found: dict[str, dict[Budget, Beside]] = {name: {} for name in counts}
    by_tokens = ceil(max((of[budget] for of in counts.values() for budget in TOKENS), default=1.0))
    for budgets in (TOKENS, SECONDS):
        wanted = max((of[budget] for of in counts.values() for budget in budgets), default=1.0)
        progress("self-consistency", 0, len(pool.problems))
        pool.draw(ceil(min(wanted, MOST * by_tokens)))
        progress("self-consistency", len(pool.problems), len(pool.problems))
        for name, of in counts.items():
            for budget in budgets:
                samples = min(of[budget], float(MOST * by_tokens))
                found[name][budget] = Beside(samples, pool.right(samples), short=samples < of[budget])
    return found


def equal_samples(cost: float, each: float) -> float:
    """Return how many solutions have a cost, 1 at least.

    >>> equal_samples(35.0, 10.0), equal_samples(5.0, 10.0), equal_samples(5.0, 0.0)
    (3.5, 1.0, 1.0)
    """
    return max(1.0, cost / each) if each else 1.0


def _climbed(
    name: str,
    problems: Sequence[Problem],
    plan: SolvePlan,
    policy: KeptReplies,
    judge: KeptJudge | None,
    grader: Grader,
    progress: Progress,
) -> Climbed:
    rung, meter, done = RUNGS[name], Meter(), 0

    def told(_: int, __: object) -> None:
        nonlocal done
        done += 1
        progress(name, done, len(problems))

    progress(name, 0, len(problems))
    compares = None if judge is None else Judge(Metered(judge.policy, meter), judge.protocol)
    asked = meter.on_summaries(rung.plan(plan))
    found = [_answered(one) for one in rung.climb(problems, asked, Metered(policy, meter), compares, told)]
    return _measured(name, problems, found, meter.seconds, grader)


def _answered(found: Answered | Refused) -> Answered:
    """Return an answer; DataError for a problem that could not be asked."""
    if isinstance(found, Refused):
        raise DataError(found.reason)
    return found


def _measured(
    name: str, problems: Sequence[Problem], found: Sequence[Answered], seconds: float, grader: Grader
) -> Climbed:
    right, oracle, rounds = Values(), Values(), dict[str, Rounds]()
    newest = list[bool]()
    for problem, answered in zip(problems, found, strict=True):
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
        raise DataError(f"{name}: the grader gave no verdict on any of {len(found)} problems")
    generated, read = (
        fmean(getattr(one, f"tokens_{kind}") for one in found) for kind in ("generated", "read")
    )
    return Climbed(
        name,
        right,
        oracle,
        {"generated": generated, "total": generated + read, "seconds": seconds / len(found)},
        read,
        fmean(one.comparisons for one in found),
        fmean(one.unread for one in found),
        fmean(newest) if newest else 1.0,
        rounds,
    )
