"""Debate RL in Python: what the commands do, as functions. ``from debate_rl import train`` and the others.

``changes`` are settings by dotted key, as in ``{"train.steps": 4, "rewards.peer": my_rule}``. Functions and
classes may be passed wherever a configuration names them by a dotted path. None restores a default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from debate import Debate
from debate.settings import is_code, path_of
from debate_rl.config import Config
from debate_rl.config.recipes import apply_overrides, as_overrides
from envs import Environment, load_environment
from envs.registry import environment_of
from rewards import RewardConfig, Rewards, Truth, score_debate
from transcripts import RunStore

if TYPE_CHECKING:
    from pandas import DataFrame

    from debate_rl.evaluation.tasks import Evaluated

Changes: TypeAlias = Mapping[str, object]
Named: TypeAlias = str | Path | RunStore
"""A run, its folder, or the name or file of a recipe."""


def train(recipe: Named | Config, changes: Changes | None = None) -> RunStore:
    """Train as ``debate train`` does, and return the run. The same call resumes a run that was stopped.

    ValueError for invalid settings, and if an alarm ended the run.
    """
    from debate_rl.commands.train import settings_of  # torch takes seconds to load
    from debate_rl.curriculum.train import train_run, train_stages
    from learner.update.ranks import ALONE

    words = words_of(changes)
    if isinstance(recipe, Config):
        tables = apply_overrides(recipe.model_dump(exclude_unset=True), words, Config)
        config = Config.model_validate(tables)
    else:
        config = settings_of(_name_of(recipe), words, starts=True)
    say = _say_nothing if config.logging.progress == "none" else print
    if config.stages:
        _, by_alarm = train_stages(config, None, say, say)
    else:
        _, by_alarm = train_run(config, ALONE, say, say)
    if by_alarm:
        raise ValueError(f"{config.run.dir}: an alarm ended the run; see debate report {config.run.dir}")
    return open_run(config.run.dir)


def evaluate(
    what: Named,
    changes: Changes | None = None,
    *,
    weights: str = "newest",
    problems: int | None = None,
    samples: int = 0,
    seed: int = 0,
    direct: bool = False,
) -> DataFrame:
    """Return the held-out figures of a run or an untrained recipe, as ``debate eval`` computes them.

    Each row has a figure, its value and its 95% interval. ``weights``: newest, best, start, all, or a list
    "a,b"; rows with ``minus`` have the gain over the first weights. ``problems``: their maximum number.
    ``samples``: the minimum number of direct solutions for each problem. ``direct``: hold no debates.
    Replies are stored, so the same call continues after a stop.
    """
    from pandas import DataFrame

    from debate_rl.commands.console import progress_of
    from debate_rl.evaluation.report import plain_rows
    from debate_rl.evaluation.tasks import EvalOptions, Subject, perform, tasks_of

    limit = [] if problems is None else [f"held_out.limit={problems}"]
    subject = Subject(_name_of(what), (*words_of(changes), *limit))
    options = EvalOptions(seed=seed, samples=samples, direct=direct)
    results: Sequence[Evaluated] = perform(tasks_of([subject], weights, options), progress_of, print)
    for one in results:
        if one.error is not None:
            raise one.error
    return DataFrame(plain_rows({one.name: one.scores for one in results if one.scores is not None}))


def open_run(run: str | Path) -> RunStore:
    """Open the debates of a run's folder: lists, single debates, and tables for pandas (``frame``)."""
    return RunStore.open(run)


def grade_debate(
    debate: Debate, environment: Environment | str | None = None
) -> tuple[tuple[Truth, ...], ...]:
    """Return the grade of each solution, ``[agent][round]``: True, False, "missing", or None if not graded.

    ``environment``: an environment or its name; None means the one that the problem came from.
    """
    from debate_rl.evaluation.grading import grade_debate as graded

    if isinstance(environment, str):
        environment = load_environment(environment)
    _, grades = graded(environment or environment_of(debate.problem), debate)
    return grades or tuple((None,) * debate.protocol.num_rounds for _ in debate.personas)


def score(
    debate: Debate, scheme: RewardConfig | None = None, environment: Environment | str | None = None
) -> Rewards:
    """Return the rewards of a debate under a scheme, by default the default scheme."""
    return score_debate(debate, grade_debate(debate, environment), scheme or RewardConfig())


def words_of(changes: Changes | None) -> list[str]:
    """Return changes as the ``key=value`` texts of the command line.

    >>> words_of({"train.steps": 4, "env.path": None, "learner.loss": "grpo"})
    ['train.steps=4', 'env.path=none', 'learner.loss="grpo"']
    """
    return [word for key, value in (changes or {}).items() for word in _words(key, value)]


def _words(key: str, value: object) -> Iterator[str]:
    if value is None:
        yield f"{key}=none"
        return
    yield from as_overrides(key, _plain(value, key), "changes")


def _plain(value: object, key: str) -> object:
    """Return a value as TOML can write it."""
    if is_code(value):
        return path_of(value, key=key)
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, list | tuple):
        return [_plain(one, key) for one in cast("Sequence[object]", value)]
    if isinstance(value, dict):
        return {name: _plain(one, key) for name, one in cast("dict[str, object]", value).items()}
    return value


def _name_of(what: Named) -> str:
    return str(what.run if isinstance(what, RunStore) else what)


def _say_nothing(*_: object, **__: object) -> None: ...
