"""The votes on a round's solutions as a drawing: an arrow goes from the preferred solution to the other.

Form and sign say the same as the colour: right votes are solid lines with a filled tip, wrong
ones dashed with a hollow tip, undecidable ones dotted with an open tip; ties end in dots on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin

from debate.types import TurnId
from debate_rl.formatting import GRADE_SIGNS
from debate_rl.inspector.views.graph import Arrow, RoundGraph

NODE, TIP = 24.0, 11.0
LABEL, CLEAR = (18.0, 7.0), 4.0
"""Half the width and height of a label, and what is left free between it and a line."""
MOST_ARROWS = 60
"""More than these cannot be told apart: then one arrow for each majority is drawn."""


@dataclass(frozen=True, slots=True)
class Node:
    """A solution at (x, y)."""

    turn: TurnId
    x: float
    y: float
    in_cycle: bool
    is_condorcet: bool


@dataclass(frozen=True, slots=True)
class DrawnVote:
    """One vote, by its index in the round's list, or one majority (``index`` -1): ``start`` is preferred.

    ``truth``: its colour and form. ``lit``: it goes with a cycle.
    """

    index: int
    start: TurnId
    end: TurnId
    truth: str
    tie: bool = False
    lit: bool = False
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Curve:
    """A vote as drawn: SVG path data of the line and its ``tips``; the label ``sign`` stands at (x, y)."""

    vote: DrawnVote
    path: str
    tips: str
    x: float
    y: float
    sign: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A round's votes in a frame of ``width`` by ``height``. ``majorities``: an arrow is a majority."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    curves: tuple[Curve, ...]
    majorities: bool


def draw(graph: RoundGraph) -> Drawing:
    """Return the drawing of a round."""
    size = len(graph.solutions)
    radius = max(105.0, 11.0 * size)
    width, height = int(2 * radius + 150), int(2 * radius + 90)
    cyclic = {turn for cycle in graph.cycles for turn in cycle}
    nodes = tuple(
        Node(turn, *_on_circle(index, size, radius, width, height), turn in cyclic, turn == graph.condorcet)
        for index, turn in enumerate(graph.solutions)
    )
    many = len(graph.arrows) > MOST_ARROWS
    votes = _majorities(graph) if many else [_drawn(arrow, index) for index, arrow in enumerate(graph.arrows)]
    return Drawing(width, height, nodes, tuple(_curves(votes, nodes)), many)


def _on_circle(index: int, size: int, radius: float, width: int, height: int) -> tuple[float, float]:
    """Return (x, y) of a solution: clockwise from the top, two side by side."""
    turn = 2 * pi * index / max(1, size) - (pi if size == 2 else pi / 2)
    return round(width / 2 + radius * cos(turn), 1), round(height / 2 + radius * sin(turn), 1)


def _drawn(arrow: Arrow, index: int) -> DrawnVote:
    return DrawnVote(index, arrow.winner, arrow.loser, arrow.truth, arrow.tie, arrow.in_cycle, arrow.counts)


def _majorities(graph: RoundGraph) -> list[DrawnVote]:
    truth = {(a.winner, a.loser): a.truth for a in graph.arrows if a.counts and not a.tie}
    cycles = [set(cycle) for cycle in graph.cycles]
    return [
        DrawnVote(
            -1, won, lost, truth.get((won, lost), "undecidable"), lit=any({won, lost} <= c for c in cycles)
        )
        for won, lost in graph.edges
    ]


def _curves(votes: Sequence[DrawnVote], nodes: Sequence[Node]) -> list[Curve]:
    at = {node.turn: (node.x, node.y) for node in nodes}
    bundles: dict[frozenset[TurnId], list[DrawnVote]] = {}
    for vote in votes:
        if vote.start != vote.end and vote.start in at and vote.end in at:
            bundles.setdefault(frozenset((vote.start, vote.end)), []).append(vote)
    return [
        _curve(vote, at[vote.start], at[vote.end], _place(vote, number, len(bundle)))
        for bundle in bundles.values()
        for number, vote in enumerate(bundle)
    ]


def _place(vote: DrawnVote, number: int, count: int) -> float:
    """Return the place of a curve among those between two solutions, which lie side by side around 0."""
    place = number - (count - 1) / 2
    return place if vote.start < vote.end else -place


def _curve(vote: DrawnVote, start: tuple[float, float], end: tuple[float, float], place: float) -> Curve:
    (x0, y0), (x1, y1) = start, end
    length = hypot(x1 - x0, y1 - y0) or 1.0
    across = (-(y1 - y0) / length, (x1 - x0) / length)
    half = abs(across[0]) * LABEL[0] + abs(across[1]) * LABEL[1]  # of a label, as seen along the line
    bend = 4 * (half + CLEAR) * place  # the middle of a curve bends half as far as its control point
    cx, cy = (x0 + x1) / 2 + across[0] * bend, (y0 + y1) / 2 + across[1] * bend
    sx, sy = _towards((x0, y0), (cx, cy), NODE + 2)
    ex, ey = _towards((x1, y1), (cx, cy), NODE + 3)
    bx, by = _towards((ex, ey), (cx, cy), 0 if vote.tie else TIP)
    beside = half + CLEAR if bend >= 0 else -half - CLEAR
    middle = (sx + 2 * cx + bx) / 4 + across[0] * beside, (sy + 2 * cy + by) / 4 + across[1] * beside
    tips = (
        _dots((sx, sy), (ex, ey))
        if vote.tie
        else _tip((ex, ey), (bx, by), closed=vote.truth != "undecidable")
    )
    sign = "=" + GRADE_SIGNS[vote.truth] if vote.tie else GRADE_SIGNS[vote.truth]
    path = f"M{sx:.1f} {sy:.1f}Q{cx:.1f} {cy:.1f} {bx:.1f} {by:.1f}"
    return Curve(vote, path, tips, round(middle[0], 1), round(middle[1], 1), sign)


def _towards(start: tuple[float, float], end: tuple[float, float], distance: float) -> tuple[float, float]:
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    return (
        start[0] + (end[0] - start[0]) * distance / length,
        start[1] + (end[1] - start[1]) * distance / length,
    )


def _tip(point: tuple[float, float], base: tuple[float, float], *, closed: bool) -> str:
    across = ((point[1] - base[1]) * 0.5, -(point[0] - base[0]) * 0.5)
    left, right = (base[0] + across[0], base[1] + across[1]), (base[0] - across[0], base[1] - across[1])
    path = f"M{left[0]:.1f} {left[1]:.1f}L{point[0]:.1f} {point[1]:.1f}L{right[0]:.1f} {right[1]:.1f}"
    return path + ("Z" if closed else "")


def _dots(*points: tuple[float, float]) -> str:
    return "".join(f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0" for x, y in points)
