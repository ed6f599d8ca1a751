r"""Strategies by votes over solutions of one agent alone: greedy, majority (maj@k), confidence-weighted.

A ``Tally`` counts the votes; ``Tally.best`` decides the answer, and the seed breaks ties. Two answers are the
same if their keys are equal (``envs.answers.keys``), and in mathematics also if the grader finds them equal:
``\sqrt{8}`` and ``2\sqrt{2}`` are one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, floor
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from debate import Completion, Problem
from debate.seeds import derive_seed
from debate_rl.evaluation.grading import own_environment
from envs import Environment
from envs.answers.keys import key_of
from envs.registry import DataSetEnvironment

if TYPE_CHECKING:
    from debate_rl.strategies.work import Answered, End, Solution, Work


class Share(NamedTuple):
    """An answer and its fraction, in [0, 1], of the total weight of solutions."""

    answer: str
    share: float


@dataclass(slots=True)
class Tally:
    """The weight of each answer. ``members``: for each answer, the indices of its solutions, ascending."""

    problem: Problem
    environment: Environment
    seed: int
    answers: list[str] = field(default_factory=list[str])
    weights: list[float] = field(default_factory=list[float])
    members: list[list[int]] = field(default_factory=list[list[int]])
    _weight_of: dict[int, float] = field(default_factory=dict[int, float])
    _indices: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, index: int, solution: Solution, weight: float = 1.0) -> None:
        """Count a solution. A solution without an answer is ignored."""
        if solution.answer is not None:
            at = self.index_of(solution.answer)
            self.weights[at] += weight
            self.members[at].append(index)
            self._weight_of[index] = weight

    def index_of(self, answer: str) -> int:
        """Return the index of an answer. Equal answers have the same index; a new answer is added."""
        environment = own_environment(self.environment, self.problem)
        key = key_of(environment)(self.problem, answer)
        if key not in self._indices:
            same = (at for at, other in enumerate(self.answers) if self._same(environment, answer, other))
            at = next(same, len(self.answers))
            if at == len(self.answers):
                self.answers.append(answer)
                self.weights.append(0.0)
                self.members.append([])
            self._indices[key] = at
        return self._indices[key]

    def _same(self, environment: Environment, answer: str, other: str) -> bool:
        kind = self.problem.kind
        if not isinstance(environment, DataSetEnvironment) or (kind != "number" and kind != "expression"):
            return False
        return environment.grader.same_answer(answer, other, kind=kind).verdict is True

    def of(self, index: int) -> int | None:
        """Return the index of the answer of a counted solution, or None if it has no answer."""
        return next((at for at, members in enumerate(self.members) if index in members), None)

    def best(self) -> int | None:
        """Return the solution with the largest weight among those with the heaviest answer, or None if empty.

        The first of several such solutions is returned. The seed breaks ties between answers.
        """
        if not self.answers:
            return None
        leading = [at for at, weight in enumerate(self.weights) if weight == max(self.weights)]
        members = self.members[draw_by_seed(leading, self.seed)]
        return max(members, key=lambda index: (self._weight_of[index], -index))

    def shares(self) -> tuple[Share, ...]:
        """Return each answer with its fraction of the total weight, largest first."""
        total = sum(self.weights)
        pairs = sorted(zip(self.weights, self.answers, strict=True), key=lambda pair: -pair[0])
        return tuple(Share(answer, weight / total if total else 0.0) for weight, answer in pairs)


def draw_by_seed(candidates: Sequence[int], seed: int) -> int:
    """Return one of the candidates, drawn by the seed."""
    return Random(derive_seed(seed, "tie")).choice(candidates)


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
    """Return the answer with the largest total weight, where a solution weighs exp(mean log p of its tokens).

    This is the length-normalised weight of self-consistency [arXiv 2203.11171, eq. 1]. ValueError if the
    engine returns no log-probabilities.
    """
    return await _vote(work, mean_probability)


async def _vote(work: Work, weight: Callable[[Solution], float]) -> Answered:
    """Return the answer with the largest weight among the planned solutions. The seed breaks ties.

    Solutions are requested in waves. Each wave has the minimum number of solutions after which the lead can
    be decisive. Thus, no more solutions are requested than one by one, but in about log2 waves. Weights are
    in [0, 1].
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
    """Return the minimum number of ``left`` solutions, each of weight at most 1, that can settle a lead.

    After fewer solutions, the others could still change the result, so requesting this number at once wastes
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
            "this strategy needs token log-probabilities, which the server does not return (vLLM's does at "
            "temperature 1); use majority, or a model in this process or in vLLM"
        )
    forced = set(completion.forced)
    return [value for index, value in enumerate(completion.logprobs) if index not in forced]
