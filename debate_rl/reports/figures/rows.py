"""Tables that grow by rows, and the rows of one debate. Grades: 1 right, 0 wrong or missing, -1 ungraded."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from math import log, nan
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate.types import TurnId
from debate_rl.metrics.answers import consensus, graded_answers
from debate_rl.metrics.intervals import Numbered
from debate_rl.reports.figures.judged_debate import JudgedDebate
from debate_rl.reports.figures.orders import (
    auc,
    circular_triads,
    kendall_tau_b,
    kendall_zeta,
    slater_distance,
)
from rewards.graph import condorcet_winner, cycles, last_voted_round
from rewards.judging import better_side
from rewards.peer import best_voted
from rewards.truth import FLIPS, flips, grades_of_solutions
from rewards.votes import FOR_LEFT, DuePair


class Columns:
    """A table; ``types`` are type codes of ``array``: "b" 1 byte, "h" 2, "i" 4, "f" a float of 4.

    >>> table = Columns({"debate": "i", "right": "b"})
    >>> table.add(0, 1)
    >>> table.add(0, -1)
    >>> table["right"], len(table)
    (array([ 1, -1], dtype=int8), 2)
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._columns: dict[str, array[Any]] = {name: array(code) for name, code in types.items()}
        self._arrays = tuple(self._columns.values())

    def add(self, *values: float) -> None:
        """Add a row, in the order of the columns."""
        for column, value in zip(self._arrays, values, strict=True):
            column.append(value)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column as (rows,), a copy."""
        column = self._columns[name]
        return np.array(column, dtype=np.dtype(column.typecode))

    def __len__(self) -> int:
        return len(self._arrays[0])


NO_VOTE = 2
"""The outcome of a pair that was due and got no valid vote."""
SLATER_MOST = 8
"""The most solutions for which the Slater distance is searched."""


PAIRS = {
    **{"debate": "i", "round": "b", "agent": "b", "persona": "h", "first": "b", "second": "b"},
    **{"better": "b", "own": "b", "outcome": "b", "length": "f", "self": "b", "fault": "h"},
}
"""Due pairs. ``better``: as rewards.judging.better_side; ``own``: 1 the first is the judge's, -1 second.
``fault``: of the wrong side of a decidable pair, -1 of others."""


def add_pairs(table: Columns, debate: JudgedDebate, faults: Numbered) -> None:
    """A row for each due pair; ``length`` is ln(first / second), ``self`` the grade of the judge's answer."""
    seen: dict[TurnId, int] = {}
    for pair in debate.due:
        agent, round_ = pair.judge.agent, pair.judge.round
        alone = debate.grade(TurnId(agent, min(round_, debate.rounds) - 1))
        better = better_side(pair.first, pair.second, debate.record.correct)
        wrong = {1: pair.second, -1: pair.first}.get(better)
        if wrong is not None and wrong not in seen:
            seen[wrong] = faults[debate.fault(wrong)]
        table.add(
            debate.index,
            round_,
            agent,
            debate.personas[agent],
            debate.grade(pair.first),
            debate.grade(pair.second),
            better,
            (pair.first.agent == agent) - (pair.second.agent == agent),
            NO_VOTE if pair.verdict is None else pair.verdict,
            log(debate.size(pair.first) / debate.size(pair.second)),
            alone,
            -1 if wrong is None else seen[wrong],
        )


SWAPS = {"debate": "i", "kind": "b"}
"""Pairs judged in both orders; ``kind``: 0 consistent, 1 primacy, -1 recency."""


def add_swaps(table: Columns, debate: JudgedDebate) -> None:
    """A row for each two decided votes on one pair that was shown to one in each order."""
    by_pair: dict[frozenset[TurnId], list[DuePair]] = defaultdict(list)
    for pair in debate.due:
        if pair.verdict:
            by_pair[frozenset((pair.first, pair.second))].append(pair)
    for votes in by_pair.values():
        for first, second in combinations(votes, 2):
            if first.first != second.first:
                table.add(debate.index, (first.verdict if first.verdict == second.verdict else 0) or 0)


WINNERS = {"debate": "i", "right": "b", "graded": "b", "rights": "b", "drawn": "b"} | dict.fromkeys(
    ("majority", "auc", "tau", "score"), "f"
)
"""Debates with a graded winner, all about the last judged round."""


def add_winner(table: Columns, debate: JudgedDebate) -> None:
    """A row where the winner was graded; nan where scores cannot be compared with truth."""
    winner = debate.winner
    if winner is None or debate.grade(winner) < 0:
        return
    round_ = winner.round
    grades = [debate.grade(TurnId(agent, round_)) for agent in range(debate.agents)]
    score = debate.peer[winner.agent][round_]
    scored = [(debate.peer[a][round_], grades[a]) for a in range(debate.agents) if grades[a] >= 0]
    known = [(value, grade) for value, grade in scored if value is not None]
    table.add(
        debate.index,
        grades[winner.agent],
        sum(grade >= 0 for grade in grades),
        sum(grade == 1 for grade in grades),
        len(best_voted(debate.peer)) > 1,
        _majority(debate, round_),
        auc(known),
        kendall_tau_b(known),
        nan if score is None else score,
    )


