"""The votes of a debate: who was preferred to whom by whom, and whether that was right."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from inspector.views import DebateView, RoundGraph, debate_view, vote_graphs
from inspector.web.debate_page import in_debate, opened, round_name
from inspector.web.drawing import Drawing, draw
from inspector.web.page import Asked

MOST_CELLS = 700
"""Arrows and cells of matrices that a page has; of more, it has one round."""
MOST_LISTED = 120


@dataclass(frozen=True, slots=True)
class Shown:
    """A round's votes with their drawing; ``left_out``: votes that the list leaves out."""

    graph: RoundGraph
    name: str
    drawing: Drawing
    left_out: int


def graph(asked: Asked) -> Response:
    """Show the votes of each round, or of one where there are very many."""
    record = opened(asked)
    view, graphs = debate_view(asked.id, record), vote_graphs(record)
    wanted = asked.whole_number("round")
    if sum(_cells(one) for one in graphs) > MOST_CELLS and wanted is None:
        wanted = graphs[-1].round
    shown = [one for one in graphs if wanted is None or one.round == wanted]
    return in_debate(
        asked,
        "graph",
        view=view,
        problem_id=view.problem.id,
        graphs=[shown_round(one, view) for one in shown],
        others=[(one.round, round_name(one.round, view.rounds)) for one in graphs if one not in shown],
        listed=MOST_LISTED,
        graded={turn.id: turn.correct for turn in view.spoken()},
    )


def shown_round(graph: RoundGraph, view: DebateView) -> Shown:
    """Return a round's votes as a page shows them."""
    left_out = max(0, len(graph.arrows) - MOST_LISTED)
    return Shown(graph, round_name(graph.round, view.rounds), draw(graph), left_out)


def _cells(graph: RoundGraph) -> int:
    return len(graph.arrows) + len(graph.solutions) ** 2
