"""How well judges vote: against the truth, and against the consensus of the other judges.

The consensus is leave-one-out. A consensus that holds the judge's own vote rewards a judge for agreeing with
itself: with one judge to a pair a coin flip would always be right. Left out, a coin flip earns 0 on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from debate.types import TurnId, Vote
from rewards.graph import Results, results_by_opponent
from rewards.truth import is_right
from rewards.types import Correct
from rewards.votes import FOR_LEFT, DuePair, pair_of, sign, verdict


def better_side(first: TurnId, second: TurnId, correct: Correct) -> int:
    """Return +1 when only the first is right, -1 when only the second is; 0 for a pair truth cannot decide.

    A pair is decidable when both sides were graded and exactly one is right.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> [better_side(a, other, [[True], ["missing"], [None]]) for other in (a, b, c)]
    [0, 1, 0]
    """
    right, other = is_right(first, correct), is_right(second, correct)
    return 0 if right is None or other is None else right - other


def by_truth(vote: Vote, correct: Correct) -> int | None:
    """Return +1 for the right side, -1 for the wrong, 0 for a tie; None for a pair truth cannot decide."""
    better = better_side(*pair_of(vote), correct)
    return better * verdict(vote) if better else None


def votes_of_others(vote: Vote, table: Mapping[TurnId, Mapping[TurnId, Results]]) -> int:
    """Return the other judges' votes on the pair: those for its left side less those for its right.

    ``table``: the ``results_by_opponent`` of the votes of all, this one included.
    """
    return table[vote.left][vote.right].net - FOR_LEFT[vote.outcome]


def by_consensus(vote: Vote, others: int) -> int | None:
    """Return +1 with the other judges' majority, -1 against it, 0 for an own tie; None when they balance.

    ``others`` as from ``votes_of_others``; 0 also where there are none.
    """
    return FOR_LEFT[vote.outcome] * sign(others) if others else None


class VoteValue(NamedTuple):
    """What one vote is worth, and its parts; a part of weight 0 takes no part and is None.

    ``others``: what ``votes_of_others`` says, from which ``consensus`` is.
    """

    truth: int | None
    others: int | None
    consensus: int | None
    value: float | None


def vote_values(votes: Sequence[Vote], correct: Correct, *, truth_weight: float) -> list[VoteValue]:
    """Return the value of each of the valid votes, in order.

    ``truth_weight`` in [0, 1] is the share of truth beside the consensus.

    >>> judge, a, b = TurnId(2, 1), TurnId(0, 0), TurnId(1, 0)
    >>> vote_values([Vote(judge, a, b, "tie")], [[True], [False], [True]], truth_weight=1.0)
    [VoteValue(truth=0, others=None, consensus=None, value=0)]
    """
    # A part of weight 0 takes no part at all: it is not a fallback for the other.
    table = results_by_opponent(votes) if truth_weight < 1 else None
    values: list[VoteValue] = []
    for vote in votes:
        truth = by_truth(vote, correct) if truth_weight > 0 else None
        others = None if table is None else votes_of_others(vote, table)
        consensus = None if others is None else by_consensus(vote, others)
        values.append(VoteValue(truth, others, consensus, _joined(truth, consensus, truth_weight)))
    return values


def _joined(truth: int | None, consensus: int | None, weight: float) -> float | None:
    """Return the weighted value; the part that exists when one does not."""
    if truth is None or consensus is None:
        return consensus if truth is None else truth
    return weight * truth + (1 - weight) * consensus


def judge_rewards(votes: Sequence[Vote], values: Sequence[VoteValue]) -> dict[TurnId, float]:
    """Return for each judge turn the mean value of its votes, in [-1, 1]; no entry when none has a value.

    >>> judge, a, b = TurnId(2, 1), TurnId(0, 0), TurnId(1, 0)
    >>> votes = [Vote(judge, a, b, "left")]
    >>> judge_rewards(votes, vote_values(votes, [[True], [False], [True]], truth_weight=1.0))[judge]
    1.0
    """
    given: dict[TurnId, list[float]] = {}
    for vote, worth in zip(votes, values, strict=True):
        if worth.value is not None:
            given.setdefault(vote.judge, []).append(worth.value)
    return {judge: sum(worths) / len(worths) for judge, worths in given.items()}


def decidable_votes(pairs: Sequence[DuePair], correct: Correct) -> list[bool | None]:
    """Return whether the vote on each decidable pair is right, a tie being wrong; None without a vote."""
    sides = ((pair.verdict, better_side(pair.first, pair.second, correct)) for pair in pairs)
    return [None if said is None else said == better for said, better in sides if better]


class JudgeCounts(NamedTuple):
    """Decidable pairs that were ``due``, those of them with a vote that counts, and those voted rightly."""

    right: int = 0
    votes: int = 0
    due: int = 0

    @property
    def accuracy(self) -> float | None:
        """The share of right votes; a tie is not right."""
        return self.right / self.votes if self.votes else None

    @property
    def strict_accuracy(self) -> float | None:
        """The share of right votes among all that were due: no vote is wrong."""
        return self.right / self.due if self.due else None

    @property
    def coverage(self) -> float | None:
        """The share of due votes that came and count."""
        return self.votes / self.due if self.due else None

    def plus(self, other: JudgeCounts) -> JudgeCounts:
        """Return the sums.

        >>> JudgeCounts(1, 2, 4).plus(JudgeCounts(1, 2, 4)).accuracy
        0.5
        """
        return JudgeCounts(self.right + other.right, self.votes + other.votes, self.due + other.due)


def judge_counts(pairs: Sequence[DuePair], correct: Correct) -> JudgeCounts:
    """Return how the judges of a debate did on the pairs that they could compare."""
    votes = decidable_votes(pairs, correct)
    return JudgeCounts(votes.count(True), len(votes) - votes.count(None), len(votes))
