"""Which reward scheme: how votes become scores, and how the streams are weighed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from debate.settings import Settings
from rewards.peer import peer_rule


class RewardConfig(Settings):
    """The reward scheme. A turn without signal has None whatever is set here, never a number."""

    peer: str = "margin"
    """Peer rule: "margin", "copeland", "bradley_terry", or your own as "module:function" (rewards/peer/)."""
    bradley_terry_alpha: float = Field(default=0.1, ge=1e-3)
    """Regularisation of Bradley-Terry scores, > 0: without it the winner of every vote scores infinity."""
    truth_weight: float = Field(default=0.5, ge=0, le=1)
    """Share of the truth stream in the generator's credit; the peer stream has the rest."""
    truth_correct: float = 1.0
    """Truth reward of a right answer."""
    truth_wrong: float = 0.0
    """Truth reward of a wrong answer."""
    truth_missing: float = 0.0
    """Truth reward of a turn from which no answer could be read."""
    judge_truth_weight: float | None = Field(default=None, ge=0, le=1)
    """Share of truth beside the consensus of the other judges; None is 1 with ground truth and 0 without."""
    judge_own: bool = False
    """Whether votes on the judge's own work count (``debate.judge_own`` is whether it is asked for them)."""
    format_penalty: float = -0.5
    """Added to a turn from which due comparisons are missing; zero or less."""
    mix: Literal["advantages", "rewards"] = "advantages"
    """Whether peer and truth are joined after their baselines, or before as one reward."""

    @field_validator("peer")
    @classmethod
    def _known_rule(cls, value: str) -> str:
        peer_rule(value)
        return value

    @field_validator("format_penalty")
    @classmethod
    def _not_a_prize(cls, value: float) -> float:
        if value > 0:
            raise ValueError(f"is added to fined turns, so it must be 0 or less, got {value}")
        return value

    def judge_weight_of_truth(self, *, verifiable: bool) -> float:
        """Return the judge stream's weight of truth for a problem with or without an answer.

        >>> RewardConfig().judge_weight_of_truth(verifiable=True)
        1.0
        >>> RewardConfig().judge_weight_of_truth(verifiable=False)
        0.0
        """
        if self.judge_truth_weight is None:
            return 1.0 if verifiable else 0.0
        return self.judge_truth_weight
