"""The votes on each round's solutions: every arrow as it was cast, and the order or the circle they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import networkx as nx

from debate.types import Debate, Span, TurnId, Vote
from inspector.views.checked import check_record, is_ballot
from rewards import drop_reasons, poll_of_debate
from rewards.poll import UNREAD
from rewards.truth import is_right
from rewards.votes import net_votes
from transcripts import Record

Verdict: TypeAlias = Literal["right", "wrong", "undecidable"]
Edge: TypeAlias = tuple[TurnId, TurnId]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One vote as cast; of a tie, ``winner`` and ``loser`` are ``left`` and ``right``, in reading order.

    ``truth``: whether it is for the right side of a pair of which exactly one side is right, a tie being
    wrong; "undecidable" else. ``dropped``: why it does not count ("" where it does), as the reward rules
    name it. ``in_cycle``: it counts and goes with a majority of a cycle. ``line``: the judge's words.
    """

    judge: TurnId
    winner: TurnId
    loser: TurnId
    tie: bool
    left: TurnId
    right: TurnId
    truth: Verdict
    counts: bool
    dropped: str
    in_cycle: bool
    line: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class UnreadLine:
    """A line of a comparison that never became a vote, and why, as the reward rules count it."""

    judge: TurnId
    reason: str
    line: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class RoundGraph:
    """The votes on the solutions of one round.

    ``matrix[i][j]``: votes that count in which solution i beat j, (S, S) by the places in ``solutions``; a
    tie adds 0.5 both ways and 1 to ``ties[i][j]`` and ``ties[j][i]``. ``edges``: (winner, loser) of each
    strict majority. ``cycles``: strongly connected components of three or more. ``condorcet``: the solution
    that beats those of all other agents.
    """

    round: int
    solutions: tuple[TurnId, ...]
    arrows: tuple[Arrow, ...]
    matrix: tuple[tuple[float, ...], ...]
    ties: tuple[tuple[int, ...], ...]
    edges: tuple[Edge, ...]
    cycles: tuple[tuple[TurnId, ...], ...]
    condorcet: TurnId | None
    unread: tuple[UnreadLine, ...]


def vote_graphs(record: Record) -> tuple[RoundGraph, ...]:
    """Return a graph for each round whose solutions were voted on, in order, whether or not a vote counts.

    Own work counts where the protocol asked for it, as filters have it. ValueError for a record that is no
    debate (``check_record``).
    """
    check_record(record)
    debate = record.debate
    reasons = drop_reasons(poll_of_debate(debate, judge_own=True))
    cast: defaultdict[int, list[tuple[Vote, str]]] = defaultdict(list)
    unread: defaultdict[int, list[UnreadLine]] = defaultdict(list)
    for vote, reason in zip(debate.votes, reasons, strict=True):
        cast[max(vote.left.round, vote.right.round)].append((vote, reason))
    for line in _unread(debate):
        unread[line.judge.round - 1].append(line)
    texts = {turn.id: turn.completion.text for turn in debate.turns}
    return tuple(_graph(record, n, cast[n], unread[n], texts) for n in sorted({*cast, *unread}))


def _unread(debate: Debate) -> Iterable[UnreadLine]:
    for turn in debate.turns:
        for failure in turn.parsed.failures:
            if failure.reason in UNREAD:
                line = failure.span.of(turn.completion.text) if failure.span else failure.detail
                yield UnreadLine(turn.id, UNREAD[failure.reason], line, failure.span)


