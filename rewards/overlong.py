"""Replies near or at their token limit (``rewards.overlong``): a penalty, or a mask. Both are DAPO's.

The penalty is the soft overlong punishment [arXiv 2503.14476]. It is 0 up to limit - buffer, then falls
linearly to the full penalty at the limit, so that a policy can learn to stop in time. The mask takes
truncated replies out of the loss, but keeps them in the baselines.
"""

from __future__ import annotations

from debate.policy import token_counts
from debate.types import Completion, Debate, Turn, TurnId
from rewards.config import Overlong, RewardConfig


def overlong_penalties(debate: Debate, config: RewardConfig) -> dict[TurnId, float]:
    """Return the penalty of each turn that has one; {} unless ``config.overlong`` is a table."""
    if not isinstance(config.overlong, Overlong):
        return {}
    limit = debate.protocol.max_tokens + debate.protocol.thinking_tokens
    penalties = {turn.id: overlong_penalty(turn.completion, limit, config.overlong) for turn in debate.turns}
    return {turn: penalty for turn, penalty in penalties.items() if penalty}


def overlong_penalty(completion: Completion, limit: int, overlong: Overlong) -> float:
    """Return the penalty of a reply near its token limit.

    A reply that was cut off gets the full penalty, whatever its token count.

    >>> overlong = Overlong(tokens=4, penalty=-0.5)
    >>> replies = [Completion((), (), (), "", "stop", 0, token_count=n) for n in (6, 7, 9, 10)]
    >>> [overlong_penalty(reply, 10, overlong) for reply in replies]
    [0.0, -0.125, -0.375, -0.5]
    """
    if completion.stop_reason == "length":
        return overlong.penalty
    beyond = token_counts(completion)[1] - (limit - overlong.tokens)
    return overlong.penalty * min(max(beyond / overlong.tokens, 0.0), 1.0) or 0.0  # never -0.0


def is_overlong_masked(turn: Turn, config: RewardConfig) -> bool:
    """Return True if the loss leaves the turn out because its reply was cut off."""
    return config.overlong == "mask" and turn.completion.stop_reason == "length"
