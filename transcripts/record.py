"""What is kept of one debate: enough to look at it, and to compute its rewards and advantages again."""

from __future__ import annotations

from dataclasses import dataclass, field

from debate.types import Debate, TurnId
from debate.values import Value
from rewards.types import Rewards, Truth


class TurnAdvantages(Value, frozen=True):
    """What one turn's tokens were weighted with; None where the stream gave the turn no signal.

    ``peer`` and ``truth``, weights included, add up to ``generator``; None as well where the rewards were
    mixed before the baseline.
    """

    turn: TurnId
    generator: float | None = None
    judge: float | None = None
    format: float | None = None
    peer: float | None = None
    truth: float | None = None


PARTS = ("generator", "judge", "format", "peer", "truth")
"""The advantages of a turn, by the names of their fields."""


class Timing(Value, frozen=True):
    """When a debate ended, in seconds since 1970, and how many ``seconds`` after its rollout began."""

    ended: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Record:
    """One debate of one training step.

    ``group`` names the problem's group within the step (its K debates share it); ``correct`` is (N, R),
    or None for a problem without an answer; ``rewards`` is None where nothing was scored. ``timing`` differs
    from one run to the next and takes no part in ``==``.
    """

    debate: Debate
    step: int
    group: str
    correct: tuple[tuple[Truth, ...], ...] | None = None
    rewards: Rewards | None = None
    advantages: tuple[TurnAdvantages, ...] = ()
    timing: Timing | None = field(default=None, compare=False)
