"""Copeland: the share of opponents beaten minus the share lost to, by majority [Copeland 1951].

One pair counts once however many judged it, so a pair with many judges weighs no more than one with few.
"""

from __future__ import annotations

from collections.abc import Sequence

from debate.types import TurnId, Vote
from rewards.votes import net_votes, sign


def copeland(votes: Sequence[Vote], *, alpha: float = 0.0) -> dict[TurnId, float]:
    """Return the mean sign of the pairwise margins, in [-1, 1], over the opponents a turn was compared with.

    A pair whose votes balance, or are all ties, gives both sides 0. ``alpha`` is not used.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> scores = copeland([Vote(TurnId(3, 1), a, b, "left"), Vote(TurnId(4, 1), a, c, "tie")])
    >>> scores[a], scores[b], scores[c]
    (0.5, -1.0, 0.0)
    """
    results: dict[TurnId, list[int]] = {}
    for (first, second), net in net_votes(votes).items():
        results.setdefault(first, []).append(sign(net))
        results.setdefault(second, []).append(-sign(net))
    return {turn: sum(signs) / len(signs) for turn, signs in results.items()}
