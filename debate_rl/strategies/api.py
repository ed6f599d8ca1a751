"""Solving from Python: a model, problems, a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from debate import Policy
from debate_rl.config import Config
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.engines import end_engines, open_policy
from debate_rl.strategies.catalog import check_asked, entry_named
from debate_rl.strategies.posing import pose_texts
from debate_rl.strategies.solving import (
    SolvePlan,
    requests_of,
    running_programs,
    solve_all,
    summarizer_in,
    without_programs,
)
from debate_rl.strategies.types import Answered, Judge


def solve(
    what: str,
    problems: str | Sequence[str],
    *,
    strategy: str = "majority",
    samples: int = 16,
    tokens: int | None = None,
    seconds: float | None = None,
    judge: str | None = None,
    seed: int = 0,
    overrides: Sequence[str] = (),
) -> list[Answered]:
    """Return the answer of a run's or recipe's model to each problem, as ``debate solve`` does.

    ``overrides``: "key=value" texts. ValueError for what cannot be asked, a problem that does not fit the
    context among it.
    """
    texts = [problems] if isinstance(problems, str) else list(problems)
    entry = entry_named(strategy)
    run, config = open_run_or_recipe(what, overrides)
    config = running_programs(config) if entry.tools else config
    posed = pose_texts(texts, config)
    plan = SolvePlan(
        strategy,
        config.debate,
        posed.environment,
        samples=samples,
        tokens=tokens,
        seconds=seconds,
        seed=seed,
        mode=config.grader.final,
        requests=requests_of(config),
        summarizer=summarizer_in(config),
    )
    judging = None
    if judge is not None:
        of_judge, its = open_run_or_recipe(judge, ())
        judging = of_judge, without_programs(its)
    check_asked(strategy, plan.sketched(posed.problems[0], judging and judging[1].debate))
    with ExitStack() as stack:
        policy = _opened(stack, run, config)
        compares = None if judging is None else Judge(_opened(stack, *judging), judging[1].debate)
        found = solve_all(posed.problems, plan, policy, judge=compares)
    answers: list[Answered] = []
    for one in found:
        if not isinstance(one, Answered):
            raise ValueError(one.reason)
        answers.append(one)
    return answers


def _opened(stack: ExitStack, run: Path | None, config: Config) -> Policy:
    weights = None
    if run is not None:
        from debate_rl.runs.weights import newest_weights  # loads torch; a server's model needs none

        weights = newest_weights(run)
    policy = open_policy(config, weights)
    stack.callback(end_engines, policy)
    return policy
