"""The segments of a critique: which tokens a stream rewards, with which weight, and what it gave."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from debate.config import DebateConfig
from debate.prompting.shown import holds_criticism, holds_solutions
from debate.ramps import number
from debate.types import Debate, TurnId
from learner.advantages import AdvantageConfig
from rewards import RewardConfig, Rewards
from rewards.types import stream_named, value_of


class Segment(NamedTuple):
    """Tokens of a phase and one stream that rewards them.

    ``weight``: of the stream's advantage; ``reward``: its mean over the turns that have one, else None.
    """

    name: str
    stream: str
    weight: float
    reward: float | None
    turns: int


def segments(
    debate: Debate, rewards: Rewards, scheme: RewardConfig, advantages: AdvantageConfig
) -> list[Segment]:
    """Return the segments of a critique in the order of the debate, with ramps at their first step."""
    scheme, advantages = scheme.at_step(0), advantages.at_step(0)
    generator, (peer, truth) = number(advantages.lambda_gen), scheme.stream_weights
    solved = [("peer", generator * peer), ("truth", generator * truth)]
    parts = {
        "proposal": solved,
        "criticism": [("persuasion", number(advantages.lambda_critic))],
        "ranking": [("judge", number(advantages.lambda_judge))],
        "revision": [*solved, *([("shaping", generator)] if scheme.shapes else [])],
        "verdict": [("judge", number(advantages.lambda_judge))],
    }
    return [
        _segment(debate, rewards, name, stream, weight)
        for name, streams in parts.items()
        for stream, weight in streams
    ]


def _segment(debate: Debate, rewards: Rewards, name: str, stream: str, weight: float) -> Segment:
    values = [
        value
        for turn in debate.turns
        if name in _segments_of(debate.protocol, turn.id)
        and (value := value_of(stream_named(rewards, stream), turn.id)) is not None
    ]
    return Segment(name, stream, weight, fmean(values) if values else None, len(values))


def _segments_of(protocol: DebateConfig, turn: TurnId) -> Iterator[str]:
    """Yield the segments that a turn of a round has."""
    if holds_criticism(protocol, turn.round):
        yield from ("criticism", "ranking")
    elif holds_solutions(protocol, turn.round):
        yield "revision" if turn.round else "proposal"
    else:
        yield "verdict"
