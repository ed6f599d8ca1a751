"""The one way a benchmark reports: a table on the screen and, with ``--json FILE``, the same figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean, variance

from rich.console import Console
from rich.table import Table

from debate_rl.metrics.intervals import clustered_mean, crossed_mean

Repeat = tuple[int, int]
"""A seed, and the number of its run: 0 as it is, others from starts that differ from that by rounding."""


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


def add_held_out_seed(known: argparse.ArgumentParser) -> None:
    """Add ``--held-out-seed``, to which each seed is added: every seed has held-out problems of its own."""
    known.add_argument(
        "--held-out-seed", type=int, default=100, help="a seed's held-out set is this + seed; tuning used 0"
    )


def repeats(seeds: Sequence[int], jitter: int) -> list[Repeat]:
    """Return every seed with the number of each of its runs."""
    return [(seed, number) for seed in seeds for number in range(jitter)]


def repeated(number: int) -> str:
    """Return what ends the name of a run: nothing for the first of a seed.

    >>> repeated(0), repeated(2)
    ('', '-jitter_2')
    """
    return f"-jitter_{number}" if number else ""


def jittered(number: int, start: Path) -> list[str]:
    """Return what a repeat changes: it begins with the warm start of the first run, but for rounding."""
    return [f"train.jitter={number}", f"warm_start.from_run={start}"] if number else []


def over_seeds(
    name: str, values: Mapping[Repeat, float], unit: str = "share", *, signed: bool = False
) -> Iterator[Figure]:
    """Yield the mean of the seeds' means with Student's 95% interval, and the spread of repeats."""
    by_seed = _by_seed(values)
    found = clustered_mean([fmean(each) for each in by_seed.values()], [*by_seed], signed=signed)
    yield Figure(name, found.value, unit, len(by_seed), found.low, found.high)
    if known := [variance(each) for each in by_seed.values() if len(each) > 1]:
        yield Figure(f"{name}, sd of jitters", sqrt(fmean(known)), unit, len(known))


def over_seeds_and_problems(
    name: str, values: Mapping[Repeat, Mapping[str, float]], unit: str = "share", *, signed: bool = False
) -> Iterator[Figure]:
    """Yield the same of values by problem, which seeds share; the interval holds for other problems too."""
    runs: dict[int, dict[str, tuple[float, int]]] = {}
    for (seed, _), by_problem in values.items():
        own = runs.setdefault(seed, {})
        for problem, value in by_problem.items():
            total, count = own.get(problem, (0.0, 0))
            own[problem] = (total + value, count + 1)
    found = crossed_mean([*runs.values()], signed=signed)
    assert found is not None
    yield Figure(name, found.value, unit, found.n, found.low, found.high)
    means = {repeat: fmean(by_problem.values()) for repeat, by_problem in values.items()}
    yield from [*over_seeds(name, means, unit)][1:]


def _by_seed(values: Mapping[Repeat, float]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for (seed, _), value in values.items():
        found.setdefault(seed, []).append(value)
    return found


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
