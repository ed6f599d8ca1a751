"""The winner of a debate: the turn with the best peer score in the last judged round.

Ties are broken by lot.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import cast

from debate.seeds import derive_seed
from debate.types import TurnId

_SAME = 1e-6  # Bradley-Terry scores are accurate to about 1e-8; closer ones count as equal


def voted_winner(
    peer: Sequence[Sequence[float | None]], round: int | None = None, *, seed: int
) -> TurnId | None:
    """Return the turn with the best peer score (N, R) in a round, or None without votes.

    ``round`` None means the last judged round. Ties are broken by a draw from ``seed``, so that no agent is
    favoured.

    >>> voted_winner(((0.5, -1.0), (None, 0.25), (-0.5, 0.75)), seed=1)
    TurnId(agent=2, round=1)
    """
    best = best_voted(peer, round)
    return random.Random(derive_seed(seed, "winner", best[0].round)).choice(best) if best else None


def best_voted(peer: Sequence[Sequence[float | None]], round: int | None = None) -> tuple[TurnId, ...]:
    """Return the turns with the best peer score (N, R) in a round, or () without votes.

    ``round`` None means the last judged round. If there are several, the winner is drawn by lot.

    >>> best_voted(((0.5,), (0.5,), (-1.0,)))
    (TurnId(agent=0, round=0), TurnId(agent=1, round=0))
    """
    round = last_judged_round(peer) if round is None else round
    if round is None:
        return ()
    known = {agent: row[round] for agent, row in enumerate(peer) if row[round] is not None}
    scores = cast("dict[int, float]", known)
    return tuple(
        TurnId(agent, round) for agent, score in scores.items() if score >= max(scores.values()) - _SAME
    )


def last_judged_round(peer: Sequence[Sequence[float | None]]) -> int | None:
    """Return the last round in which any turn has a peer score, (N, R). None if no vote counted.

    >>> last_judged_round(((0.5, None), (-0.5, None)))
    0
    """
    rounds = range(len(peer[0]) if peer else 0)
    return max((r for r in rounds if any(scores[r] is not None for scores in peer)), default=None)
