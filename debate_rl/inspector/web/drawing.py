"""Drawings as SVG paths: figures by step, and the votes on the solutions of a round.

An arrow points from the preferred solution to the other. Form and sign have the same meaning as the colour.
Ties end in dots on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import cos, hypot, isfinite, pi, sin
from typing import NamedTuple

from debate.types import TurnId
from debate_rl.formatting import GRADE_SIGNS, short
from debate_rl.inspector.blocks import Chart, Series, VoteDrawing
from debate_rl.inspector.views.votes import RoundGraph

WIDTH, HEIGHT = 640, 120
MOST_POINTS = 160


class DrawnLine(NamedTuple):
    """The line of a series: parts without gaps, each as the points of an SVG polyline, and the last value."""

    name: str
    style: str
    parts: list[str]
    last: str


class DrawnChart(NamedTuple):
    """Lines in a frame from ``low`` to ``high``, over the steps ``first`` to ``last``."""

    lines: list[DrawnLine]
    first: int
    last: int
    low: str
    high: str
    width: int = WIDTH
    height: int = HEIGHT


def draw_chart(chart: Chart) -> DrawnChart | None:
    """Return the drawing, or None with fewer than two steps or no value."""
    steps = [step for series in chart.series for step, _ in series.points]
    shown = [series for series in chart.series if any(value is not None for _, value in series.points)]
    if not shown or min(steps) == max(steps):
        return None
    low, high = 0.0, 1.0
    if chart.fitted:
        means = [value for series in shown for _, value in binned(series.points, MOST_POINTS)]
        low, high = min(v for v in means if v is not None), max(v for v in means if v is not None)
    first, last = min(steps), max(steps)
    lines = [_drawn(series, first, last, low, high) for series in shown]
    return DrawnChart(lines, first, last, short(low), short(high))


def _drawn(series: Series, first: int, last: int, low: float, high: float) -> DrawnLine:
    def xy(step: float, value: float) -> str:
        span = high - low
        up = (value - low) / span if span > 0 else 0.5
        y = 4 + (HEIGHT - 8) * (1 - min(1.0, max(0.0, up if isfinite(up) and isfinite(span) else 0.5)))
        return f"{4 + (WIDTH - 8) * (step - first) / (last - first):.1f},{y:.1f}"

    runs = groupby(binned(series.points, MOST_POINTS), key=lambda point: point[1] is None)
    parts = [" ".join(xy(at, value or 0.0) for at, value in run) for missing, run in runs if not missing]
    newest = next((value for _, value in reversed(series.points) if value is not None), None)
    return DrawnLine(series.name, series.style, parts, short(newest))


def binned(points: Sequence[tuple[int, float | None]], most: int) -> list[tuple[float, float | None]]:
    """Return at most ``most`` points: means of neighbours, or None without values.

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


NODE, TIP = 24.0, 11.0
LABEL, CLEAR = (18.0, 7.0), 4.0
"""Half the width and height of a label, and the space between it and a line."""
MOST_ARROWS = 60
"""With more votes, one arrow is drawn for each majority instead."""
Point = tuple[float, float]


class Node(NamedTuple):
    """A solution at (x, y)."""

    turn: TurnId
    handle: str
    grade: str
    sign: str
    x: float
    y: float
    in_cycle: bool
    is_condorcet: bool


@dataclass(frozen=True, slots=True)
class Curve:
    """One vote, by its index in the round's list, or a majority (``index`` -1).

    ``start``: the preferred side. ``truth`` decides colour and form. ``lit``: part of a cycle. ``path`` and
    ``tips`` are SVG path data. The label ``sign`` is at (x, y).
    """

    index: int
    start: TurnId
    end: TurnId
    truth: str
    tie: bool = False
    lit: bool = False
    counts: bool = True
    judge: str = ""
    words: str = ""
    path: str = ""
    tips: str = ""
    x: float = 0.0
    y: float = 0.0
    sign: str = ""


class Drawing(NamedTuple):
    """A round's votes in a frame of ``width`` by ``height``. ``majorities``: each arrow is a majority."""

    round: int
    width: int
    height: int
    nodes: list[Node]
    curves: list[Curve]
    majorities: bool


