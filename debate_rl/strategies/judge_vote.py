"""A vote weighted by a judge: each solution weighs what blind ballots give it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from debate.seeds import derive_seed
from debate_rl.strategies.judging import EVEN, Comparison, check_judge, compare, third_of
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked, End
from debate_rl.strategies.voting import best_of
from debate_rl.strategies.work import Work, need, tokens_of_a_comparison

WAVES = 4
"""Parts in which the ballots are asked for: after each it may be settled."""


async def judge_vote(asked: Asked) -> Answered:
    """Return the answer that weighs most, a solution's weight being its mean score on two ballots, in [0, 1].

    Solutions stand in a drawn ring and each is compared with both beside it; two of the same answer are not
    compared and get half a point each, as do both sides of a ballot that could not be read.
    """
    check_judge(asked.judged_by.protocol)
    need(asked, 1, "a solution and a ballot", comparisons=1)
    work, votes = Work(asked), Tally(asked.problem, asked.environment, asked.seed)
    await work.solve_all(keep=tokens_of_a_comparison(asked))
    for index, solution in enumerate(work.solutions):
        votes.add(index, solution)
    ring = [index for members in votes.members for index in members]
    rng = Random(derive_seed(asked.seed, "ring"))
    rng.shuffle(ring)
    pairs = list(zip(ring, [*ring[1:], *ring[:1]], strict=True)) if len(ring) > 1 else []
    due = [pair for pair in pairs if votes.of(pair[0]) != votes.of(pair[1])]
    open_ = [Comparison(a, b, third_of(a, b, len(work.solutions), rng)) for a, b in due]
    scores = {index: [EVEN] * (2 - sum(index in pair for pair in due)) for index in ring}
    ended: End = "done"
    wave = max(1, -(-len(open_) // WAVES))
    while open_:
        if _is_settled(votes, scores):
            ended = "settled"
            break
        now, open_ = open_[:wave], open_[wave:]
        found = await compare(work, now)
        for one, score in zip(now, found, strict=True):
            if score is not None:
                scores[one.left].append(score)
                scores[one.right].append(1 - score)
        if None in found:
            break
    if len(votes.answers) == 1:
        ended = "settled"
    weights = [sum(_weight(scores[index]) for index in members) for members in votes.members]
    weighted = replace(votes, weights=weights)
    best = best_of(work, weighted, lambda one: _weight(scores[work.solutions.index(one)]))
    return work.answered(weighted, best, ended)


def _weight(scores: list[float]) -> float:
    """Return the mean score of two ballots; one that did not come counts as even.

    >>> _weight([1.0]), _weight([0.0, 0.5]), _weight([])
    (0.75, 0.25, 0.5)
    """
    return (sum(scores) + EVEN * (2 - len(scores))) / 2


def _is_settled(votes: Tally, scores: dict[int, list[float]]) -> bool:
    """Return whether no ballot that is still to come can change which answer weighs most."""
    low = [sum(sum(scores[index]) / 2 for index in members) for members in votes.members]
    high = [
        sum((sum(scores[index]) + 2 - len(scores[index])) / 2 for index in members)
        for members in votes.members
    ]
    first = max(range(len(low)), key=low.__getitem__)
    return all(low[first] > most for at, most in enumerate(high) if at != first)
