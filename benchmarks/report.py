"""The one way a benchmark reports: a table on the screen and, with ``--json FILE``, the same figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure; ``low`` and ``high`` bound its 95% interval (or its range, where the unit says so)."""

    name: str
    value: float
    unit: str
    n: int
    low: float | None = None
    high: float | None = None


def parser(description: str) -> argparse.ArgumentParser:
    """Return an argument parser that knows ``--json``."""
    result = argparse.ArgumentParser(description=description)
    result.add_argument("--json", type=Path, default=None, metavar="FILE", help="also write the figures here")
    return result


def add_jitter(known: argparse.ArgumentParser) -> None:
    """Add ``--jitter``: how often each run is done, from starts that differ by rounding (train.jitter)."""
    known.add_argument(
        "--jitter", type=int, default=1, metavar="N", help="runs of each, starts differ by rounding"
    )


def report(title: str, figures: Sequence[Figure], path: Path | None = None) -> None:
    """Print the figures as a table and write them as a JSON list where a path is given."""
    figures = _with_finite_bounds(figures)
    table = Table(title=title)
    for column in ("name", "value", "unit", "n", "low", "high"):
        table.add_column(column, justify="left" if column in ("name", "unit") else "right")
    for f in figures:
        bounds = ["" if x is None else _number(x) for x in (f.low, f.high)]
        table.add_row(f.name, _number(f.value), f.unit, str(f.n), *bounds)
    Console(width=110).print(table)
    write(figures, path)


def write(figures: Sequence[Figure], path: Path | None) -> None:
    """Write the figures as a JSON list where a path is given."""
    if path is not None:
        rows = [asdict(figure) for figure in _with_finite_bounds(figures)]
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _with_finite_bounds(figures: Sequence[Figure]) -> list[Figure]:
    return [replace(f, low=_finite(f.low), high=_finite(f.high)) for f in figures]


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def _finite(bound: float | None) -> float | None:
    return bound if bound is not None and isfinite(bound) else None
