"""Margin: (wins - losses) / votes received. The soft vote ratio of debate RL, and the default."""

from __future__ import annotations

from collections.abc import Sequence

from debate.types import TurnId, Vote

_LEFT_GAINS = {"left": 1, "right": -1, "tie": 0}


def margin(votes: Sequence[Vote], *, alpha: float = 0.0) -> dict[TurnId, float]:
    """Return (W - L) / (W + L + T) in [-1, 1] for each turn that received votes; ``alpha`` is not used.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> judge = TurnId(3, 1)
    >>> scores = margin([Vote(judge, a, b, "left"), Vote(judge, b, c, "tie")])
    >>> scores[a], scores[b], scores[c]
    (1.0, -0.5, 0.0)
    """
    net: dict[TurnId, int] = {}
    received: dict[TurnId, int] = {}
    for vote in votes:
        gain = _LEFT_GAINS[vote.outcome]
        for turn, points in ((vote.left, gain), (vote.right, -gain)):
            net[turn] = net.get(turn, 0) + points
            received[turn] = received.get(turn, 0) + 1
    return {turn: net[turn] / received[turn] for turn in net}
