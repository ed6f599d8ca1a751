"""The votes on one round as text: who voted how, whether rightly, and what the majorities make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.plain.paper import Paper, fitted, widths_of
from inspector.views import Arrow, DebateView, RoundGraph
from learner.formatting import counted, safe

WHY = {
    "own": "own work",
    "not_shown": "not shown to the judge",
    "same_handle": "names one label twice",
    "duplicate": "cast before",
    "contradictory": "contradicts another vote of the judge",
    "unknown_handle": "names nobody here",
    "malformed": "could not be read",
}
"""Why a vote or a line does not count, in words."""


def vote_lines(graph: RoundGraph, view: DebateView, paper: Paper) -> Iterator[str]:
    """Yield the lines of one graph."""
    where = "the final ballot" if graph.round >= view.rounds else f"round {graph.round + 1}"
    yield paper.paint(f"votes on {where}", "bold")
    for arrow in graph.arrows:
        yield "   " + _arrow(arrow, view, paper)
    for line in graph.unread:
        judge = safe(view.handles[line.judge.agent])
        yield f"   {judge}: no vote ({WHY.get(line.reason, line.reason)}): {safe(line.line)}"
    yield from _matrix(graph, view)
    yield from _order(graph, view, paper)


def _arrow(arrow: Arrow, view: DebateView, paper: Paper) -> str:
    sign = "=" if arrow.tie else ">"
    sides = f"{_name(view, arrow.winner)} {sign} {_name(view, arrow.loser)}"
    notes = [paper.grade(arrow.truth)]
    if not arrow.counts:
        notes.append(f"does not count: {WHY.get(arrow.dropped, arrow.dropped)}")
    if arrow.in_cycle:
        notes.append(paper.paint("in a cycle", "yellow"))
    line = f'   "{safe(arrow.line)}"' if arrow.line else ""
    return f"{_name(view, arrow.judge)}: {sides}, {', '.join(notes)}{line}"


def _name(view: DebateView, turn: object) -> str:
    agent: int = getattr(turn, "agent", 0)
    return safe(view.handles[agent])


def _matrix(graph: RoundGraph, view: DebateView) -> Iterator[str]:
    """Yield the table of votes that count: how often the row's solution beat the column's."""
    names = [_name(view, turn) for turn in graph.solutions]
    rows: list[Sequence[str]] = [("beat", *names)]
    for i, name in enumerate(names):
        cells = ("." if i == j else _count(graph.matrix[i][j], graph.ties[i][j]) for j in range(len(names)))
        rows.append((name, *cells))
    widths = widths_of(rows)
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "   " + "  ".join(fitted(cell, width, right=True) for cell, width in cells)


def _count(wins: float, ties: int) -> str:
    """Return the votes of one cell.

    >>> _count(2.0, 0), _count(1.5, 1)
    ('2', '1 (+1 tie)')
    """
    whole = f"{wins - ties / 2:g}"
    return whole if not ties else f"{whole} (+{counted(ties, 'tie')})"


def _order(graph: RoundGraph, view: DebateView, paper: Paper) -> Iterator[str]:
    if graph.edges:
        beaten = ", ".join(f"{_name(view, a)} beats {_name(view, b)}" for a, b in graph.edges)
        yield f"   by majority: {beaten}"
    for cycle in graph.cycles:
        yield paper.paint(f"   cycle: {', '.join(_name(view, turn) for turn in cycle)}", "yellow")
    if graph.condorcet is not None:
        yield f"   beats every other: {_name(view, graph.condorcet)}"
