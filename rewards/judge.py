"""The judge stream: votes given are paid by the truth, by the consensus of the other judges, or by both.

The consensus is leave-one-out. A consensus that holds the judge's own vote pays a judge for agreeing with
itself: with one judge to a pair a coin flip would always be right. Left out, a coin flip earns 0 on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from debate.types import TurnId, Vote
from rewards.truth import is_right
from rewards.types import Correct
from rewards.votes import Pair, net_votes, pair_of, sign, verdict


def judge_rewards(votes: Sequence[Vote], correct: Correct, *, truth_weight: float) -> dict[TurnId, float]:
    """Return for each judge turn the mean value of its votes, in [-1, 1]; no entry when none has a value.

    ``votes`` are the valid ones; ``truth_weight`` in [0, 1] is the share of truth beside the consensus.

    >>> judge, a, b = TurnId(2, 1), TurnId(0, 0), TurnId(1, 0)
    >>> judge_rewards([Vote(judge, a, b, "left")], [[True], [False], [True]], truth_weight=1.0)[judge]
    1.0
    """
    values: dict[TurnId, list[float]] = {}
    for vote, worth in zip(votes, vote_values(votes, correct, truth_weight=truth_weight), strict=True):
        if worth.value is not None:
            values.setdefault(vote.judge, []).append(worth.value)
    return {judge: sum(given) / len(given) for judge, given in values.items()}


class VoteValue(NamedTuple):
    """What one vote is worth, and its parts; a part of weight 0 takes no part and is None."""

    truth: int | None
    consensus: int | None
    value: float | None


def vote_values(votes: Sequence[Vote], correct: Correct, *, truth_weight: float) -> list[VoteValue]:
    """Return the value of each of the valid votes, in order.

    >>> judge, a, b = TurnId(2, 1), TurnId(0, 0), TurnId(1, 0)
    >>> vote_values([Vote(judge, a, b, "tie")], [[True], [False], [True]], truth_weight=1.0)
    [VoteValue(truth=0, consensus=None, value=0)]
    """
    net = net_votes(votes) if truth_weight < 1 else {}
    found: list[VoteValue] = []
    for vote in votes:
        # A part of weight 0 takes no part at all: it is no fallback for the other.
        truth = by_truth(vote, correct) if truth_weight > 0 else None
        consensus = by_consensus(vote, net) if truth_weight < 1 else None
        found.append(VoteValue(truth, consensus, _joined(truth, consensus, truth_weight)))
    return found


def by_truth(vote: Vote, correct: Correct) -> int | None:
    """Return +1, -1, or 0 for a tie, when exactly one side is right; None for a pair truth cannot decide."""
    first, second = (is_right(side, correct) for side in pair_of(vote))
    if first is None or second is None or first == second:
        return None
    return verdict(vote) if first else -verdict(vote)


def by_consensus(vote: Vote, net: dict[Pair, int]) -> int | None:
    """Return +1 with the other judges' majority on the same pair, -1 against it, 0 for an own tie.

    None when the others balance or there are none. ``net`` counts the votes of all, this one included.
    """
    own = verdict(vote)
    others = net[pair_of(vote)] - own
    return own * sign(others) if others else None


def _joined(truth: int | None, consensus: int | None, weight: float) -> float | None:
    """Return the weighted value; the part that exists when one does not."""
    if truth is None or consensus is None:
        return consensus if truth is None else truth
    return weight * truth + (1 - weight) * consensus
