"""Drawings as SVG: the votes on the solutions of a round.

An arrow points from the preferred solution to the other. Form and sign have the same meaning as the colour.
Ties end in dots on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import cos, hypot, pi, sin
from typing import NamedTuple

from debate.types import TurnId
from debate_rl.formatting import GRADE_SIGNS
from debate_rl.inspector.blocks import VoteDrawing
from debate_rl.inspector.views.votes import RoundGraph

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
    persona: str
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
        who = view.handles[turn.agent], view.personas[turn.agent].name
        described = *who, grade, GRADE_SIGNS.get(grade, "") + round_
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
