"""What a list of runs shows of each: how far it is, held-out accuracy before and after, the judge, alarms.

All of it is read from what the run wrote, never from the index of its debates, which may be older.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from debate.files import read_toml
from debate_rl.alarms import Curves, alarms, readings
from debate_rl.alarms.curves import read_metrics
from debate_rl.curriculum.record import STAGES, CurriculumError, read_curriculum
from debate_rl.inspector.runs import FoundRun
from debate_rl.metrics.held_out import DIRECT, before_after, read_held_out
from debate_rl.metrics.held_out import NAME as HELD_OUT
from transcripts.names import shard_paths

METRICS, CONFIG = "metrics.jsonl", "config.toml"


@dataclass(frozen=True, slots=True)
class Overview:
    """One run of a list; None where the run does not tell.

    ``planned``: how many steps it will have. ``before`` and ``after``: held-out accuracy of one agent alone
    at its first and last evaluation, on the problems of both. ``judge``: judge accuracy of its newest step
    that has one. ``alarms``: how many of the report's collapse detectors fire on its metrics, None where
    none can fire yet. ``changed``: when it last wrote, in seconds since 1970. ``test_time``: whether it is
    declared to train on held-out problems. ``stage``: of a stage of a curriculum that has ended, how
    ("reached", "demoted", "limit"), and ``why`` in words.
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
        """The steps that are done, and of how many: ``7/10``."""
        done = 0 if self.run.last is None else self.run.last + 1
        return f"{done:,}" + ("" if self.planned is None else f"/{self.planned:,}")

    @property
    def state(self) -> str:
        """Whether it goes on, how a stage ended, whether its held-out accuracy is of trained problems."""
        marks = (
            "running" if self.run.writing else "",
            self.stage,
            "test-time learning" if self.test_time else "",
        )
        return ", ".join(mark for mark in marks if mark)


def overviews(runs: Iterable[FoundRun]) -> list[Overview]:
    """Return what a list shows of runs, the one that wrote last on top."""
    return sorted(map(overview, runs), key=lambda one: (-one.changed, one.run.name))


def overview(run: FoundRun) -> Overview:
    """Return what a list shows of a run; nothing that lies in its folder raises."""
    path = run.path
    before, after = _held_out(path, (_stamp(path / HELD_OUT), _stamp(path / "evaluations")))
    steps, judged = metrics_of(path).of("judge/accuracy")
    planned = _setting(path, "train", "steps")
    try:
        files = [path / CONFIG, path / METRICS, *shard_paths(path)[-1:]]
    except OSError:
        files = [path / CONFIG, path / METRICS]
    return Overview(
        run,
        planned if type(planned) is int and 0 <= planned < 1 << 53 else None,
        before,
        after,
        float(judged[-1]) if len(steps) else None,
        _alarms(path, _stamp(path / METRICS)),
        max(_stamp(file)[0] for file in files) / 1e9,
        _setting(path, "env", "test_time_learning") is True,
        *_stage(path),
    )


def _stage(run: Path) -> tuple[str, str]:
    """Return how the stage of a curriculum that a run is of ended, and why; two "" where it is of none."""
    record = None
    if run.parent.name == STAGES:
        with suppress(CurriculumError):
            record = read_curriculum(run.parent.parent)
    ends = (
        [(visit.end or "", visit.why) for visit in record.visits if visit.folder == run.name]
        if record
        else []
    )
    return ends[-1] if ends else ("", "")


def metrics_of(run: Path) -> Curves:
    """Return the figures of a run's metrics.jsonl by step, read again when the file has changed."""
    return _metrics(run, _stamp(run / METRICS))


def _stamp(path: Path) -> tuple[int, int]:
    """Return what changes with a file."""
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=64)
def _metrics(run: Path, stamp: tuple[int, int]) -> Curves:
    return read_metrics(run / METRICS)[0]


@lru_cache(maxsize=1024)
def _alarms(run: Path, stamp: tuple[int, int]) -> int | None:
    every = readings(_metrics(run, stamp))
    return len(alarms(every)) if any(reading.able for reading in every) else None


@lru_cache(maxsize=1024)
def _held_out(run: Path, stamps: tuple[tuple[int, int], ...]) -> tuple[float | None, float | None]:
    """Return held-out accuracy of one agent before and after; of one evaluation, the first alone."""
    evaluations = read_held_out(run)
    compared = before_after(evaluations, (DIRECT,))
    gain = compared.gains.get(DIRECT) if compared else None
    if gain is not None:
        return gain.before, gain.after
    first = evaluations[0].estimate(DIRECT) if evaluations else None
    return None if first is None else first.value, None


def _setting(run: Path, table: str, key: str) -> object:
    """Return a setting as it stands in the configuration, of which no other part has to be right."""
    try:
        found = read_toml(run / CONFIG).get(table)
    except (OSError, ValueError, RecursionError):
        return None
    return found.get(key) if isinstance(found, dict) else None
