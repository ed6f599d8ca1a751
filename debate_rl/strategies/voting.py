"""Greedy, majority (maj@k) and confidence-weighted votes over solutions by one agent alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, floor
from statistics import fmean

from debate import Completion
from debate_rl.strategies.work import Answered, End, Solution, Work


def check_solutions(work: Work) -> None:
    """Raise ValueError if the budget has no room for one solution."""
    work.need(1, "one solution")


async def greedy(work: Work) -> Answered:
    """Return the answer of one solution by one agent alone, at temperature 0."""
    await work.solve(1, greedy=True)
    tally = work.counted()
    return work.answered(tally, tally.best(), "done")


async def majority(work: Work) -> Answered:
    """Return the most frequent answer of the planned solutions [self-consistency, arXiv 2203.11171]."""
    return await _vote(work, lambda _: 1.0)


async def logprob_vote(work: Work) -> Answered:
    """Return the answer with the largest weight, where a solution has weight exp(mean log p) of its tokens.

    This is the length-normalised weight of self-consistency [arXiv 2203.11171, eq. 1]. ValueError if the
    engine returns no log-probabilities.
    """
    return await _vote(work, mean_probability)


async def _vote(work: Work, weight: Callable[[Solution], float]) -> Answered:
    """Return the answer with the largest weight among the planned solutions. The seed breaks ties.

    Solutions are requested in waves. Each wave has the minimum number of solutions after which the lead can
    be out of reach. So no more solutions are requested than one by one, in about log2 waves. Weights are in
    [0, 1].
    """
    tally = work.tally()
    ended: End = "done"
    while work.spent is None and (left := work.plan.samples - len(work.solutions)):
        before = len(work.solutions)
        await work.solve(fewest_to_settle(lead_of(tally.weights), left))
        for index, solution in enumerate(work.solutions[before:], start=before):
            tally.add(index, solution, weight(solution))
        left = work.plan.samples - len(work.solutions)
        if left and lead_of(tally.weights) > left:
            ended = "settled"
            break
    return work.answered(tally, tally.best(), ended)


def lead_of(weights: Sequence[float]) -> float:
    """Return how much the largest weight exceeds the second largest, or 0.0 without weights.

    >>> lead_of([3.0, 1.0, 2.5]), lead_of([2.0]), lead_of([])
    (0.5, 2.0, 0.0)
    """
    first, second, *_ = *sorted(weights, reverse=True), 0.0, 0.0
    return first - second


def fewest_to_settle(lead: float, left: int) -> int:
    """Return how many of ``left`` solutions, each of weight at most 1, are needed to settle a lead.

    After fewer solutions, the rest could always change the result, so requesting this many at once wastes
    none. It is the smallest m with lead + m > left - m, or ``left`` if there is no such m.

    >>> fewest_to_settle(0, 16), fewest_to_settle(9, 7), fewest_to_settle(5, 7), fewest_to_settle(0, 1)
    (9, 0, 2, 1)
    """
    return min(left, max(0, floor((left - lead) / 2) + 1))


def mean_probability(solution: Solution) -> float:
    """Return the geometric mean probability of a reply's tokens, in (0, 1]: exp(mean log p)."""
    return exp(fmean(sampled_logprobs(solution.turn.completion) or [0.0]))


def sampled_logprobs(completion: Completion) -> list[float]:
    """Return the log-probabilities, in nats, of the sampled tokens, without the forced tokens.

    ValueError if the engine returned no log-probabilities.
    """
    if not completion.logprobs:
        raise ValueError(
            "this strategy weighs solutions by the log-probabilities of their tokens, and the server gives "
            "none (vLLM's does at temperature 1); use majority, or a model in this process or in vLLM"
        )
    forced = set(completion.forced)
    return [value for index, value in enumerate(completion.logprobs) if index not in forced]
