"""The runs at a path, with progress, held-out accuracy, judge accuracy and alarms, for lists.

All values are read from the run's own files, never from the index of its debates, which may be outdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from debate.files import read_toml
from debate_rl.curriculum.record import NAME as CURRICULUM
from debate_rl.curriculum.record import STAGES, CurriculumError, read_curriculum
from debate_rl.runs.folder import is_locked
from transcripts import TranscriptError
from transcripts.files import shard_paths, shard_step
from transcripts.index.database import run_and_shards

if TYPE_CHECKING:
    from debate_rl.alarms import Curves  # loads scipy, which a single run does not need
    from debate_rl.config import Config
    from learner.advantages import Author

METRICS, CONFIG = "metrics.jsonl", "config.toml"


@dataclass(frozen=True, slots=True)
class FoundRun:
    """One run. ``steps``: the number of steps with debates. ``last``: the newest such step, or None.

    ``writing``: whether a process holds the run's lock.
    """

    path: Path
    name: str
    steps: int
    last: int | None
    writing: bool


def find_runs(path: Path | str) -> list[FoundRun]:
    """Return the run at a path (its folder or that of its shards), or the runs directly below it, by name.

    For a curriculum, return the runs of its stages. TranscriptError without any.
    """
    path = Path(path)
    if (path / CURRICULUM).is_file():
        path /= STAGES
    if _is_run(path):
        return [_found(run_and_shards(path)[0])]
    children: list[Path] = []
    with suppress(OSError):
        children = sorted(child for child in path.iterdir() if child.is_dir())
    runs = [_found(child) for child in children if _is_run(child)]
    if not runs:
        run_and_shards(path)  # raises an error for a path that is not a folder
        why = "it and its subfolders have no transcripts"
        raise TranscriptError(f"{path}: neither a run nor a folder of runs: {why}")
    return runs


def run_at(path: Path | str, runs: Sequence[FoundRun]) -> FoundRun | None:
    """Return the run if the path is its folder or its folder of shards, else None."""
    here = Path(path).resolve()
    return runs[0] if len(runs) == 1 and runs[0].path.resolve() in (here, here.parent) else None


def _is_run(folder: Path) -> bool:
    """Return whether a folder contains transcripts. Their folder exists from the start of a run."""
    try:
        if (folder / CONFIG).is_file() and (folder / "transcripts").is_dir():
            return True
        return folder.is_dir() and bool(shard_paths(folder))
    except OSError:
        return False


def _found(folder: Path) -> FoundRun:
    steps: list[int] = []
    with suppress(OSError):
        steps = [step for path in shard_paths(folder) if (step := shard_step(path)) is not None]
    name = folder.name or folder.resolve().name
    return FoundRun(folder, name, len(steps), max(steps, default=None), is_locked(folder))


def config_of(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration without loading its own code, or None and the reason in one line."""
    from debate_rl.config.recipes import ConfigError, read_run_config

    try:
        return read_run_config(run), ""
    except ConfigError as error:
        return None, f"no configuration, so only stored values are shown: {error}"


def evaluation_of(run: Path) -> Author:
    """Return a run's ``advantages.evaluation``, or the default if the run has no configuration."""
    from learner.advantages import AdvantageConfig

    config, _ = config_of(run)
    return (AdvantageConfig() if config is None else config.advantages).evaluation


@dataclass(frozen=True, slots=True)
class Overview:
    """One run of a list, with None for unknown values. ``planned``: the planned number of steps.

    ``before``, ``after``: held-out accuracy of one agent alone at the first and last evaluation, on their
    common problems. ``judge``: the newest judge accuracy. ``alarms``: the number of collapse detectors that
    fire, None if no detector has enough data yet. ``changed``: the last write, in seconds since 1970.
    ``test_time``: whether the run trains on held-out problems. ``stage``: how a stage of a curriculum ended
    ("reached", "demoted", "limit"), and ``why``.
    """

    run: FoundRun
    planned: int | None
    before: float | None
    after: float | None
    judge: float | None
    alarms: int | None
    changed: float
    test_time: bool = False
    stage: str = ""
    why: str = ""

    @property
    def progress(self) -> str:
        """The finished and the planned steps: ``7/10``."""
        done = 0 if self.run.last is None else self.run.last + 1
        return f"{done:,}" + ("" if self.planned is None else f"/{self.planned:,}")

    @property
    def state(self) -> str:
        """Words on whether it is running, how a stage ended, and whether it trains on held-out problems."""
        marks = ("running" * self.run.writing, self.stage, "test-time learning" * self.test_time)
        return ", ".join(filter(None, marks))


