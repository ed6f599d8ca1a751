"""Files of JSON lines that grow with the steps of a run: metrics.jsonl and samples.jsonl.

A run that goes on from a checkpoint writes its later steps again; what it wrote of them before is set aside.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from debate_rl.tracking.samples import Sample
from transcripts.append import LineFile, sync_folder
from transcripts.errors import TranscriptWriteError


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


class MetricsLog(LineFile):
    """Appends to metrics.jsonl, one line a step, on the disk before ``log`` returns control to the loop."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append one line."""
        self.write(metrics_line(step, metrics, at=round(time.time(), 3)))
        self.sync()


class SamplesLog(LineFile):
    """Appends to samples.jsonl, one line a turn."""

    def show(self, step: int, samples: Sequence[Sample]) -> None:
        """Append the turns that were drawn in this step."""
        for sample in samples:
            self.write(json.dumps(sample, allow_nan=False).encode("ascii"))
        self.sync()


def read_metrics(path: Path) -> list[dict[str, float | None]]:
    """Return the lines of metrics.jsonl in order, without a torn last one; None is a non-finite value."""
    return [{name: row[name] for name in row if name != "nonfinite"} for row in read_rows(path)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of such a file in order, without a torn last line; ValueError names a damaged one."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            row = {"step": None, **json.loads(line)}
            if not isinstance(row["step"], int | None):
                raise TypeError(f"step {row['step']!r} is not a number")
            rows.append(row)
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}:{number}: not a line of {path.stem}: {error}") from error
    return rows


def rewind(path: Path, step: int) -> int:
    """Move the lines of ``step`` and later to NAME.superseded.jsonl; return how many.

    For a run that goes on from a checkpoint: it writes these steps again. Nothing is lost in a crash: the
    lines are kept aside first, then the file is replaced at once.
    """
    if not path.exists():
        return 0
    lines = list(zip(path.read_bytes().split(b"\n"), read_rows(path), strict=False))
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