def draw_votes(block: VoteDrawing) -> Drawing:
    """Return the drawing of a round."""
    graph, view = block.graph, block.view
    size = len(graph.solutions)
    radius = max(105.0, 11.0 * size)
    width, height = int(2 * radius + 150), int(2 * radius + 90)
    cyclic = {turn for cycle in graph.cycles for turn in cycle}
    nodes: list[Node] = []
    for index, turn in enumerate(graph.solutions):
        shown = view.turn(turn)
        grade = shown.grade if shown else ""
        round_ = "" if turn.round == graph.round else f" ({turn.round})"
        described = view.handles[turn.agent], grade, GRADE_SIGNS.get(grade, "") + round_
        angle = 2 * pi * index / size - (pi if size == 2 else pi / 2)  # from the top; two are side by side
        x, y = round(width / 2 + radius * cos(angle), 1), round(height / 2 + radius * sin(angle), 1)
        nodes.append(Node(turn, *described, x, y, turn in cyclic, turn == graph.condorcet))
    many = len(graph.arrows) > MOST_ARROWS
    votes = _majorities(graph) if many else list(_votes(block))
    return Drawing(graph.round, width, height, nodes, list(_curves(votes, nodes)), many)


def _votes(block: VoteDrawing) -> Iterator[Curve]:
    handles = block.view.handles
    for index, arrow in enumerate(block.graph.arrows):
        judge, first, second = (handles[turn.agent] for turn in (arrow.judge, arrow.winner, arrow.loser))
        words = f"{judge}: {first} {'ties with' if arrow.tie else 'beats'} {second}, {arrow.truth}"
        words += "" if arrow.counts else ", does not count"
        sides, marks = (arrow.winner, arrow.loser), (arrow.tie, arrow.in_cycle, arrow.counts)
        yield Curve(index, *sides, arrow.truth, *marks, judge[:8], words)


def _majorities(graph: RoundGraph) -> list[Curve]:
    truth = {(a.winner, a.loser): a.truth for a in graph.arrows if a.counts and not a.tie}
    lit = {edge for edge in graph.edges for cycle in graph.cycles if {*edge} <= {*cycle}}
    return [Curve(-1, *edge, truth.get(edge, "undecidable"), lit=edge in lit) for edge in graph.edges]


def _curves(votes: Sequence[Curve], nodes: Sequence[Node]) -> Iterator[Curve]:
    """Yield the votes as curves. Curves between the same two solutions are side by side."""
    at = {node.turn: (node.x, node.y) for node in nodes}
    bundles: dict[frozenset[TurnId], list[Curve]] = {}
    for vote in votes:
        if vote.start != vote.end and vote.start in at and vote.end in at:
            bundles.setdefault(frozenset((vote.start, vote.end)), []).append(vote)
    for bundle in bundles.values():
        for number, vote in enumerate(bundle):
            place = number - (len(bundle) - 1) / 2
            yield _curve(vote, at[vote.start], at[vote.end], place if vote.start < vote.end else -place)


def _curve(vote: Curve, start: Point, end: Point, place: float) -> Curve:
    (x0, y0), (x1, y1) = start, end
    length = hypot(x1 - x0, y1 - y0) or 1.0
    across = (-(y1 - y0) / length, (x1 - x0) / length)
    half = abs(across[0]) * LABEL[0] + abs(across[1]) * LABEL[1]  # half the extent of a label across the line
    bend = 4 * (half + CLEAR) * place  # the middle of a curve bends half as far as its control point
    cx, cy = (x0 + x1) / 2 + across[0] * bend, (y0 + y1) / 2 + across[1] * bend
    sx, sy = _towards((x0, y0), (cx, cy), NODE + 2)
    ex, ey = _towards((x1, y1), (cx, cy), NODE + 3)
    bx, by = _towards((ex, ey), (cx, cy), 0 if vote.tie else TIP)
    away = half + CLEAR if bend >= 0 else -half - CLEAR
    x, y = (sx + 2 * cx + bx) / 4 + across[0] * away, (sy + 2 * cy + by) / 4 + across[1] * away
    dx, dy = (ey - by) * 0.5, -(ex - bx) * 0.5  # half the base of the tip
    tips = f"M{bx + dx:.1f} {by + dy:.1f}L{ex:.1f} {ey:.1f}L{bx - dx:.1f} {by - dy:.1f}"
    tips += "Z" if vote.truth != "undecidable" else ""
    if vote.tie:
        dots = "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0"
        tips = f"M{sx - 4:.1f} {sy:.1f}{dots}M{ex - 4:.1f} {ey:.1f}{dots}"
    path = f"M{sx:.1f} {sy:.1f}Q{cx:.1f} {cy:.1f} {bx:.1f} {by:.1f}"
    sign = "=" * vote.tie + GRADE_SIGNS[vote.truth]
    return replace(vote, path=path, tips=tips, x=round(x, 1), y=round(y, 1), sign=sign)


def _towards(start: Point, end: Point, distance: float) -> Point:
    """Return the point at this distance from the start towards the end."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    share = distance / (hypot(dx, dy) or 1.0)
    return start[0] + dx * share, start[1] + dy * share