def overviews(runs: Iterable[FoundRun]) -> list[Overview]:
    """Return the rows of a list of runs, the most recently written run first."""
    return sorted(map(overview, runs), key=lambda one: (-one.changed, one.run.name))


def overview(run: FoundRun) -> Overview:
    """Return the row of a run. Damaged or foreign files never raise an error."""
    from debate_rl.metrics.held_out import NAME

    path, files = run.path, [run.path / CONFIG, run.path / METRICS]
    with suppress(OSError):
        files += shard_paths(path)[-1:]
    steps, judged = metrics_of(path).of("judge/accuracy")
    planned = _setting(path, "train", "steps")
    stage, why = "", ""
    if path.parent.name == STAGES:
        with suppress(CurriculumError):
            record = read_curriculum(path.parent.parent)
            visits = record.visits if record else ()
            ends = [(visit.end or "", visit.why) for visit in visits if visit.folder == run.name]
            stage, why = ends[-1] if ends else ("", "")
    steps_planned = planned if type(planned) is int and 0 <= planned < 1 << 53 else None
    before, after = _held_out(path, (_stamp(path / NAME), _stamp(path / "evaluations")))
    judge, alarms = float(judged[-1]) if len(steps) else None, _alarms(path, _stamp(path / METRICS))
    changed = max(_stamp(file)[0] for file in files) / 1e9
    test_time = _setting(path, "env", "decontaminate") == "never"
    return Overview(run, steps_planned, before, after, judge, alarms, changed, test_time, stage, why)


def metrics_of(run: Path) -> Curves:
    """Return the figures of a run's metrics.jsonl by step. The file is read again after a change."""
    return _metrics(run, _stamp(run / METRICS))


def _stamp(path: Path) -> tuple[int, int]:
    """Return a file's time and size, which change with its content, or zeros without a file."""
    with suppress(OSError, ValueError):
        facts = path.stat()
        return facts.st_mtime_ns, facts.st_size
    return 0, 0


@lru_cache(maxsize=64)
def _metrics(run: Path, stamp: tuple[int, int]) -> Curves:
    from debate_rl.alarms.curves import read_metrics

    return read_metrics(run / METRICS)[0]


@lru_cache(maxsize=1024)
def _alarms(run: Path, stamp: tuple[int, int]) -> int | None:
    from debate_rl.alarms import alarms, readings

    every = readings(_metrics(run, stamp))
    return len(alarms(every)) if any(reading.able for reading in every) else None


@lru_cache(maxsize=1024)
def _held_out(run: Path, stamps: tuple[tuple[int, int], ...]) -> tuple[float | None, float | None]:
    """Return held-out accuracy of one agent alone before and after; with one evaluation, only before."""
    from debate_rl.metrics.held_out import DIRECT, gain, read_held_out

    evaluations = read_held_out(run)
    found = gain(evaluations[0], evaluations[-1], DIRECT) if len(evaluations) > 1 else None
    if found is not None:
        return found.before, found.after
    first = evaluations[0].estimate(DIRECT) if evaluations else None
    return None if first is None else first.value, None


def _setting(run: Path, table: str, key: str) -> object:
    """Return a setting from the configuration file, whose other parts may be invalid."""
    try:
        found = read_toml(run / CONFIG).get(table)
    except (OSError, ValueError, RecursionError):
        return None
    return found.get(key) if isinstance(found, dict) else None
