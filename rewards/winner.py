"""The winner of a debate: the solution its peers voted best."""

from __future__ import annotations

import random

from debate.seeds import derive_seed
from rewards.types import Rewards

_SAME = 1e-6  # Bradley-Terry scores are fitted to about 1e-8: closer ones are equal


def last_judged_round(rewards: Rewards) -> int | None:
    """Return the last round in which any turn has a peer score; None when no vote counted.

    >>> last_judged_round(Rewards(((0.5, None), (-0.5, None)), (), (), ()))
    0
    """
    rounds = range(len(rewards.peer[0]) if rewards.peer else 0)
    judged = [r for r in rounds if any(scores[r] is not None for scores in rewards.peer)]
    return max(judged, default=None)


def voted_winner(rewards: Rewards, round: int | None = None, *, seed: int) -> int | None:
    """Return the agent with the best peer score of a round (None: the last judged); None without votes.

    Ties are broken by a draw from ``seed``, so that no seat is favoured.

    >>> voted_winner(Rewards(((0.5, -1.0), (None, 0.25), (-0.5, 0.75)), (), (), ()), seed=1)
    2
    """
    round = last_judged_round(rewards) if round is None else round
    if round is None:
        return None
    scores = {agent: row[round] for agent, row in enumerate(rewards.peer)}
    known = {agent: score for agent, score in scores.items() if score is not None}
    best = [agent for agent, score in known.items() if score >= max(known.values()) - _SAME]
    return random.Random(derive_seed(seed, "winner", round)).choice(best) if best else None
