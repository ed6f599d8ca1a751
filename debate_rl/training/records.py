"""What a training step leaves in the transcripts: every debate with its truth, rewards and advantages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from debate import Debate
from debate.types import TurnId
from debate_rl.grading import Table
from learner.advantages import TurnAdvantage
from learner.types import agent_order
from rewards import Rewards
from transcripts import Record, Timing, TurnAdvantages


def step_records(
    step: int,
    debates: Sequence[Debate],
    correct: Sequence[Table | None],
    rewards: Sequence[Rewards],
    advantages: Sequence[TurnAdvantage | None],
    timings: Sequence[Timing] | None = None,
) -> list[Record]:
    """Return a step's records; ``advantages``: of the turns in the order of ``transitions_of``."""
    of_debates = advantages_by_debate(debates, advantages)
    return [
        Record(debate, step, debate.problem.id, table, reward, parts, timing)
        for debate, table, reward, parts, timing in zip(
            debates, correct, rewards, of_debates, timings or [None] * len(debates), strict=True
        )
    ]


def advantages_by_debate(
    debates: Sequence[Debate], advantages: Sequence[TurnAdvantage | None]
) -> Iterator[tuple[TurnAdvantages, ...]]:
    """Yield each debate's advantages in the order of its turns, those without signal left out."""
    rest = iter(advantages)
    for debate in debates:
        of_turns = {index: next(rest) for index in agent_order(debate)}
        yield tuple(
            _stored(turn.id, part)
            for index, turn in enumerate(debate.turns)
            if (part := of_turns[index]) is not None
        )


def _stored(turn: TurnId, part: TurnAdvantage) -> TurnAdvantages:
    return TurnAdvantages(turn, part.generator, part.judge, part.format, part.peer, part.truth)
