"""The course of figures over the steps, as points of small drawings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite

WIDTH, HEIGHT = 640, 120
MOST_POINTS = 160


@dataclass(frozen=True, slots=True)
class Series:
    """One figure over the steps; None: it has no value there. ``style`` names its colour and dashes."""

    name: str
    style: str
    points: Sequence[tuple[int, float | None]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The line of a series: parts without gaps, each as points of an SVG polyline, and the last value."""

    name: str
    style: str
    parts: tuple[str, ...]
    last: float | None


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines in a frame of ``width`` by ``height``; from ``low`` below to ``high`` on top."""

    lines: tuple[Drawn, ...]
    first: int
    last: int
    low: float = 0.0
    high: float = 1.0
    width: int = WIDTH
    height: int = HEIGHT


def chart_of(series: Series) -> Chart | None:
    """Return the drawing of one figure of any size, from the least of its means to the largest."""
    values = [value for _, value in binned(series.points, MOST_POINTS) if value is not None]
    return chart([series], low=min(values), high=max(values)) if values else None


def chart(series: Sequence[Series], *, low: float = 0.0, high: float = 1.0) -> Chart | None:
    """Return the drawing, None where there are fewer than two steps or no value."""
    steps = [step for figure in series for step, _ in figure.points]
    shown = [figure for figure in series if any(value is not None for _, value in figure.points)]
    if not shown or min(steps) == max(steps):
        return None
    empty = Chart((), min(steps), max(steps), low, high)
    return replace(empty, lines=tuple(_drawn(figure, empty) for figure in shown))


def _drawn(series: Series, frame: Chart) -> Drawn:
    points = binned(series.points, MOST_POINTS)
    parts = tuple(" ".join(_xy(point, frame) for point in run) for run in _runs(points))
    last = next((value for _, value in reversed(series.points) if value is not None), None)
    return Drawn(series.name, series.style, parts, last)


def _xy(point: tuple[float, float], frame: Chart) -> str:
    x = 4 + (WIDTH - 8) * (point[0] - frame.first) / (frame.last - frame.first)
    span = frame.high - frame.low
    up = (point[1] - frame.low) / span if span > 0 else 0.5
    y = 4 + (HEIGHT - 8) * (1 - min(1.0, max(0.0, up if isfinite(up) and isfinite(span) else 0.5)))
    return f"{x:.1f},{y:.1f}"


def binned(points: Sequence[tuple[int, float | None]], most: int) -> list[tuple[float, float | None]]:
    """Return at most so many points: means of neighbours, None where none of them has a value.

    >>> binned([(0, 1.0), (1, 0.0), (2, None), (3, None), (4, 0.5)], 3)
    [(0.5, 0.5), (2.5, None), (4.0, 0.5)]
    """
    size = -(-len(points) // most) or 1
    means: list[tuple[float, float | None]] = []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        values = [value for _, value in part if value is not None]
        mean = sum(values) / len(values) if values else None
        means.append((sum(step for step, _ in part) / len(part), mean))
    return means


def _runs(points: Sequence[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    run: list[tuple[float, float]] = []
    for step, value in points:
        if value is not None:
            run.append((step, value))
        elif run:
            yield run
            run = []
    if run:
        yield run
