"""The problems of a run: what is trained on, and what is held out."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from debate import Problem
from debate.seeds import derive_seed
from envs import DataError, Environment, load_environment
from learner.config import Config, EnvConfig
from learner.provenance import checksum


@dataclass(frozen=True, slots=True)
class Problems:
    """An environment with the run's problems, disjoint by id, and the checksums of local files."""

    environment: Environment
    train: tuple[Problem, ...]
    held_out: tuple[Problem, ...]
    checksums: dict[str, str]


def load_run_problems(config: Config) -> Problems:
    """Return the problems of a run; with one local file and no other, ``held_out.limit`` of it are held out.

    DataError when nothing is left to train on, or when a problem would be both trained on and held out.
    """
    env, held = config.env, config.held_out
    environment = _environment(env, env.path)
    files = {path: checksum(Path(path)) for path in (env.path, held.path) if path is not None}
    if env.path is not None and held.path is None:
        everything = environment.problems(split=env.split, limit=None, seed=None)
        train, held_out = _split_off(everything, held.limit, config)
        return Problems(environment, train, held_out, files)
    train = environment.problems(split=env.split, limit=env.limit, seed=derive_seed(config.seed, "train"))
    held_out: tuple[Problem, ...] = ()
    if held.limit:
        other = _environment(env, held.path)
        held_out = other.problems(split=held.split, limit=held.limit, seed=derive_seed(held.seed, "held out"))
    _refuse_overlap(train, held_out)
    return Problems(environment, train, held_out, files)


def _environment(env: EnvConfig, path: str | None) -> Environment:
    return load_environment(env.kind, path=path, levels=env.levels, subjects=env.subjects, fields=env.fields)


def _split_off(
    problems: tuple[Problem, ...], held_out: int, config: Config
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return (train, held out) of one file: the held-out ones are drawn by ``held_out.seed`` alone."""
    if held_out >= len(problems):
        raise DataError(
            f"{config.env.path}: {len(problems)} problems, of which held_out.limit={held_out} are held out; "
            "nothing is left to train on"
        )
    order = list(problems)
    random.Random(derive_seed(config.held_out.seed, "held out")).shuffle(order)
    train = order[held_out:]
    if config.env.limit is not None:
        random.Random(derive_seed(config.seed, "train")).shuffle(train)
        train = train[: config.env.limit]
    return tuple(train), tuple(order[:held_out])


def _refuse_overlap(train: tuple[Problem, ...], held_out: tuple[Problem, ...]) -> None:
    shared = {p.question for p in train} & {p.question for p in held_out}
    if shared:
        raise DataError(
            f"held_out: {len(shared)} questions are also trained on, for instance {min(shared)[:60]!r}; "
            "choose another split or file"
        )
