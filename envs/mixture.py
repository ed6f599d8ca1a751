"""Several data sets as one environment: what grades a problem is what it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from debate.types import Problem
from envs.answers.keys import key_of
from envs.registry import Environment, environment_of
from envs.types import Grade


@dataclass(frozen=True)
class Mixture:
    """Environments by the names of their sets, and the set of each problem by its id.

    A problem of no set is graded with nothing but itself at hand.
    """

    sets: Mapping[str, Environment]
    set_of: Mapping[str, str]
    name: str = "mixture"

    @property
    def main_thread_only(self) -> bool:
        """Whether an environment of the mixture grades in the main thread alone."""
        return any(getattr(one, "main_thread_only", False) for one in self.sets.values())

    def of(self, problem: Problem) -> Environment:
        """Return what a problem came from."""
        name = self.set_of.get(problem.id)
        return self.sets[name] if name is not None else environment_of(problem)

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return the problems of all sets, at most ``limit`` of each."""
        return tuple(
            problem
            for environment in self.sets.values()
            for problem in environment.problems(split=split, limit=limit, seed=seed)
        )

    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return the grade that the problem's own set gives."""
        return self.of(problem).grade(problem, answer)

    def answer_key(self, problem: Problem, answer: str) -> str:
        """Return the key of the problem's own set."""
        return key_of(self.of(problem))(problem, answer)
