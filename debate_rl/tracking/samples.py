"""A share of the debates in a form to read: one flat row for each turn, for samples.jsonl and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypedDict

from debate.seeds import derive_seed
from debate.types import Turn
from rewards.truth import GRADES, grade_of
from rewards.types import NO_REWARDS, value_of
from transcripts import Record, TurnAdvantages


class Sample(TypedDict):
    """One turn of a debate that was drawn.

    ``debate`` is its id, as 12.3; ``answer`` was read from ``text``; ``grade`` is right, wrong, missing or
    ungraded, and empty for a ballot. Rewards and advantages are None where the stream gave the turn no
    signal; ``advantage_format`` is added to both of the others.
    """

    step: int
    debate: str
    problem: str
    question: str
    gold: str | None
    agent: int
    persona: str
    round: int
    ballot: bool
    text: str
    tokens: int
    stop_reason: str
    answer: str | None
    grade: str
    reward_peer: float | None
    reward_truth: float | None
    reward_judge: float | None
    reward_format: float | None
    advantage_generator: float | None
    advantage_judge: float | None
    advantage_format: float | None


def draw_samples(records: Sequence[Record], share: float) -> list[Sample]:
    """Return the turns of about this share of the debates, in order.

    A debate's own seed decides, so a run that goes on draws the same ones.
    """
    return [
        sample
        for index, record in enumerate(records)
        if Random(derive_seed(record.debate.seed, "sample")).random() < share
        for sample in samples_of(record, index)
    ]


def samples_of(record: Record, index: int) -> Iterator[Sample]:
    """Yield a row for each turn of a debate."""
    advantages = {part.turn: part for part in record.advantages}
    for turn in record.debate.turns:
        yield _sample(record, index, turn, advantages.get(turn.id, TurnAdvantages(turn.id)))


def _sample(record: Record, index: int, turn: Turn, advantage: TurnAdvantages) -> Sample:
    debate, agent = record.debate, turn.id.agent
    rewards = record.rewards or NO_REWARDS
    return Sample(
        step=record.step,
        debate=f"{record.step}.{index}",
        problem=debate.problem.id,
        question=debate.problem.question,
        gold=debate.problem.answer,
        agent=agent,
        persona=debate.personas[agent].name,
        round=turn.id.round,
        ballot=turn.ballot,
        text=turn.completion.text,
        tokens=len(turn.completion.tokens),
        stop_reason=turn.completion.stop_reason,
        answer=turn.parsed.answer,
        grade="" if turn.ballot else GRADES[grade_of(turn.id, record.correct)],
        reward_peer=value_of(rewards.peer, turn.id),
        reward_truth=value_of(rewards.truth, turn.id),
        reward_judge=value_of(rewards.judge, turn.id),
        reward_format=value_of(rewards.format, turn.id),
        advantage_generator=advantage.generator,
        advantage_judge=advantage.judge,
        advantage_format=advantage.format,
    )
