"""Strategies beside each other, and beside self-consistency at the same generated tokens.

Intervals are clustered by problem and differences paired by problem. All have the
same seed, so those that ask for solutions alone draw the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import fmean

from debate import Policy, Problem
from debate_rl.evaluation.grading import grade_turn
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.strategies.solving import Refused, SolvePlan, ask_all, solve_all
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked, Judge, Solution
from debate_rl.strategies.work import Work, spent_on
from envs import DataError


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


@dataclass(frozen=True, slots=True)
class Contender:
    """A strategy with the policy that it asks, and who judges; None is that policy."""

    plan: SolvePlan
    policy: Policy
    judge: Judge | None = None


Progress = Callable[[str, int, int], None]
"""Called with a strategy, the problems that it has answered, and how many there are."""
Values = Mapping[str, float]
"""A value of each problem, by its id."""


def strategy_rows(
    problems: Sequence[Problem],
    contenders: Sequence[Contender],
    pool: Contender,
    *,
    progress: Progress = lambda *_: None,
) -> list[StrategyRow]:
    """Return a row for each strategy; ``pool`` samples the solutions of self-consistency.

    The generated tokens of a strategy, its mean over the problems, are divided by those of one solution and
    rounded: so many solutions, at least one, are those of self-consistency. A problem on which the grader
    gave no verdict on an answer that counts is left out of the row. DataError where that leaves none.
    """
    found = {one.plan.strategy: _answers(problems, one, progress) for one in contenders}
    drawn = _pooled(problems, pool, pool.plan.samples)
    lengths = [spent_on(one.completion)[1] for group in drawn for one in group]
    each = fmean(lengths) if lengths else 0.0
    counts = {name: equal_samples(answers, each) for name, answers in found.items()}
    if max(counts.values()) > pool.plan.samples:
        drawn = _pooled(problems, pool, max(counts.values()))
    return [
        _row(
            one.plan.strategy,
            found[one.plan.strategy],
            _right(problems, one, found[one.plan.strategy]),
            _majority(problems, pool, drawn, counts[one.plan.strategy]),
            counts[one.plan.strategy],
        )
        for one in contenders
    ]


def equal_samples(answers: Sequence[Answered], each: float) -> int:
    """Return how many solutions of ``each`` tokens spend the generated tokens of a strategy; 1 at least.

    >>> from debate_rl.strategies.types import Answered
    >>> answers = [Answered("4", (), "", 1, 0, tokens, 0.0, "done") for tokens in (100, 200)]
    >>> equal_samples(answers, 40.0), equal_samples(answers, 1000.0), equal_samples(answers, 0.0)
    (4, 1, 1)
    """
    spent = fmean(one.tokens_generated for one in answers)
    return max(1, round(spent / each)) if each else 1


def _answers(problems: Sequence[Problem], one: Contender, progress: Progress) -> list[Answered]:
    done, name = 0, one.plan.strategy

    def told(_: int, __: object) -> None:
        nonlocal done
        done += 1
        progress(name, done, len(problems))

    progress(name, 0, len(problems))
    found = solve_all(problems, one.plan, one.policy, judge=one.judge, told=told)
    return [_answered(answer) for answer in found]


def _answered(found: Answered | Refused) -> Answered:
    """Return an answer; DataError for a problem that could not be asked."""
    if isinstance(found, Refused):
        raise DataError(found.reason)
    return found


async def _solutions(asked: Asked, count: int) -> list[Solution]:
    work = Work(replace(asked, samples=count, tokens=None, seconds=None))
    await work.solve(count)
    return work.solutions


def _pooled(problems: Sequence[Problem], pool: Contender, count: int) -> list[list[Solution]]:
    found = ask_all(problems, pool.plan, pool.policy, partial(_solutions, count=count))
    return [[] if isinstance(one, Refused) else one for one in found]


def _right(problems: Sequence[Problem], one: Contender, found: Sequence[Answered]) -> dict[str, float]:
    """Return 1.0 or 0.0 for each problem that has a verdict; no answer is wrong."""
    plan, right = one.plan, dict[str, float]()
    for problem, answered in zip(problems, found, strict=True):
        if answered.turn is None:
            right[problem.id] = 0.0
            continue
        verdict = grade_turn(plan.environment, problem, answered.turn, plan.mode).verdict
        if verdict is not None:
            right[problem.id] = float(verdict is True)
    return right


def _majority(
    problems: Sequence[Problem], pool: Contender, drawn: Sequence[Sequence[Solution]], count: int
) -> dict[str, float]:
    """Return for each problem the chance that a majority of so many solutions is right, ties drawn fairly."""
    plan, right = pool.plan, dict[str, float]()
    for problem, group in zip(problems, drawn, strict=True):
        tally = Tally(problem, plan.environment, 0)
        for index, solution in enumerate(group[:count]):
            tally.add(index, solution)
        most = max(tally.weights, default=0.0)
        leading = [tally.members[at][0] for at, weight in enumerate(tally.weights) if weight == most]
        grades = [grade_turn(plan.environment, problem, group[i].turn, plan.mode).verdict for i in leading]
        if None not in grades:
            right[problem.id] = fmean(grade is True for grade in grades) if grades else 0.0
    return right


def _row(name: str, found: Sequence[Answered], right: Values, majority: Values, samples: int) -> StrategyRow:
    ids = [id for id in right if id in majority]
    if not ids:
        raise DataError(f"{name}: the grader gave no verdict on any of {len(found)} problems")
    gaps = [right[id] - majority[id] for id in ids]
    return StrategyRow(
        name,
        clustered_mean([right[id] for id in ids], ids),
        samples,
        clustered_mean([majority[id] for id in ids], ids),
        clustered_mean(gaps, ids, signed=True),
        fmean(one.tokens_generated for one in found),
        fmean(one.tokens_read for one in found),
        fmean(one.comparisons for one in found),
        fmean(one.unread for one in found),
        fmean(one.ended == "settled" for one in found),
    )