def _majority(debate: JudgedDebate, round_: int) -> float:
    """Return the chance that the most frequent answer of a round is right, ties drawn."""
    record = debate.record
    return consensus([answer for at, answer in graded_answers(record.debate, record.correct) if at == round_])


FLIP_COUNTS = {"debate": "i", **dict.fromkeys(FLIPS, "h")}
"""Debates by how often an agent went from right or wrong to right or wrong."""


def add_flips(table: Columns, debate: JudgedDebate) -> None:
    """A row for a debate in which some agent was graded in two rounds in a row."""
    counts = flips(grades_of_solutions(debate.record.debate, debate.record.correct))
    if any(counts.values()):
        table.add(debate.index, *counts.values())


ADOPTIONS = {"debate": "i", "excess": "f"}
"""Adopted answers; ``excess``: did the first shown give it, less the share of all."""


def add_adoptions(table: Columns, debate: JudgedDebate) -> None:
    """A row for each answer taken over from some, and not all, of the others that the prompt showed."""
    for turn, shown in debate.box.comparable.items():
        agent, round_ = turn.agent, turn.round
        others = [debate.answer(other) for other in shown if other.agent != agent]
        if not 0 < round_ < debate.rounds or len(others) < 2:
            continue
        now, before = debate.answer(turn), debate.answer(TurnId(agent, round_ - 1))
        share = fmean(other == now for other in others)
        if now is not None and now != before and 0 < share < 1:
            table.add(debate.index, (others[0] == now) - share)


GRAPHS = {"debate": "i", "cycle": "b", "condorcet": "b"}
"""Debates with votes: has the majority graph a cycle, and a Condorcet winner."""


def add_graph(table: Columns, debate: JudgedDebate) -> None:
    """A row for a debate with a vote that counts."""
    last = last_voted_round(debate.votes)
    if last is not None:
        best = condorcet_winner(debate.edges, last, debate.agents)
        table.add(debate.index, bool(cycles(debate.edges)), best is not None)


ROUNDS = {"debate": "i", "circular": "i", "triads": "i", "zeta": "f", "slater": "f"}
"""Judged rounds: circular and decided triads, Kendall's zeta, Slater distance."""


def add_rounds(table: Columns, debate: JudgedDebate) -> None:
    """A row for each round with a strict majority on some pair of its solutions; nan where undefined."""
    rounds: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for winner, loser in debate.edges:
        if winner.round == loser.round:
            rounds[winner.round].add((winner.agent, loser.agent))
    for edges in rounds.values():
        circular, decided = circular_triads(edges)
        small = debate.agents <= SLATER_MOST
        slater = slater_distance(frozenset(edges)) if small else nan
        table.add(debate.index, circular, decided, kendall_zeta(edges, debate.agents), slater)


TALK = {"debate": "i", "entropy": "f", "given": "f", "dyads": "h"}
"""Debates: entropy of the last answers (of 1), and votes given for votes taken."""


def add_talk(table: Columns, debate: JudgedDebate) -> None:
    """A row for each debate; ``given`` sums the products of favours over the ``dyads`` that have both."""
    favours = _favours(debate)
    both = [favours[a, b] * favours[b, a] for a, b in favours if a < b and (b, a) in favours]
    table.add(debate.index, _entropy(debate), sum(both), len(both))


def _favours(debate: JudgedDebate) -> dict[tuple[int, int], float]:
    """Return the mean of a judge's votes (+1, 0, -1) for an agent, on pairs equal in truth."""
    favours: dict[tuple[int, int], list[int]] = defaultdict(list)
    for vote in debate.votes:
        judge, left, right = vote.judge.agent, vote.left.agent, vote.right.agent
        if judge not in (left, right) and debate.grade(vote.left) == debate.grade(vote.right):
            favours[judge, left].append(FOR_LEFT[vote.outcome])
            favours[judge, right].append(-FOR_LEFT[vote.outcome])
    return {key: fmean(favours[key]) for key in permutations(range(debate.agents), 2) if key in favours}


def _entropy(debate: JudgedDebate) -> float:
    """Return the entropy of the answers of the last round over ln N; nan with fewer than two answers."""
    keys: Sequence[str | None] = [
        debate.answer(TurnId(agent, debate.rounds - 1)) for agent in range(debate.agents)
    ]
    given = [key for key in keys if key is not None]
    if len(given) < 2:
        return nan
    shares = [count / len(given) for count in Counter(given).values()]
    return -sum(share * log(share) for share in shares) / log(len(given))
