"""Which runs there are at a path: one, or all in a folder of runs. Nothing is written by looking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from debate_rl.curriculum.record import NAME as CURRICULUM
from debate_rl.curriculum.record import STAGES
from debate_rl.runs.folder import is_locked
from transcripts import TranscriptError
from transcripts.index.database import run_and_shards
from transcripts.names import shard_paths, shard_step

if TYPE_CHECKING:
    from debate_rl.config import Config
    from learner.advantages import Author


@dataclass(frozen=True, slots=True)
class FoundRun:
    """One run. ``steps``: how many have debates, ``last``: the newest, from 0, None where there is none.

    ``writing``: whether a process holds the run's lock, so that more may come.
    """

    path: Path
    name: str
    steps: int
    last: int | None
    writing: bool


def find_runs(path: Path | str) -> list[FoundRun]:
    """Return the run at a path (its folder, or that of its shards), or the runs right below it, by name.

    The runs of a curriculum are those of its stages.

    TranscriptError where there is none.
    """
    path = Path(path)
    if (path / CURRICULUM).is_file():
        path /= STAGES
    if _is_run(path):
        return [_run(run_and_shards(path)[0])]
    runs = [_run(child) for child in _children(path) if _is_run(child)]
    if not runs:
        run_and_shards(path)  # says it where the path is no folder
        raise TranscriptError(
            f"{path}: neither a run nor a folder of runs: no transcripts in it, or right below"
        )
    return runs


def run_at(path: Path | str, runs: Sequence[FoundRun]) -> FoundRun | None:
    """Return the run whose own folder (or that of its shards) a path is; None for a folder of runs.

    ``runs``: what ``find_runs`` found there.
    """
    here = Path(path).resolve()
    one = len(runs) == 1 and runs[0].path.resolve() in (here, here.parent)
    return runs[0] if one else None


def _children(path: Path) -> Iterator[Path]:
    try:
        yield from sorted(child for child in path.iterdir() if child.is_dir())
    except OSError:
        return


def _is_run(folder: Path) -> bool:
    """Return whether a folder holds transcripts: a run that has just begun has a folder for them."""
    try:
        if (folder / "config.toml").is_file() and (folder / "transcripts").is_dir():
            return True
        return folder.is_dir() and bool(shard_paths(folder))
    except OSError:
        return False


def _run(folder: Path) -> FoundRun:
    try:
        steps = [step for path in shard_paths(folder) if (step := shard_step(path)) is not None]
    except OSError:
        steps = []
    name = folder.name or folder.resolve().name
    return FoundRun(folder, name, len(steps), max(steps, default=None), is_locked(folder))


def config_of(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration; None, and why in one line, where there is none that can be read.

    Code that the run names is not loaded: ``read_run_config``.
    """
    from debate_rl.config.recipes import ConfigError, read_run_config

    try:
        return read_run_config(run), ""
    except ConfigError as error:
        return None, f"no configuration, so only what is stored is shown: {error}"


def evaluation_of(run: Path) -> Author:
    """Return a run's ``advantages.evaluation``; its default where the run has no configuration."""
    from learner.advantages import AdvantageConfig

    config, _ = config_of(run)
    return (AdvantageConfig() if config is None else config.advantages).evaluation
