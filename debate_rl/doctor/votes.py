"""How often votes call decidable pairs right, beside how often the commoner answer would (p_v and p_c).

Training on votes, without truth, moves answers the way that votes point, and training on majorities the way
that the crowd points; which is better can be read off a few problems with truth before either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from debate import Debate
from debate.types import TurnId
from debate_rl.metrics.debates import due_pairs_of
from debate_rl.statistics import Estimate, clustered_mean
from envs.answers.keys import AnswerKey
from rewards import Correct
from rewards.judging import better_side


@dataclass(frozen=True, slots=True)
class RoundVotes:
    """Of the votes on decidable pairs of a round the share that is right, the crowd's on the same pairs,
    and the difference; clustered by problem.
    """

    round: int
    votes: Estimate
    crowd: Estimate
    difference: Estimate


def votes_by_round(
    debates: Sequence[Debate], correct: Sequence[Correct | None], key: AnswerKey
) -> list[RoundVotes]:
    """Return the figures of each judged round that has a vote on a decidable pair.

    A tie is a wrong vote. The crowd is every answer of the round to the problem, over all its debates; it is
    right where the right side's answer is the commoner, and half right where both are as common.
    """
    counts = answer_counts(debates, key)
    rows: dict[int, list[tuple[float, float, str]]] = {}
    for debate, table in zip(debates, correct, strict=True):
        for pair in due_pairs_of(debate) if table is not None else ():
            better = better_side(pair.first, pair.second, table)
            if pair.verdict is None or not better:
                continue
            sides = (pair.first, pair.second) if better > 0 else (pair.second, pair.first)
            crowd = _crowd(debate, *sides, counts, key)
            rows.setdefault(pair.first.round, []).append(
                (float(pair.verdict == better), crowd, debate.problem.id)
            )
    return [_of_round(number, rows[number]) for number in sorted(rows)]


def answer_counts(debates: Sequence[Debate], key: AnswerKey) -> Counter[tuple[str, int, str]]:
    """Return how often each answer was given, by problem, round and the key of the answer."""
    return Counter(
        (debate.problem.id, turn.id.round, key(debate.problem, turn.parsed.answer))
        for debate in debates
        for turn in debate.turns
        if turn.parsed.answer is not None
    )


def _crowd(
    debate: Debate, right: TurnId, wrong: TurnId, counts: Counter[tuple[str, int, str]], key: AnswerKey
) -> float:
    one, other = (_count(debate, turn, counts, key) for turn in (right, wrong))
    return 0.5 if one == other else float(one > other)


def _count(debate: Debate, turn: TurnId, counts: Counter[tuple[str, int, str]], key: AnswerKey) -> int:
    answer = debate.turn(turn).parsed.answer
    return 0 if answer is None else counts[debate.problem.id, turn.round, key(debate.problem, answer)]


def _of_round(number: int, rows: Sequence[tuple[float, float, str]]) -> RoundVotes:
    votes, crowd, problems = zip(*rows, strict=True)
    apart = [one - other for one, other in zip(votes, crowd, strict=True)]
    return RoundVotes(
        number,
        clustered_mean(votes, problems),
        clustered_mean(crowd, problems),
        clustered_mean(apart, problems, signed=True),
    )
