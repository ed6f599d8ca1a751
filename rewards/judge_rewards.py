"""How well judges vote: against the truth, the consensus of the other judges, and their own second votes.

The consensus is leave-one-out. If it included the judge's own vote, a judge would be rewarded for agreeing
with itself; with one judge per pair, a coin flip would always be right. Without its own vote, a coin
flip earns 0 on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from debate.ramps import number
from debate.types import Debate, TurnId, Vote
from rewards.config import RewardConfig
from rewards.graph import Results, results_by_opponent
from rewards.truth import is_right
from rewards.types import Correct, Stream, Verdicts, value_of
from rewards.votes import FOR_LEFT, DuePair, ballot_box, pair_of, sign, valid_votes, verdict

Ties: TypeAlias = Literal["zero", "reward"]


def better_side(first: TurnId, second: TurnId, correct: Correct) -> int:
    """Return +1 if only the first side is right, -1 if only the second is, and 0 for an undecidable pair.

    A pair is decidable if both sides were graded and exactly one is right.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> [better_side(a, other, [[True], ["missing"], [None]]) for other in (a, b, c)]
    [0, 1, 0]
    """
    right, other = is_right(first, correct), is_right(second, correct)
    return 0 if right is None or other is None else right - other


def by_truth(vote: Vote, correct: Correct, *, ties: Ties = "zero") -> int | None:
    """Return +1 for a vote for the right side, -1 for the wrong side, 0 for a tie.

    None for an undecidable pair.

    With ``ties = "reward"``, on a pair of two right or two wrong solutions a tie earns 1 and a decision 0.
    """
    better = better_side(*pair_of(vote), correct)
    if better:
        return better * verdict(vote)
    graded = None not in (is_right(vote.left, correct), is_right(vote.right, correct))
    return int(vote.outcome == "tie") if ties == "reward" and graded else None


def votes_of_others(vote: Vote, table: Mapping[TurnId, Mapping[TurnId, Results]]) -> int:
    """Return the other judges' votes for the left side of the pair minus those for its right side.

    ``table``: the ``results_by_opponent`` of all votes, including this one.
    """
    return table[vote.left][vote.right].net - FOR_LEFT[vote.outcome]


def by_consensus(vote: Vote, others: int, *, count: int = 0) -> int | None:
    """Return +1 for a vote with the other judges' majority, -1 against it, 0 for a tie, else None.

    ``others``: the result of ``votes_of_others``, which is 0 if the other votes balance or there are
    none. ``count``: the number of other votes. If it is above 0 and they balance, a tie earns 1 and a
    decision 0; otherwise the result is None.
    """
    if others:
        return FOR_LEFT[vote.outcome] * sign(others)
    return int(vote.outcome == "tie") if count else None


def by_verdicts(vote: Vote, verdicts: Verdicts) -> int | None:
    """Return +1 for a vote for the side that a verifier model scores higher, -1 for the other, 0 for a tie.

    None if both scores are equal or one is unknown. A missing answer scores 0.
    """
    left, right = _scored(vote.left, verdicts), _scored(vote.right, verdicts)
    if left is None or right is None or left == right:
        return None
    return FOR_LEFT[vote.outcome] if left > right else -FOR_LEFT[vote.outcome]


def _scored(side: TurnId, verdicts: Verdicts) -> float | None:
    score = value_of(verdicts.scores, side)
    return 0.0 if isinstance(score, str) else score


class VoteValue(NamedTuple):
    """The value of one vote, and its parts. A part with weight 0 is None.

    ``others``: the result of ``votes_of_others``, from which ``consensus`` is derived. ``verdict``: the value
    by a verifier model's scores.
    """

    truth: int | None
    others: int | None
    consensus: int | None
    value: float | None
    verdict: int | None = None


def vote_values(
    votes: Sequence[Vote],
    correct: Correct,
    *,
    truth_weight: float,
    ties: Ties = "zero",
    verdicts: Verdicts | None = None,
    verdict_weight: float = 0.0,
) -> list[VoteValue]:
    """Return the value of each valid vote, in order.

    ``truth_weight`` in [0, 1] is the weight of truth against the consensus. ``verdict_weight`` in [0, 1] is
    the weight of the verifier model's preference against both.

    >>> judge, a, b = TurnId(2, 1), TurnId(0, 0), TurnId(1, 0)
    >>> vote_values([Vote(judge, a, b, "tie")], [[True], [False], [True]], truth_weight=1.0)
    [VoteValue(truth=0, others=None, consensus=None, value=0, verdict=None)]
    """
    # A part of weight 0 is never used, not even as a fallback for another part.
    table = results_by_opponent(votes) if truth_weight < 1 else None
    values: list[VoteValue] = []
    for vote in votes:
        truth = by_truth(vote, correct, ties=ties) if truth_weight > 0 else None
        others = None if table is None else votes_of_others(vote, table)
        count = sum(table[vote.left][vote.right]) - 1 if table is not None and ties == "reward" else 0
        consensus = None if others is None else by_consensus(vote, others, count=count)
        said = by_verdicts(vote, verdicts) if verdicts is not None and verdict_weight > 0 else None
        own = _joined(truth, consensus, truth_weight) if verdict_weight < 1 else None
        values.append(VoteValue(truth, others, consensus, _joined(said, own, verdict_weight), said))
    return values


def values_of_votes(
    votes: Sequence[Vote], correct: Correct, config: RewardConfig, verdicts: Verdicts | None
) -> list[VoteValue]:
    """Return the value of each valid vote under a reward scheme, in order."""
    return vote_values(
        votes,
        correct,
        truth_weight=config.judge_weight_of_truth(verifiable=correct is not None),
        ties=config.judge_ties,
        verdicts=verdicts,
        verdict_weight=number(config.judge_verdict_weight),
    )


def _joined(first: int | None, second: float | None, weight: float) -> float | None:
    """Return the weighted sum of the two parts. If one is None, return the other."""
    if first is None or second is None:
        return second if first is None else first
    return weight * first + (1 - weight) * second


def judge_rewards(votes: Sequence[Vote], values: Sequence[VoteValue]) -> dict[TurnId, float]:
    """Return the mean value of each judge turn's votes, in [-1, 1].

    No entry for a turn whose votes have no value.

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
    """Return for each decidable pair whether its vote is right. A tie is wrong; None without a vote."""
    sides = ((pair.verdict, better_side(pair.first, pair.second, correct)) for pair in pairs)
    return [None if said is None else said == better for said, better in sides if better]


