"""Where metrics go: metrics.jsonl always, wandb when asked, a progress bar or one line a step.

All sinks get the same names. A tracker is anything with ``log`` and ``close``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import isfinite
from pathlib import Path
from typing import Literal, Protocol

from rich.console import Console

from debate.settings import Settings
from learner.progress import progress_of
from transcripts.append import LineFile, sync_folder
from transcripts.errors import TranscriptWriteError


class WandbConfig(Settings):
    """Weights & Biases; off until ``project`` is set. The API key comes from the environment only."""

    project: str | None = None
    """Project to log to; None turns wandb off."""
    entity: str | None = None
    """User or team; None takes the account's default."""
    name: str | None = None
    """Name of the run; None takes the run folder's."""
    group: str | None = None
    """Group of runs to show together, for instance the seeds of one recipe."""
    tags: tuple[str, ...] = ()
    """Labels to filter by."""
    mode: Literal["online", "offline"] | None = None
    """None obeys WANDB_MODE, or else is online; offline leaves files that ``wandb sync`` uploads."""


class LoggingConfig(Settings):
    """What is written and shown while a run goes on."""

    wandb: WandbConfig = WandbConfig()
    progress: Literal["auto", "bar", "lines", "none"] = "auto"
    """A live bar, one line a step, or nothing; auto takes the bar in a terminal and lines in a pipe."""
    transcript_tokens: bool = True
    """Whether transcripts hold token ids and log-probabilities; without them they are a tenth of the size."""


class TrackerError(ValueError):
    """A tracker that cannot start; the message names the setting and what to do."""


class Tracker(Protocol):
    """Takes the metrics of each step."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of one step."""
        ...

    def close(self) -> None:
        """Write what is still held back."""
        ...


def metrics_line(step: int, metrics: Mapping[str, float], *, at: float) -> bytes:
    """Return one line of metrics.jsonl: step, seconds since 1970, metrics; the non-finite are null and named.

    >>> metrics_line(3, {"loss": 0.5, "kl": float("nan")}, at=7.0)
    b'{"step": 3, "time": 7.0, "loss": 0.5, "kl": null, "nonfinite": ["kl"]}'
    """
    values = {name: float(value) for name, value in metrics.items()}
    nonfinite = [name for name, value in values.items() if not isfinite(value)]
    shown = {name: value if isfinite(value) else None for name, value in values.items()}
    line = {"step": step, "time": at, **shown} | ({"nonfinite": nonfinite} if nonfinite else {})
    return json.dumps(line, allow_nan=False).encode("ascii")


class MetricsLog:
    """Appends to metrics.jsonl, one line a step, on the disk before ``log`` returns control to the loop."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line."""
        self._file.write(metrics_line(step, metrics, at=round(time.time(), 3)))

    def close(self) -> None:
        """Bring the file to the disk."""
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """Return the lines of metrics.jsonl in order, without a torn last one; None is a non-finite value."""
    lines = path.read_bytes().split(b"\n")
    rows: list[dict[str, float | None]] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            row = {"step": None, **json.loads(line)}
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}:{number}: not a line of metrics: {error}") from error
        rows.append({name: value for name, value in row.items() if name != "nonfinite"})
    return rows


def rewind_metrics(path: Path, step: int) -> int:
    """Move the lines of ``step`` and later to metrics.superseded.jsonl; return how many.

    For a run that goes on from a checkpoint: it writes these steps again. Nothing is lost in a crash: the
    lines are kept aside first, then the file is replaced at once.
    """
    if not path.exists():
        return 0
    lines = list(zip(path.read_bytes().split(b"\n"), read_metrics(path), strict=False))
    kept = [line for line, row in lines if (row["step"] or 0) < step]
    late = [line for line, row in lines if (row["step"] or 0) >= step]
    if late:
        _replace_lines(path, kept, late)
    return len(late)


def _replace_lines(path: Path, kept: list[bytes], late: list[bytes]) -> None:
    fresh = path.with_suffix(".jsonl.new")
    try:
        with LineFile(path.with_suffix(".superseded.jsonl")) as aside:
            for line in late:
                aside.write(line)
        fresh.unlink(missing_ok=True)
        with LineFile(fresh) as file:
            for line in kept:
                file.write(line)
        fresh.replace(path)
        sync_folder(path.parent)
    except TranscriptWriteError:
        raise
    except OSError as error:
        raise TranscriptWriteError.of(error, path) from error


class WandbTracker:
    """Logs to Weights & Biases under the names of metrics.jsonl."""

    def __init__(self, config: WandbConfig, folder: Path, settings: Mapping[str, object]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise TrackerError(
                'logging.wandb.project is set, but wandb is not installed: pip install "debate-rl[train]"'
            ) from error
        mode = config.mode or os.environ.get("WANDB_MODE") or "online"
        try:
            self._run = wandb.init(
                project=config.project,
                entity=config.entity,
                name=config.name or folder.name,
                group=config.group,
                tags=config.tags or None,
                config=dict(settings),
                dir=folder,
                mode=mode,  # type: ignore[arg-type]
                id=_wandb_id(folder),
                resume=None if mode == "offline" else "allow",
            )
        except (wandb.Error, OSError) as error:
            raise TrackerError(
                f"logging.wandb.project={config.project}: {error}; set WANDB_API_KEY, "
                "or logging.wandb.mode=offline"
            ) from error

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Finish the upload."""
        self._run.finish()


def _wandb_id(folder: Path) -> str:
    """Return the run's id, drawn once and kept in the folder: a resumed run goes on in the same chart."""
    path = folder / "wandb_id"
    try:
        if not path.exists():
            path.write_text(os.urandom(4).hex(), encoding="ascii")
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TranscriptWriteError.of(error, path) from error


class Trackers:
    """Hands each step's metrics to every tracker, the file first."""

    def __init__(self, members: list[Tracker]) -> None:
        self._members = members

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step everywhere."""
        for member in self._members:
            member.log(step, metrics)

    def close(self) -> None:
        """Close all; the first error is raised after every member was closed."""
        with ExitStack() as stack:
            for member in reversed(self._members):
                stack.callback(member.close)


@contextmanager
def open_trackers(
    folder: Path,
    config: LoggingConfig,
    *,
    steps: int,
    first_step: int = 0,
    settings: Mapping[str, object] | None = None,
    console: Console | None = None,
) -> Iterator[Tracker]:
    """Open every tracker the configuration asks for, and close them on the way out, errors included.

    ``first_step``: the step a resumed run begins with; what was logged from there on is set aside.
    ``settings`` is the resolved configuration, shown beside the charts.
    """
    rewind_metrics(folder / "metrics.jsonl", first_step)
    members: list[Tracker] = [MetricsLog(folder / "metrics.jsonl")]
    trackers = Trackers(members)
    try:
        if config.wandb.project is not None:
            members.append(WandbTracker(config.wandb, folder, settings or {}))
        bar = progress_of(config.progress, steps, done=first_step, console=console)
        members.extend([bar] if bar else [])
        yield trackers
    finally:
        trackers.close()
