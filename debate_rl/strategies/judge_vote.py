"""A vote weighted by a judge: each solution weighs what blind ballots give it."""

from __future__ import annotations

from dataclasses import replace

from debate_rl.strategies.ring import Scores, bounds_of, ring_of
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.voting import best_of


async def judge_vote(asked: Asked) -> Answered:
    """Return the answer that weighs most, a solution's weight being its mean score on two ballots, in [0, 1].

    Solutions stand in a drawn ring and each is compared with both beside it (``ring_of``).
    """
    ring = await ring_of(asked, _is_settled)
    work, votes = ring.work, ring.votes
    weighted = replace(votes, weights=[sum(map(ring.score, members)) for members in votes.members])
    best = best_of(work, weighted, lambda one: ring.score(work.solutions.index(one)))
    return work.answered(weighted, best, ring.ended)


def _is_settled(votes: Tally, scores: Scores) -> bool:
    """Return whether no ballot that is still to come can change which answer weighs most."""
    bounds = [[bounds_of(scores[index]) for index in members] for members in votes.members]
    low = [sum(least for least, _ in members) for members in bounds]
    high = [sum(most for _, most in members) for members in bounds]
    first = max(range(len(low)), key=low.__getitem__)
    return all(low[first] > most for at, most in enumerate(high) if at != first)
