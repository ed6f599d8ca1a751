"""Blind ballots on a ring of solutions: each is compared with both that stand beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from debate.seeds import derive_seed
from debate_rl.strategies.judging import EVEN, Comparison, check_judge, compare, third_of
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Asked, End
from debate_rl.strategies.work import Work, need, tokens_of_a_comparison

WAVES = 4
"""Parts in which the ballots are asked for: after each it may be settled."""
Scores = dict[int, list[float]]
"""What the ballots that came give each solution, by its index: 1 for a win, 0 for a loss, half for a tie."""


@dataclass(frozen=True, slots=True)
class Ring:
    """The ballots of a ring: the ``work`` with its solutions, their answers, and the scores of each."""

    work: Work
    votes: Tally
    scores: Scores
    ended: End

    def score(self, index: int) -> float:
        """Return the mean score of a solution's two ballots, in [0, 1]."""
        return score_of(self.scores[index])


async def ring_of(asked: Asked, settled: Callable[[Tally, Scores], bool]) -> Ring:
    """Return the ballots on ``asked.samples`` solutions in a drawn ring, until ``settled`` says so.

    Two of the same answer are not compared and get half a point each, as do both sides of a ballot that could
    not be read.
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
    ended: End = "settled" if len(votes.answers) == 1 else "done"
    wave = max(1, -(-len(open_) // WAVES))
    while open_:
        if settled(votes, scores):
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
    return Ring(work, votes, scores, ended)


def score_of(scores: list[float]) -> float:
    """Return the mean score of two ballots; one that did not come counts as even.

    >>> score_of([1.0]), score_of([0.0, 0.5]), score_of([])
    (0.75, 0.25, 0.5)
    """
    return (sum(scores) + EVEN * (2 - len(scores))) / 2


def bounds_of(scores: list[float]) -> tuple[float, float]:
    """Return the least and the most that a solution's mean score can still become.

    >>> bounds_of([1.0]), bounds_of([0.0, 0.5])
    ((0.5, 1.0), (0.25, 0.25))
    """
    return sum(scores) / 2, (sum(scores) + 2 - len(scores)) / 2
