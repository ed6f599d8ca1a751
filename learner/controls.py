"""Controls: runs with one ingredient spoiled, so that a gain can be traced to that ingredient."""

from __future__ import annotations

import random
from dataclasses import replace

from debate import Debate, Vote


def flip_votes(debate: Debate, *, seed: int) -> Debate:
    """Return the debate with every decided vote's outcome replaced by a fair seeded coin; ties stay ties."""
    rng = random.Random(seed)

    def flip(vote: Vote) -> Vote:
        side = rng.choice(("left", "right"))
        return vote if vote.outcome == "tie" else replace(vote, outcome=side)

    return replace(debate, votes=tuple(flip(vote) for vote in debate.votes))
