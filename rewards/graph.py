"""The vote graph: who was preferred to whom, by which judge, on the strength of which line.

Scores that need no graph do not build one; built from the same valid votes it holds the same data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import networkx as nx

from debate.types import TurnId, Vote

if TYPE_CHECKING:
    VoteGraph: TypeAlias = nx.MultiDiGraph[TurnId]


def vote_graph(votes: Sequence[Vote]) -> VoteGraph:
    """Return one edge for each vote, from the preferred turn to the other (a tie: from left to right).

    Edges are keyed by the judge's TurnId and carry ``outcome`` ("win" or "tie") and the ``span`` of the line
    in the judge's text, so every point of a score can be traced to the words that gave it.

    >>> a, b, judge = TurnId(0, 0), TurnId(1, 0), TurnId(2, 1)
    >>> list(vote_graph([Vote(judge, a, b, "right")]).edges(keys=True)) == [(b, a, judge)]
    True
    """
    graph: VoteGraph = nx.MultiDiGraph()
    for vote in votes:
        source, target = (vote.right, vote.left) if vote.outcome == "right" else (vote.left, vote.right)
        outcome = "tie" if vote.outcome == "tie" else "win"
        graph.add_edge(source, target, key=vote.judge, outcome=outcome, span=vote.span)
    return graph


def components(graph: VoteGraph) -> list[list[TurnId]]:
    """Return the connected parts of the graph, edge directions aside, each sorted by agent."""
    return [sorted(part) for part in nx.weakly_connected_components(graph)]