class JudgeCounts(NamedTuple):
    """Counts of decidable pairs: votes ``due``, valid ``votes`` cast, and ``right`` votes."""

    right: int = 0
    votes: int = 0
    due: int = 0

    @property
    def accuracy(self) -> float | None:
        """The fraction of right votes among those cast. A tie is wrong."""
        return self.right / self.votes if self.votes else None

    @property
    def strict_accuracy(self) -> float | None:
        """The fraction of right votes among those due. A missing vote is wrong."""
        return self.right / self.due if self.due else None

    @property
    def coverage(self) -> float | None:
        """The fraction of due votes that were cast and are valid."""
        return self.votes / self.due if self.due else None

    def plus(self, other: JudgeCounts) -> JudgeCounts:
        """Return the sum of two counts.

        >>> JudgeCounts(1, 2, 4).plus(JudgeCounts(1, 2, 4)).accuracy
        0.5
        """
        return JudgeCounts(self.right + other.right, self.votes + other.votes, self.due + other.due)


def judge_counts(pairs: Sequence[DuePair], correct: Correct) -> JudgeCounts:
    """Return the judges' counts on the pairs of a debate that they could compare."""
    votes = decidable_votes(pairs, correct)
    return JudgeCounts(votes.count(True), len(votes) - votes.count(None), len(votes))


def consistencies(debate: Debate, *, judge_own: bool = False) -> dict[TurnId, float]:
    """Return how consistently judges vote if the order of solutions is reversed: a reward without labels.

    The consistency of a ballot, in [-1, 1], is a mean over the pairs voted on both times: +1 for the same
    side, -1 for different sides. A tie counts as 0, so a judge that never decides earns nothing [SERL, arXiv
    2511.07922]. A ballot without such a pair has no entry. This reward removes only position bias: a judge
    that always prefers the longer solution is as consistent as one that is right.
    """
    if not debate.swapped:
        return {}
    votes = tuple(vote for one in debate.swapped for vote in one.votes)
    first, second = (
        {
            (vote.judge, *pair_of(vote)): verdict(vote)
            for vote in valid_votes(ballot_box(held, judge_own=judge_own))
        }
        for held in (debate, replace(debate, votes=votes))
    )
    agreed: dict[TurnId, list[int]] = {}
    for pair in second:
        if pair in first:
            agreed.setdefault(pair[0], []).append(first[pair] * second[pair])
    return {turn: sum(values) / len(values) for turn, values in agreed.items()}


def with_consistency(judge: Stream, debate: Debate, weight: float, *, judge_own: bool) -> Stream:
    """Return the judge stream (N, R + 1) with ``weight`` times its consistency added to each ballot.

    A ballot without a reward from truth or the other judges gets the weighted consistency alone.
    """
    found = consistencies(debate, judge_own=judge_own) if weight else {}
    return tuple(
        tuple(
            value if (share := found.get(TurnId(agent, round_))) is None else (value or 0.0) + weight * share
            for round_, value in enumerate(row)
        )
        for agent, row in enumerate(judge)
    )
