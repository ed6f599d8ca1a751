"""The votes on each round's solutions: every arrow as it was cast, and the order or the cycle they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from debate.types import Span, TurnId, Vote
from rewards import ballot_box, drop_reasons
from rewards.graph import Edge, Results, condorcet_winner, cycles, majorities, results_by_opponent, win_matrix
from rewards.judging import by_truth
from rewards.votes import UNREAD
from transcripts import Record
from transcripts.record import check_record

Verdict: TypeAlias = Literal["right", "wrong", "undecidable"]
_VERDICTS: dict[int | None, Verdict] = {1: "right", -1: "wrong", 0: "wrong", None: "undecidable"}


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

    ``matrix[i][j]``: valid votes in which solution i beat j, (S, S) in the order of ``solutions``; a
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

    def wins(self, index: int, other: int) -> str:
        """Return the votes that one solution won against another, an = for each tie; "·" against itself."""
        if index == other:
            return "·"
        ties = self.ties[index][other]
        return f"{self.matrix[index][other] - ties / 2:g}" + ("=" * ties if ties <= 2 else f"+{ties}=")


def vote_graphs(record: Record) -> tuple[RoundGraph, ...]:
    """Return a graph for each round whose solutions were voted on, in order, whether or not a vote counts.

    Own work counts where the protocol asked for it, as filters have it. ValueError for a record that is
    not a debate (``check_record``).
    """
    check_record(record)
    debate = record.debate
    cast: defaultdict[int, list[tuple[Vote, str]]] = defaultdict(list)
    unread: defaultdict[int, list[UnreadLine]] = defaultdict(list)
    for vote, reason in zip(debate.votes, drop_reasons(ballot_box(debate)), strict=True):
        cast[max(vote.left.round, vote.right.round)].append((vote, reason))
    for turn in debate.turns:
        for failure in turn.parsed.failures:
            if failure.reason in UNREAD:
                line = failure.span.of(turn.completion.text) if failure.span else failure.detail
                found = UnreadLine(turn.id, UNREAD[failure.reason], line, failure.span)
                unread[turn.id.round - 1].append(found)
    return tuple(_graph(record, round_, cast[round_], unread[round_]) for round_ in sorted({*cast, *unread}))


def _graph(
    record: Record, round_: int, cast: Sequence[tuple[Vote, str]], unread: Sequence[UnreadLine]
) -> RoundGraph:
    compared = {side for vote, _ in cast for side in (vote.left, vote.right)}
    of_round = {turn.id for turn in record.debate.turns if turn.id.round == round_ and not turn.ballot}
    solutions = tuple(sorted(compared | of_round))
    counted = [vote for vote, reason in cast if not reason]
    edges = majorities(counted)
    circles = cycles(edges)
    cyclic = {edge for edge in edges for circle in circles if {*edge} <= {*circle}}
    table, none = results_by_opponent(counted), Results()
    return RoundGraph(
        round=round_,
        solutions=solutions,
        arrows=tuple(_arrow(record, vote, reason, cyclic) for vote, reason in cast),
        matrix=win_matrix(solutions, counted),
        ties=tuple(
            tuple(table.get(turn, {}).get(other, none).tied for other in solutions) for turn in solutions
        ),
        edges=edges,
        cycles=circles,
        condorcet=condorcet_winner(edges, round_, record.debate.protocol.num_agents),
        unread=tuple(unread),
    )


def _arrow(record: Record, vote: Vote, reason: str, cyclic: Collection[Edge]) -> Arrow:
    winner, loser = (vote.right, vote.left) if vote.outcome == "right" else (vote.left, vote.right)
    tie = vote.outcome == "tie"
    return Arrow(
        judge=vote.judge,
        winner=winner,
        loser=loser,
        tie=tie,
        left=vote.left,
        right=vote.right,
        truth=_VERDICTS[by_truth(vote, record.correct)],
        counts=not reason,
        dropped=reason,
        in_cycle=not reason and not tie and (winner, loser) in cyclic,
        line=vote.span.of(record.debate.turn(vote.judge).completion.text) if vote.span else "",
        span=vote.span,
    )
