"""Figures of votes on rollouts: how many are valid and right, and the accuracy of choosing by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from debate_rl.metrics.answers import answers_by_round, consensus
from debate_rl.metrics.debates import due_pairs_of
from debate_rl.metrics.intervals import Estimate, clustered_mean
from envs.answers.keys import AnswerKey
from rewards import ballot_box, valid_votes
from rewards.judge_rewards import consistencies, decidable_votes
from rewards.peer import margins
from rewards.types import Stream
from rewards.winner import best_voted
from transcripts import Record

TITLES = {
    "votes_valid": "valid votes",
    "votes_first": "votes for the response shown first, without ties",
    "votes_same_when_swapped": "votes that stay the same in swapped order",
    "votes_right": "judge accuracy: right votes on decidable pairs",
    "winner": "accuracy of the vote winner",
    "majority": "accuracy of the most frequent answer",
    "mean": "accuracy of one response",
    "best": "problems with a right response",
    "winner_minus_majority": "vote winner minus most frequent answer",
    "winner_minus_mean": "vote winner minus one response",
}
"""The figures with their titles in the table. Differences are paired by problem."""
Values = dict[str, list[float]]


def figures(records: Sequence[Record], key: AnswerKey) -> dict[str, Estimate]:
    """Return the mean of each figure in ``TITLES`` that has values, with a 95% interval clustered by problem.

    ``votes_right`` is over the valid votes on pairs of a right and a wrong response; a tie is not right. The
    accuracies are over the problems on which all responses have a grade. ``key``: which answers are equal.
    """
    found = [(record.debate.problem.id, values_of(record, key)) for record in records]
    return {
        name: clustered_mean(values, clusters, signed="minus" in name)
        for name in TITLES
        if (values := [value for _, one in found for value in one.get(name, ())])
        and (clusters := [id for id, one in found for _ in one.get(name, ())])
    }


def values_of(record: Record, key: AnswerKey) -> Values:
    """Return the values of each figure on one problem.

    If several responses share the most votes, or several answers are equally frequent, the value is the
    chance that one of them drawn by lot is right. Without votes, the winner is drawn from all responses.
    """
    debate, pairs = record.debate, due_pairs_of(record.debate)
    cast = [pair.verdict for pair in pairs if pair.verdict is not None]
    found: Values = {
        "votes_valid": [float(pair.verdict is not None) for pair in pairs],
        "votes_first": [float(one > 0) for one in cast if one],
        "votes_same_when_swapped": [(1 + one) / 2 for one in consistencies(debate, judge_own=True).values()],
        "votes_right": [float(vote) for vote in decidable_votes(pairs, record.correct) if vote is not None],
    }
    right = [row[0] is True for row in record.correct or () if row[0] is not None]
    if len(right) < len(debate.personas):
        return found
    winner = fmean(right[agent] for agent in winners_of(record) or range(len(right)))
    majority = consensus(answers_by_round(debate, record.correct, key)[0])
    return found | {
        "winner": [winner],
        "majority": [majority],
        "mean": [fmean(right)],
        "best": [float(any(right))],
        "winner_minus_majority": [winner - majority],
        "winner_minus_mean": [winner - fmean(right)],
    }


def winners_of(record: Record) -> list[int]:
    """Return the responses, counted from 0, with the best score by votes; [] if no vote counts."""
    return [turn.agent for turn in best_voted(scores_of(record), 0)]


def scores_of(record: Record) -> Stream:
    """Return the score of each response, (N, R): the mean margin of its votes, in [-1, 1], None without."""
    debate = record.debate
    return margins(valid_votes(ballot_box(debate)), debate.protocol.num_agents, debate.protocol.num_rounds)


def is_mixed(record: Record) -> bool:
    """Return whether some responses to the problem are right and others wrong, so that votes can matter."""
    return {row[0] is True for row in record.correct or () if row[0] is not None} == {True, False}


def by_problem(records: Sequence[Record]) -> list[Mapping[str, object]]:
    """Return the votes on each problem for a JSON file.

    ``scores``, ``right`` and ``answers`` have one entry per response. A vote is [judge, first, second,
    verdict]: 1 if the first is better, -1 if the second is, 0 for a tie, None without a valid vote.
    """
    rows: list[Mapping[str, object]] = []
    for record in records:
        pairs = due_pairs_of(record.debate)
        rows.append(
            {
                "id": record.debate.problem.id,
                "winners": winners_of(record),
                "scores": [row[0] for row in scores_of(record)],
                "right": [row[0] for row in record.correct or ()],
                "answers": [turn.parsed.answer for turn in record.debate.turns if turn.id.round == 0],
                "votes": [
                    [pair.judge.agent, pair.first.agent, pair.second.agent, pair.verdict] for pair in pairs
                ],
            }
        )
    return rows
