"""Best of n by a judge: the one solution that blind ballots score highest."""

from __future__ import annotations

from dataclasses import replace

from debate_rl.strategies.ring import Scores, bounds_of, ring_of
from debate_rl.strategies.tally import Tally, drawn
from debate_rl.strategies.types import Answered, Asked


async def best_of_n(asked: Asked) -> Answered:
    """Return the answer of the solution with the highest mean score on two ballots (``ring_of``).

    Of several that lead, the answer whose solutions have the highest scores together is taken, and then one
    is drawn by the seed. The shares are of all scores.
    """
    ring = await ring_of(asked, _is_settled)
    votes = ring.votes
    weights = [sum(map(ring.score, members)) for members in votes.members]
    counted = replace(votes, weights=weights)
    if not weights:
        return ring.work.answered(counted, None, ring.ended)
    most = [max(map(ring.score, members)) for members in votes.members]
    leading = [at for at, score in enumerate(most) if score == max(most)]
    heaviest = max(weights[at] for at in leading)
    answer = drawn([at for at in leading if weights[at] == heaviest], votes.seed)
    chosen = max(votes.members[answer], key=lambda index: (ring.score(index), -index))
    return ring.work.answered(counted, chosen, ring.ended)


def _is_settled(votes: Tally, scores: Scores) -> bool:
    """Return whether no ballot that is still to come can change which answer has the highest score."""
    bounds = [[bounds_of(scores[index]) for index in members] for members in votes.members]
    low = [max(least for least, _ in members) for members in bounds]
    high = [max(most for _, most in members) for members in bounds]
    first = max(range(len(low)), key=low.__getitem__)
    return all(low[first] > most for at, most in enumerate(high) if at != first)
