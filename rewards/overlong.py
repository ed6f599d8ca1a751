"""The penalty of replies near their token limit: the soft overlong punishment of DAPO [arXiv 2503.14476].

    0 up to limit - buffer, then falling linearly to the whole penalty at the limit

A reply that was cut off says nothing of what it would have come to. Its penalty begins before the limit, so
that a policy can learn to stop in time.
"""

from __future__ import annotations

from debate.policy import token_counts
from debate.types import Completion, Debate, TurnId
from rewards.config import RewardConfig


def overlong_penalties(debate: Debate, config: RewardConfig) -> dict[TurnId, float]:
    """Return the penalty of each turn that has one; none unless ``config.overlong`` is "penalize"."""
    if config.overlong != "penalize":
        return {}
    limit = debate.protocol.max_tokens + debate.protocol.thinking_tokens
    penalties = {turn.id: overlong_penalty(turn.completion, limit, config) for turn in debate.turns}
    return {turn: penalty for turn, penalty in penalties.items() if penalty}


def overlong_penalty(completion: Completion, limit: int, config: RewardConfig) -> float:
    """Return the penalty of a reply; all of it where the reply was cut off, however many tokens are known.

    >>> config = RewardConfig(overlong="penalize", overlong_tokens=4, overlong_penalty=-0.5)
    >>> replies = [Completion((), (), (), "", "stop", 0, token_count=n) for n in (6, 7, 9, 10)]
    >>> [overlong_penalty(reply, 10, config) for reply in replies]
    [0.0, -0.125, -0.375, -0.5]
    """
    if completion.stop_reason == "length":
        return config.overlong_penalty
    beyond = token_counts(completion)[1] - (limit - config.overlong_tokens)
    return config.overlong_penalty * min(max(beyond / config.overlong_tokens, 0.0), 1.0) or 0.0  # never -0.0
