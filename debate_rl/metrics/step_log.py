"""Files of JSON lines that grow with the steps of a run: metrics.jsonl and samples.jsonl.

A run that resumes from a checkpoint repeats the steps after that checkpoint. The lines of the
first attempt at these steps are moved to another file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from debate.files import plain_lines
from debate.seeds import derive_seed
from rewards import STREAMS
from transcripts import Record
from transcripts.append import LineFile, sync_folder
from transcripts.errors import TranscriptWriteError
from transcripts.record import turn_rows

PHASES = ("rollout", "verify", "reward", "learn", "record")
"""The phases of a step. Every other metric in seconds is part of a phase or of the evaluation after it."""
LARGEST = sys.float_info.max
SAMPLE_SHARE = 0.05
"""Fraction of debates whose turns are written to samples.jsonl, and whose groups are shown in W&B."""
Sample: TypeAlias = dict[str, Any]
"""One turn of a sampled debate: a value for each column in ``SAMPLE``."""
SAMPLE = (
    *("step", "debate", "problem", "question", "gold", "agent", "persona", "round", "ballot", "text"),
    *("tokens", "stop_reason", "answer", "grade", *(f"reward_{stream}" for stream in STREAMS)),
    *("advantage_generator", "advantage_judge", "advantage_format"),
)
"""Columns of a sample. ``grade`` is empty for a ballot; ``advantage_format`` is added to the other two."""


def metrics_line(step: int, metrics: Mapping[str, float], *, at: float) -> bytes:
    """Return one line of metrics.jsonl: the step, the seconds since 1970, and the metrics.

    A metric that is not finite is written as null, and its name is listed under ``nonfinite``.

    >>> metrics_line(3, {"loss": 0.5, "kl": float("nan")}, at=7.0)
    b'{"step": 3, "time": 7.0, "loss": 0.5, "kl": null, "nonfinite": ["kl"]}'
    """
    values = {name: float(value) for name, value in metrics.items()}
    nonfinite = [name for name, value in values.items() if not isfinite(value)]
    shown = {name: value if isfinite(value) else None for name, value in values.items()}
    line = {"step": step, "time": at, **shown} | ({"nonfinite": nonfinite} if nonfinite else {})
    return json.dumps(line, allow_nan=False).encode("ascii")


def step_seconds(metrics: Mapping[str, float | None]) -> float:
    """Return the wall-clock seconds of a step: the sum over its phases.

    >>> step_seconds({"seconds/rollout": 2.0, "seconds/reward": 0.5, "seconds/grade": 0.4})
    2.5
    """
    return sum(metrics.get(f"seconds/{phase}") or 0.0 for phase in PHASES)


class MetricsLog(LineFile):
    """Appends one line per step to metrics.jsonl; ``log`` syncs the line to disk."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line."""
        self.write(metrics_line(step, metrics, at=round(time.time(), 3)))
        self.sync()


class SamplesLog(LineFile):
    """Appends one line per turn to samples.jsonl."""

    def show(self, step: int, samples: Sequence[Sample]) -> None:
        """Append the turns sampled in a step."""
        for sample in samples:
            self.write(json.dumps(sample, allow_nan=False).encode("ascii"))
        self.sync()


def draw_debates(records: Sequence[Record]) -> list[int]:
    """Return the indices of a fraction ``SAMPLE_SHARE`` of debates, at least one, chosen by their seeds."""
    draws = [Random(derive_seed(record.debate.seed, "sample")).random() for record in records]
    limit = max(SAMPLE_SHARE, min(draws, default=0.0))
    return [index for index, draw in enumerate(draws) if draw <= limit]


def samples_of(record: Record, index: int) -> Iterator[Sample]:
    """Yield a row for each turn of a debate."""
    problem = record.debate.problem
    about = {"step": record.step, "problem": problem.id, "question": problem.question, "gold": problem.answer}
    for turn in turn_rows(f"{record.step}.{index}", record):
        row = about | turn | {"grade": turn["grade"] or ""}
        yield {name: row[name] for name in SAMPLE}


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """Return the lines of metrics.jsonl in order, without an incomplete last line.

    A non-finite value is None. ValueError names a damaged line and the value in it that is not a number.
    """
    rows = read_rows(path)
    for number, row in enumerate(rows, start=1):
        row.pop("nonfinite", None)
        for name, value in row.items():
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                what = f"{name} {value!r} is not a number"
                raise ValueError(f"{path}:{number}: not a line of {path.stem}: {what}")
            if value is not None and not -LARGEST <= value <= LARGEST:
                row[name] = None
    return rows


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file without an incomplete last line; ValueError names a damaged line."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(plain_lines(path), start=1):
        if not line.endswith(b"\n"):
            break
        try:
            row = {"step": None, **json.loads(line)}
            if not isinstance(row["step"], int | None):
                raise TypeError(f"step {row['step']!r} is not a number")
            rows.append(row)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}:{number}: not a line of {path.stem}: {error}") from error
    return rows


def rewind(path: Path, step: int) -> int:
    """Move the lines of ``step`` and later steps to NAME.superseded.jsonl, and return how many were moved.

    A crash loses nothing: the lines are first copied, and the file is then replaced atomically.
    """
    if not path.exists():
        return 0
    lines = [
        (line[:-1], row["step"] or 0) for line, row in zip(plain_lines(path), read_rows(path), strict=False)
    ]
    early = [line for line, at in lines if at < step]
    late = [line for line, at in lines if at >= step]
    if late:
        fresh = path.with_suffix(".jsonl.new")
        try:
            _write_lines(path.with_suffix(".superseded.jsonl"), late)
            fresh.unlink(missing_ok=True)
            _write_lines(fresh, early)
            fresh.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            if isinstance(error, TranscriptWriteError):
                raise
            raise TranscriptWriteError.of(error, path) from error
    return len(late)


def _write_lines(path: Path, lines: Sequence[bytes]) -> None:
    with LineFile(path) as file:
        for line in lines:
            file.write(line)
