"""Which runs there are at a path: one, or all in a folder of runs. Nothing is written by looking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from debate_rl.curriculum.record import NAME as CURRICULUM
from debate_rl.curriculum.record import STAGES
from debate_rl.runs.folder import is_locked
from transcripts import TranscriptError
from transcripts.index.database import run_and_shards
from transcripts.names import shard_paths, shard_step


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
