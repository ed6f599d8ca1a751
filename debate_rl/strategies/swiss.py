"""A Swiss tournament of solutions by a judge's blind ballots, after V1 [arXiv 2603.04304].

V1 first compares every solution and then pairs those with similar scores, which are the ones still in doubt.
Here the rounds are Swiss from the start, ceil(log2 k) of them; solutions of the same answer are not compared.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2
from random import Random

from debate.seeds import derive_seed
from debate_rl.strategies.judging import EVEN, Comparison, check_judge, compare, third_of
from debate_rl.strategies.tally import Tally, drawn
from debate_rl.strategies.types import Answered, Asked, End
from debate_rl.strategies.work import Work, need, tokens_of_a_comparison


async def swiss(asked: Asked) -> Answered:
    """Return the answer of the solution with the most points after ceil(log2 k) rounds.

    A ballot gives its winner a point, a tie or a reply that could not be read half a point to both, and so
    does a round without an opponent or against a solution of the same answer. Of several that lead, the
    answer whose solutions have the most points together is taken.
    """
    check_judge(asked.judged_by.protocol)
    need(asked, 1, "a solution and a ballot", comparisons=1)
    work, votes = Work(asked), Tally(asked.problem, asked.environment, asked.seed)
    await work.solve_all(keep=tokens_of_a_comparison(asked))
    for index, solution in enumerate(work.solutions):
        votes.add(index, solution)
    players = [index for members in votes.members for index in members]
    rng = Random(derive_seed(asked.seed, "swiss"))
    rng.shuffle(players)
    points, met = dict.fromkeys(players, 0.0), set[frozenset[int]]()
    rounds = ceil(log2(len(players))) if len(players) > 1 else 0
    ended: End = "settled" if len(votes.answers) == 1 else "done"
    for number in range(rounds):
        if _is_settled(votes, points, rounds - number):
            ended = "settled"
            break
        pairs = paired(players, points, met)
        due = [pair for pair in pairs if votes.of(pair[0]) != votes.of(pair[1])]
        met |= {frozenset(pair) for pair in pairs}
        asked_for = [Comparison(a, b, third_of(a, b, len(work.solutions), rng)) for a, b in due]
        found = dict(zip(due, await compare(work, asked_for), strict=True))
        gained = dict.fromkeys(players, EVEN)
        for (left, right), score in found.items():
            if score is not None:
                gained[left], gained[right] = score, 1 - score
        points = {index: points[index] + gained[index] for index in players}
        if None in found.values():
            break
    weights = [sum(points[index] for index in members) for members in votes.members]
    counted = replace(votes, weights=weights) if any(weights) else votes  # no round was held: the solutions
    return work.answered(counted, _best(votes, points, weights), ended)


def paired(players: list[int], points: dict[int, float], met: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Return the pairs of a round: neighbours by points that have not met, if there are such.

    >>> paired([3, 1, 2, 0], {0: 1.0, 1: 0.0, 2: 1.0, 3: 0.0}, {frozenset((2, 0))})
    [(2, 3), (0, 1)]
    """
    left = sorted(players, key=lambda index: -points[index])  # the drawn order among equals
    pairs: list[tuple[int, int]] = []
    while len(left) > 1:
        first, *others = left
        other = next((one for one in others if frozenset((first, one)) not in met), others[0])
        pairs.append((first, other))
        left = [one for one in others if one != other]
    return pairs


def _is_settled(votes: Tally, points: dict[int, float], rounds: int) -> bool:
    """Return whether only solutions of one answer can still have the most points, after so many rounds."""
    most = max(points.values())
    return len({votes.of(index) for index in points if points[index] + rounds >= most}) == 1


def _best(votes: Tally, points: dict[int, float], weights: list[float]) -> int | None:
    """Return the solution that won; among several that lead, one of the answer of most points together."""
    if not points:
        return None
    most = max(points.values())
    leading = [index for index in points if points[index] == most]
    best = max(weights[votes.of(index) or 0] for index in leading)
    answers = sorted({at for i in leading if (at := votes.of(i)) is not None and weights[at] == best})
    answer = drawn(answers, votes.seed)
    return min(index for index in leading if votes.of(index) == answer)
