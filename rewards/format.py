"""The format stream: a fine for a turn that was due to compare and cast no vote that counts."""

from __future__ import annotations

from collections.abc import Sequence

from debate.types import TurnId, Vote
from rewards.poll import Poll


def fined_turns(poll: Poll, votes: Sequence[Vote]) -> set[TurnId]:
    """Return the turns in which comparisons were due and no valid vote came; never one of round 0."""
    return set(poll.due()) - {vote.judge for vote in votes}


def format_rewards(poll: Poll, votes: Sequence[Vote], penalty: float) -> dict[TurnId, float]:
    """Return ``penalty`` for fined turns and 0.0 for every other turn that took place."""
    fined = fined_turns(poll, votes)
    return {turn: penalty if turn in fined else 0.0 for turn in poll.comparable}
