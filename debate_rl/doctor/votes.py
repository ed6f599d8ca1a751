"""How often votes call decidable pairs right, beside how often the commoner answer would (p_v and p_c).

Training on votes, without truth, moves answers the way that votes point, and training on majorities the way
that the crowd points; which is better can be read off a few problems with truth before either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate import Debate
from debate.types import TurnId
from debate_rl.metrics.debates import due_pairs_of
from debate_rl.statistics import Estimate, clustered_mean, student
from envs.answers.keys import AnswerKey
from rewards import Correct
from rewards.judging import better_side


@dataclass(frozen=True, slots=True)
class RoundVotes:
    """Of the votes on decidable pairs of a round the share that is right, the crowd's on the same pairs,
    and the difference; clustered by problem. ``shared``: how far wrong votes on a problem are shared.
    """

    round: int
    votes: Estimate
    crowd: Estimate
    difference: Estimate
    shared: Estimate | None


def votes_by_round(
    debates: Sequence[Debate], correct: Sequence[Correct | None], key: AnswerKey
) -> list[RoundVotes]:
    """Return the figures of each judged round that has a vote on a decidable pair.

    A tie is a wrong vote. The crowd is every answer of the round to the problem, over all its debates; it is
    right where the right side's answer is the commoner, and half right where both are as common.
    """
    counts = answer_counts(debates, key)
    rows: dict[int, list[_Row]] = {}
    for number, (debate, table) in enumerate(zip(debates, correct, strict=True)):
        for pair in due_pairs_of(debate) if table is not None else ():
            better = better_side(pair.first, pair.second, table)
            if pair.verdict is None or not better:
                continue
            sides = (pair.first, pair.second) if better > 0 else (pair.second, pair.first)
            crowd = _crowd(debate, *sides, counts, key)
            row = _Row(float(pair.verdict == better), crowd, debate.problem.id, (number, pair.judge))
            rows.setdefault(pair.first.round, []).append(row)
    return [_of_round(number, rows[number]) for number in sorted(rows)]


def answer_counts(debates: Sequence[Debate], key: AnswerKey) -> Counter[tuple[str, int, str]]:
    """Return how often each answer was given, by problem, round and the key of the answer."""
    return Counter(
        (debate.problem.id, turn.id.round, key(debate.problem, turn.parsed.answer))
        for debate in debates
        for turn in debate.turns
        if turn.parsed.answer is not None
    )


class _Row(NamedTuple):
    """A vote on a decidable pair: is it right, is the crowd, on which problem, and who cast it."""

    right: float
    crowd: float
    problem: str
    judge: tuple[int, TurnId]


def _crowd(
    debate: Debate, right: TurnId, wrong: TurnId, counts: Counter[tuple[str, int, str]], key: AnswerKey
) -> float:
    one, other = (_count(debate, turn, counts, key) for turn in (right, wrong))
    return 0.5 if one == other else float(one > other)


def _count(debate: Debate, turn: TurnId, counts: Counter[tuple[str, int, str]], key: AnswerKey) -> int:
    answer = debate.turn(turn).parsed.answer
    return 0 if answer is None else counts[debate.problem.id, turn.round, key(debate.problem, answer)]


def _of_round(number: int, rows: Sequence[_Row]) -> RoundVotes:
    votes, crowd, problems, judges = zip(*rows, strict=True)
    apart = [one - other for one, other in zip(votes, crowd, strict=True)]
    return RoundVotes(
        number,
        clustered_mean(votes, problems),
        clustered_mean(crowd, problems),
        clustered_mean(apart, problems, signed=True),
        shared_errors([not vote for vote in votes], judges, problems),
    )


def shared_errors(
    wrong: Sequence[bool], judges: Sequence[Hashable], problems: Sequence[Hashable]
) -> Estimate | None:
    """Return the share of errors that are shared: 0 where judges err independently, 1 where all err together.

    It is (c - e) / (1 - e), c the share of wrong votes among those that other judges cast on the problem of
    a wrong one, e the share of all of these votes that are wrong: the intraclass correlation of errors by
    problem [Fleiss, Cuzick 1979]. Its interval is the jackknife's over problems. None where no problem has
    votes of two judges, or where all or none of the votes are wrong.

    >>> shared_errors([True, True, False, False], [1, 2, 1, 2], ["a", "a", "b", "b"]).value
    1.0
    >>> shared_errors([True, False, True, False], [1, 2, 1, 2], ["a", "a", "b", "b"]).value
    -1.0
    """
    by_problem: dict[Hashable, list[tuple[Hashable, bool]]] = {}
    for error, judge, problem in zip(wrong, judges, problems, strict=True):
        by_problem.setdefault(problem, []).append((judge, error))
    counts = np.array([_pairs_of(votes) for votes in by_problem.values()], dtype=float)
    value = _correlation(counts.sum(axis=0))
    if value is None:
        return None
    left_out = [_correlation(counts.sum(axis=0) - one) for one in counts]
    known = np.array([one for one in left_out if one is not None])
    count = len(counts)
    if len(known) < count or count < 2:
        return Estimate(value, -inf, inf, len(wrong), count, 1.0)
    error = sqrt((count - 1) / count * float(np.square(known - known.mean()).sum()))
    return student(value, error, len(wrong), count)


def _pairs_of(votes: Sequence[tuple[Hashable, bool]]) -> tuple[int, int, int]:
    """Return the ordered pairs of votes of two judges, those whose first is wrong, and both."""
    pairs = [(one[1], other[1]) for one, other in permutations(votes, 2) if one[0] != other[0]]
    return len(pairs), sum(one for one, _ in pairs), sum(one and other for one, other in pairs)


def _correlation(counts: NDArray[np.float64]) -> float | None:
    every, first, both = map(float, counts)
    return None if first in (0, every) else (both / first - first / every) / (1 - first / every)
