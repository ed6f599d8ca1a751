"""The examples that a run shows before its problems, and before those that it is evaluated on."""

from __future__ import annotations

from debate import Problem
from debate.types import Shot
from debate_rl.config import Config
from debate_rl.config.recipes import find_shots
from envs import DataError
from envs.data.shots import load_shots, same_question, with_shots


def shown_with(config: Config, problem: Problem, count: int) -> Problem:
    """Return a problem with so many of a run's examples before it."""
    if not count:
        return problem
    each = config.shots.draw == "each"
    return with_shots([problem], shots_of(config), count, each=each, seed=config.seed)[0]


def shots_of(config: Config) -> tuple[Shot, ...]:
    """Return the examples that a run draws from; none where it shows none."""
    shots, env = config.shots, config.env
    if not shots.count:
        return ()
    path, fields = (find_shots(shots.path), shots.fields) if shots.path else (env.path, env.fields)
    return load_shots("file" if shots.path else env.kind, split=shots.split, path=path, fields=fields)


def held_out_with_shots(
    config: Config, problems: tuple[Problem, ...], pool: tuple[Shot, ...]
) -> tuple[Problem, ...]:
    """Return held-out problems with their examples; DataError where an example is one of these problems."""
    count = config.shots.final
    questions = {same_question(problem.question): problem.id for problem in problems}
    shown = next((shot for shot in pool if same_question(shot.question) in questions), None)
    if shown is not None:
        source = config.shots.path or f"{config.env.kind}, split {config.shots.split!r}"
        raise DataError(
            f"shots: {source} holds the held-out problem {questions[same_question(shown.question)]} with its "
            "solution; choose another file or split"
        )
    return with_shots(problems, pool, count, each=config.shots.draw == "each", seed=config.held_out.seed)
