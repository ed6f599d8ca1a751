r"""Which solutions give the same answer, what each answer weighs, and when its lead cannot be lost.

Answers are the same where their keys are (``envs.answers.keys``), and in mathematics also where the grader
finds that they mean the same: ``\sqrt{8}`` and ``2\sqrt{2}`` are one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor
from random import Random

from debate import Problem
from debate.seeds import derive_seed
from debate_rl.strategies.types import Share, Solution
from envs import Environment
from envs.answers.keys import key_of
from envs.mixture import Mixture
from envs.registry import DataSetEnvironment

COMPARED = ("number", "expression")
"""Kinds whose answers the grader compares where their keys differ."""


@dataclass(slots=True)
class Tally:
    """The weight of each answer. ``members``: the indices of the solutions that give it, in their order."""

    problem: Problem
    environment: Environment
    seed: int
    answers: list[str] = field(default_factory=list[str])
    weights: list[float] = field(default_factory=list[float])
    members: list[list[int]] = field(default_factory=list[list[int]])
    _indices: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, index: int, solution: Solution, weight: float = 1.0) -> None:
        """Count a solution; one without an answer counts for none."""
        if solution.answer is None:
            return
        at = self.index_of(solution.answer)
        self.weights[at] += weight
        self.members[at].append(index)

    def index_of(self, answer: str) -> int:
        """Return the index of an answer, with those that are the same."""
        key = key_of(_own(self.environment, self.problem))(self.problem, answer)
        if key not in self._indices:
            same = (at for at, other in enumerate(self.answers) if self._same(answer, other))
            at = next(same, len(self.answers))
            if at == len(self.answers):
                self.answers.append(answer)
                self.weights.append(0.0)
                self.members.append([])
            self._indices[key] = at
        return self._indices[key]

    def _same(self, answer: str, other: str) -> bool:
        environment = _own(self.environment, self.problem)
        if self.problem.kind not in COMPARED or not isinstance(environment, DataSetEnvironment):
            return False
        kind = "number" if self.problem.kind == "number" else "expression"
        return environment.grader.same_answer(answer, other, kind=kind).verdict is True

    def of(self, index: int) -> int | None:
        """Return the answer of a solution that was counted; None where it gave none."""
        return next((at for at, members in enumerate(self.members) if index in members), None)

    def lead(self) -> float:
        """Return how much the first answer weighs more than the second; 0.0 without any.

        >>> lead_of([3.0, 1.0, 2.5]), lead_of([])
        (0.5, 0.0)
        """
        return lead_of(self.weights)

    def leader(self) -> int | None:
        """Return the answer that weighs most, ties drawn by the seed; None without any."""
        most = max(self.weights, default=0.0)
        first = [at for at, weight in enumerate(self.weights) if weight == most]
        return drawn(first, self.seed) if first else None

    def shares(self) -> tuple[Share, ...]:
        """Return each answer with its share of all weight, the largest first."""
        total = sum(self.weights)
        pairs = sorted(zip(self.weights, self.answers, strict=True), key=lambda pair: -pair[0])
        return tuple(Share(answer, weight / total if total else 0.0) for weight, answer in pairs)


def _own(environment: Environment, problem: Problem) -> Environment:
    return environment.of(problem) if isinstance(environment, Mixture) else environment


def lead_of(weights: Sequence[float]) -> float:
    """Return how much the largest weight exceeds the second; 0.0 of none.

    >>> lead_of([3.0, 1.0, 2.5]), lead_of([2.0]), lead_of([])
    (0.5, 2.0, 0.0)
    """
    first, second, *_ = *sorted(weights, reverse=True), 0.0, 0.0
    return first - second


def settled(lead: float, left: float) -> bool:
    """Return whether a lead cannot be lost, nor shared, by what is ``left`` to be counted."""
    return lead > left


def fewest_to_settle(lead: float, left: int) -> int:
    """Return how many of ``left`` solutions, of weight 1 at most, must come before a lead may be settled.

    With fewer the rest could always change the verdict, so asking for them at once wastes none. The smallest
    m with lead + m > left - m, and all that are left where there is none.

    >>> fewest_to_settle(0, 16), fewest_to_settle(9, 7), fewest_to_settle(5, 7), fewest_to_settle(0, 1)
    (9, 0, 2, 1)
    """
    return min(left, max(0, floor((left - lead) / 2) + 1))


def drawn(candidates: Sequence[int], seed: int) -> int:
    """Return one of the candidates, by the seed."""
    return Random(derive_seed(seed, "tie")).choice(candidates)
