"""The judge reward of one turn explained: each vote that it gave, and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence

from debate.types import TurnId, Vote
from inspector.views.reward_numbers import Sources, added, written
from inspector.views.reward_types import GivenVote, JudgeWhy, Number
from inspector.views.reward_votes import Votes, grade_of
from rewards import RewardConfig
from rewards.judging import VoteValue, vote_values
from transcripts import Record


def judge_why(
    record: Record, votes: Votes, turn: TurnId, config: RewardConfig | None, numbers: Sources
) -> JudgeWhy:
    """Return why a turn has its judge reward."""
    weight = None if config is None else config.judge_weight_of_truth(verifiable=record.correct is not None)
    worth: dict[int, VoteValue] = {}
    if weight is not None:
        values = vote_values(votes.counted, record.correct, truth_weight=weight)
        worth = {id(vote): value for vote, value in zip(votes.counted, values, strict=True)}
    given = tuple(
        _given(record, votes, vote, reason, weight, None if reason else worth.get(id(vote)))
        for vote, reason in votes.cast
        if vote.judge == turn
    )
    paid = [one.value.value for one in given if one.value.value is not None]
    formula = f"({added(paid)}) / {len(paid)}" if paid else ""
    return JudgeWhy(weight, given, numbers.reward("judge", turn, formula, _judge_source(given, weight)))


def _judge_source(given: Sequence[GivenVote], weight: float | None) -> str:
    if not any(one.counts for one in given):
        return "the turn gave no vote that counts"
    if weight is not None and all(one.value.value is None for one in given):
        return "no vote has a value: see each vote"
    return "mean value of the votes that have one"


def _given(
    record: Record,
    votes: Votes,
    vote: Vote,
    reason: str,
    weight: float | None,
    worth: VoteValue | None,
) -> GivenVote:
    sides = grade_of(record, vote.left), grade_of(record, vote.right)
    return GivenVote(
        left=vote.left,
        right=vote.right,
        outcome=vote.outcome,
        line=votes.line(vote),
        counts=not reason,
        why_not=reason,
        left_right=sides,
        truth=None if worth is None else worth.truth,
        others=None if worth is None else worth.others,
        consensus=None if worth is None else worth.consensus,
        value=_worth(weight, worth, reason),
    )


def _worth(weight: float | None, worth: VoteValue | None, reason: str) -> Number:
    if reason:
        return Number(source=f"does not count: {reason}")
    if weight is None or worth is None:
        return Number(source="not known without a configuration")
    if worth.value is None:
        return Number(source=_why_worthless(weight))
    truth, consensus = worth.truth, worth.consensus
    if truth is not None and consensus is not None:
        formula = f"{written(weight)} * {written(truth)} + (1 - {written(weight)}) * {written(consensus)}"
        return Number(float(worth.value), formula, source="truth and the consensus of the others, weighed")
    part = written(truth if truth is not None else consensus)
    return Number(float(worth.value), part, source="truth" if truth is not None else "the others' consensus")


def _why_worthless(weight: float) -> str:
    truth = "not exactly one side is right"
    consensus = "the other judges of the pair balance, or there are none"
    return truth if weight == 1 else consensus if weight == 0 else f"{truth}, and {consensus}"
