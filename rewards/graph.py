"""The vote graph: which turns were preferred to which, how often, and the resulting order or cycles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import networkx as nx

from debate.types import Outcome, TurnId, Vote

if TYPE_CHECKING:
    VoteGraph: TypeAlias = nx.MultiDiGraph[TurnId]

Edge: TypeAlias = tuple[TurnId, TurnId]
"""(winner, loser) of a pair with a strict majority."""


class Results(NamedTuple):
    """The numbers of a turn's wins, losses and ties."""

    won: int = 0
    lost: int = 0
    tied: int = 0

    @property
    def net(self) -> int:
        """Wins minus losses."""
        return self.won - self.lost

    def plus(self, other: Results) -> Results:
        """Return the sum of two results.

        >>> Results(1, 2, 0).plus(Results(0, 1, 1))
        Results(won=1, lost=3, tied=1)
        """
        return Results(self.won + other.won, self.lost + other.lost, self.tied + other.tied)


_NONE = Results()
_FOR_LEFT: dict[Outcome, Results] = {"left": Results(1), "right": Results(0, 1), "tie": Results(0, 0, 1)}
_FOR_RIGHT: dict[Outcome, Results] = {"left": Results(0, 1), "right": Results(1), "tie": Results(0, 0, 1)}


def results_by_opponent(votes: Sequence[Vote]) -> dict[TurnId, dict[TurnId, Results]]:
    """Return the table ``[turn][opponent]`` of a turn's wins, losses and ties against each opponent.

    Each vote is counted for both of its sides.

    >>> a, b = TurnId(0, 0), TurnId(1, 0)
    >>> results_by_opponent([Vote(TurnId(2, 1), a, b, "right"), Vote(TurnId(3, 1), b, a, "tie")])[a][b]
    Results(won=0, lost=1, tied=1)
    """
    table: dict[TurnId, dict[TurnId, Results]] = {}
    for vote in votes:
        _add(table.setdefault(vote.left, {}), vote.right, _FOR_LEFT[vote.outcome])
        _add(table.setdefault(vote.right, {}), vote.left, _FOR_RIGHT[vote.outcome])
    return table


def _add(row: dict[TurnId, Results], opponent: TurnId, result: Results) -> None:
    before = row.get(opponent)
    row[opponent] = result if before is None else before.plus(result)


def total(row: Mapping[TurnId, Results]) -> Results:
    """Return a turn's total wins, losses and ties, from its row of ``results_by_opponent``.

    >>> total({TurnId(1, 0): Results(won=1), TurnId(2, 0): Results(lost=2)})
    Results(won=1, lost=2, tied=0)
    """
    return reduce(Results.plus, row.values(), _NONE)


def win_matrix(turns: Sequence[TurnId], votes: Sequence[Vote]) -> tuple[tuple[float, ...], ...]:
    """Return the matrix (n, n) whose entry (i, j) counts the wins of turn i over turn j.

    A tie is half a win for each side. Votes on other turns are ignored.

    >>> a, b = TurnId(0, 0), TurnId(1, 0)
    >>> win_matrix((a, b), [Vote(TurnId(2, 1), a, b, "left"), Vote(TurnId(3, 1), b, a, "tie")])
    ((0.0, 1.5), (0.5, 0.0))
    """
    table = results_by_opponent(votes)
    rows = ([table.get(turn, {}).get(other, _NONE) for other in turns] for turn in turns)
    return tuple(tuple(cell.won + cell.tied / 2 for cell in row) for row in rows)


def majorities(votes: Sequence[Vote]) -> tuple[Edge, ...]:
    """Return (winner, loser) of each pair with a strict majority, sorted.

    >>> a, b = TurnId(0, 0), TurnId(1, 0)
    >>> majorities([Vote(TurnId(2, 1), a, b, "right")]) == ((b, a),)
    True
    """
    table = results_by_opponent(votes)
    return tuple(
        sorted((turn, other) for turn in table for other, cell in table[turn].items() if cell.net > 0)
    )


def cycles(edges: Collection[Edge]) -> tuple[tuple[TurnId, ...], ...]:
    """Return the strongly connected components of three or more turns, each sorted; () if there is no cycle.

    >>> a, b, c, d = (TurnId(agent, 0) for agent in range(4))
    >>> cycles([(a, b), (b, c), (c, a), (a, d)]) == ((a, b, c),), cycles([(a, b), (b, c)])
    (True, ())
    """
    circular = _without_ends(edges)
    if not circular:
        return ()
    graph: nx.DiGraph[TurnId] = nx.DiGraph(list(circular))
    parts = (part for part in nx.strongly_connected_components(graph) if len(part) > 2)
    return tuple(sorted(tuple(sorted(part)) for part in parts))


def _without_ends(edges: Collection[Edge]) -> Collection[Edge]:
    """Return the edges left after removing, repeatedly, turns that beat nobody.

    If there is no cycle, no edges are left.
    """
    while edges:
        winners = {winner for winner, _ in edges}
        kept = [edge for edge in edges if edge[1] in winners]
        if len(kept) == len(edges):
            break
        edges = kept
    return edges


def condorcet_winner(edges: Collection[Edge], round_: int, num_agents: int) -> TurnId | None:
    """Return the turn of a round that beats the turns of all other agents, or None.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> condorcet_winner([(b, a), (b, c)], 0, 3) == b, condorcet_winner([(b, a)], 0, 3)
    (True, None)
    """
    wins: dict[TurnId, int] = {}
    for winner, loser in edges:
        if winner.round == loser.round == round_:
            wins[winner] = wins.get(winner, 0) + 1
    return next((turn for turn, count in wins.items() if count == num_agents - 1), None)


def last_voted_round(votes: Sequence[Vote]) -> int | None:
    """Return the last round whose solutions were voted on, or None without votes."""
    return max((max(vote.left.round, vote.right.round) for vote in votes), default=None)


def vote_graph(votes: Sequence[Vote]) -> VoteGraph:
    """Return a graph with one edge per vote, from the preferred turn to the other.

    For a tie: from left to right.

    Edges are keyed by the judge's TurnId. They carry ``outcome`` ("win" or "tie") and the ``span`` of the
    line in the judge's text, so every point of a score can be traced to the words that gave it.

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
    """Return the connected parts of the graph, ignoring edge directions, each sorted by agent."""
    return [sorted(part) for part in nx.weakly_connected_components(graph)]
