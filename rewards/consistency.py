"""Whether judges say the same of a pair when its sides are shown in the other order: a reward without labels.

    consistency of a ballot = mean over the pairs voted on both times of +1 for the same side, else -1

A tie on either side is 0: a judge that never decides earns nothing by it. The idea of a reward for the
consistency of pairwise judgments is that of SERL [arXiv 2511.07922]. It removes the habit of a position, and
nothing else: a judge that always prefers the longer solution is as consistent as one that is right.
"""

from __future__ import annotations

from msgspec.structs import replace

from debate.types import Debate, TurnId
from rewards.types import Stream
from rewards.votes import ballot_box, pair_of, valid_votes, verdict


def consistencies(debate: Debate, *, judge_own: bool = False) -> dict[TurnId, float]:
    """Return the consistency of each ballot in [-1, 1]; no entry without a pair voted on both times."""
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

    A ballot that truth and the others say nothing of has the consistency alone.
    """
    found = consistencies(debate, judge_own=judge_own) if weight else {}
    return tuple(
        tuple(
            value if (share := found.get(TurnId(agent, round_))) is None else (value or 0.0) + weight * share
            for round_, value in enumerate(row)
        )
        for agent, row in enumerate(judge)
    )
