"""Controls: runs with one ingredient spoiled, so that a gain can be traced to that ingredient."""

from __future__ import annotations

import random
from dataclasses import replace

from debate import Debate, Vote
from debate.types import Outcome, TurnId

_OTHER: dict[Outcome, Outcome] = {"left": "right", "right": "left", "tie": "tie"}


def flip_votes(debate: Debate, *, seed: int) -> Debate:
    """Return the debate with the outcome of each decided vote turned round or not by a fair seeded coin.

    Ties stay ties. One coin serves all that a judge's turn said about a pair, so that what was repeated or
    contradictory before still is, and as many votes count.
    """
    rng = random.Random(seed)
    coins: dict[tuple[TurnId, frozenset[TurnId]], bool] = {}

    def flip(vote: Vote) -> Vote:
        pair = vote.judge, frozenset((vote.left, vote.right))
        coins.setdefault(pair, rng.random() < 0.5)
        return replace(vote, outcome=_OTHER[vote.outcome]) if coins[pair] else vote

    return replace(debate, votes=tuple(flip(vote) for vote in debate.votes))