def _graph(
    record: Record,
    round_: int,
    cast: Sequence[tuple[Vote, str]],
    unread: Sequence[UnreadLine],
    texts: Mapping[TurnId, str],
) -> RoundGraph:
    named = {side for vote, _ in cast for side in (vote.left, vote.right)}
    turns = (turn for turn in record.debate.turns if turn.id.round == round_)
    held = {turn.id for turn in turns if not is_ballot(record, turn)}
    solutions = tuple(sorted(named | held))
    counted = [vote for vote, reason in cast if not reason]
    edges = majorities(counted)
    cycles = cycles_of(edges)
    circular = {edge for edge in edges for part in cycles if edge[0] in part and edge[1] in part}
    matrix, ties = _matrix(solutions, counted)
    return RoundGraph(
        round=round_,
        solutions=solutions,
        arrows=tuple(_arrow(record, vote, reason, circular, texts) for vote, reason in cast),
        matrix=matrix,
        ties=ties,
        edges=edges,
        cycles=cycles,
        condorcet=_condorcet(edges, round_, record.debate.protocol.num_agents),
        unread=tuple(unread),
    )


def majorities(votes: Sequence[Vote]) -> tuple[Edge, ...]:
    """Return (winner, loser) of each pair with a strict majority, sorted.

    >>> a, b = TurnId(0, 0), TurnId(1, 0)
    >>> majorities([Vote(TurnId(2, 1), a, b, "right")]) == ((b, a),)
    True
    """
    net = net_votes(votes)
    return tuple(sorted((a, b) if total > 0 else (b, a) for (a, b), total in net.items() if total))


def cycles_of(edges: Iterable[Edge]) -> tuple[tuple[TurnId, ...], ...]:
    """Return the strongly connected components of three or more, each sorted.

    >>> a, b, c, d = (TurnId(agent, 0) for agent in range(4))
    >>> cycles_of([(a, b), (b, c), (c, a), (a, d)]) == ((a, b, c),)
    True
    """
    graph: nx.DiGraph[TurnId] = nx.DiGraph(list(edges))
    return tuple(
        sorted(tuple(sorted(part)) for part in nx.strongly_connected_components(graph) if len(part) > 2)
    )


def _arrow(
    record: Record,
    vote: Vote,
    reason: str,
    circular: Collection[Edge],
    texts: Mapping[TurnId, str],
) -> Arrow:
    winner, loser = (vote.right, vote.left) if vote.outcome == "right" else (vote.left, vote.right)
    tie = vote.outcome == "tie"
    return Arrow(
        judge=vote.judge,
        winner=winner,
        loser=loser,
        tie=tie,
        left=vote.left,
        right=vote.right,
        truth=_truth(record, winner, loser, tie=tie),
        counts=not reason,
        dropped=reason,
        in_cycle=not reason and not tie and (winner, loser) in circular,
        line=vote.span.of(texts[vote.judge]) if vote.span else "",
        span=vote.span,
    )


def _truth(record: Record, winner: TurnId, loser: TurnId, *, tie: bool) -> Verdict:
    rounds = record.debate.protocol.num_rounds
    if max(winner.round, loser.round) >= rounds:  # a final ballot has no answer
        return "undecidable"
    won, lost = is_right(winner, record.correct), is_right(loser, record.correct)
    if won is None or lost is None or won == lost:
        return "undecidable"
    return "right" if won and not tie else "wrong"


def _matrix(
    solutions: tuple[TurnId, ...], votes: Sequence[Vote]
) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[int, ...], ...]]:
    size, places = len(solutions), {turn: place for place, turn in enumerate(solutions)}
    wins = [[0.0] * size for _ in range(size)]
    ties = [[0] * size for _ in range(size)]
    for vote in votes:
        left, right = places[vote.left], places[vote.right]
        share = {"left": 1.0, "right": 0.0, "tie": 0.5}[vote.outcome]
        wins[left][right] += share
        wins[right][left] += 1 - share
        if vote.outcome == "tie":
            ties[left][right] += 1
            ties[right][left] += 1
    return tuple(map(tuple, wins)), tuple(map(tuple, ties))


def _condorcet(edges: Iterable[Edge], round_: int, agents: int) -> TurnId | None:
    wins: dict[TurnId, int] = {}
    for winner, loser in edges:
        if winner.round == loser.round == round_:
            wins[winner] = wins.get(winner, 0) + 1
    return next((turn for turn, count in sorted(wins.items()) if count == agents - 1), None)
