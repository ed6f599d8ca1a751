"""The truth stream: ground truth of each turn's answer, when the problem has one."""

from __future__ import annotations

from debate.types import TurnId
from rewards.config import RewardConfig
from rewards.poll import Poll
from rewards.types import Correct, Truth


def truth_reward(grade: Truth, config: RewardConfig) -> float | None:
    """Return the reward of a grade; None when the turn was not graded, which is never "wrong".

    >>> [truth_reward(grade, RewardConfig()) for grade in (True, False, "missing", None)]
    [1.0, 0.0, 0.0, None]
    """
    if grade is None:
        return None
    if grade == "missing":
        return config.truth_missing
    return config.truth_correct if grade else config.truth_wrong


def truth_rewards(poll: Poll, correct: Correct, config: RewardConfig) -> dict[TurnId, float | None]:
    """Return the truth reward of every solution turn that took place; no entries for an open problem."""
    if correct is None:
        return {}
    return {turn: truth_reward(correct[turn.agent][turn.round], config) for turn in poll.solutions()}


def is_right(turn: TurnId, correct: Correct) -> bool | None:
    """Return whether the turn's answer is right; a missing answer is not. None when it was not graded.

    >>> is_right(TurnId(0, 1), [[True, "missing"]])
    False
    """
    grade = correct[turn.agent][turn.round] if correct is not None else None
    return grade if grade is None else grade is True
