"""The base of synthetic families: seeded streams of distinct problems, and splits that cannot overlap.

A problem's split is a function of its canonical form (what makes it the same problem, whatever the order of
its numbers or the names in its story), so train, validation and test are disjoint by construction, whatever
the seeds. Problem i of a stream depends on the seed and i alone up to repeats, so a smaller limit is a prefix
of a larger one.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Self, TypeAlias

from debate.seeds import derive_seed
from debate.types import Problem
from envs.errors import DataError, listed
from envs.types import Grade

SPLITS = ("train", "validation", "test")
MAX_MISSES = 20_000

Draw: TypeAlias = Callable[[random.Random, str], tuple[str, Problem]]
"""From a generator and a level to (canonical form, problem)."""


@dataclass(frozen=True, slots=True)
class SyntheticFamily(ABC):
    """A family as an environment, at some of its levels; the defaults of a subclass are all of them."""

    levels: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        known = type(self).__dataclass_fields__["levels"].default
        object.__setattr__(self, "levels", chosen_levels(self.name, self.levels, known))

    def of_levels(self, levels: Iterable[str | int] | None) -> Self:
        """The family at these levels; None keeps its own."""
        return (
            self if levels is None else replace(self, levels=tuple(map(str, listed("levels", levels, int))))
        )

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return ``limit`` distinct problems of a split, cycling over the levels."""
        return draw_problems(self.name, self.draw, levels=self.levels, split=split, limit=limit, seed=seed)

    @abstractmethod
    def draw(self, rng: random.Random, level: str) -> tuple[str, Problem]:
        """Return (canonical form, problem)."""

    @abstractmethod
    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return whether the answer is right; it never raises on an answer."""


def split_of(canonical: str) -> str:
    """Return the split that a canonical form belongs to: 2 of 10 test, 1 of 10 validation, by hash.

    >>> split_of("19:3,5,8,9,10,11") in SPLITS
    True
    """
    share = int.from_bytes(blake2b(canonical.encode(), digest_size=8).digest()) % 10
    return "test" if share < 2 else "validation" if share == 2 else "train"


def draw_problems(
    family: str, draw: Draw, *, levels: tuple[str, ...], split: str, limit: int | None, seed: int | None
) -> tuple[Problem, ...]:
    """Return ``limit`` problems with different ids, cycling over the levels."""
    if split not in SPLITS:
        raise DataError(f"split: {family} has {', '.join(SPLITS)}; got {split!r}")
    if limit is None or limit < 1:
        raise DataError(
            f"limit: {family} makes problems without end; give a limit of at least 1 (got {limit})"
        )
    streams = {level: _distinct(family, draw, level, split, seed or 0) for level in levels}
    return tuple(next(streams[levels[i % len(levels)]]) for i in range(limit))


def _distinct(family: str, draw: Draw, level: str, split: str, seed: int) -> Iterator[Problem]:
    rng = random.Random(derive_seed(seed, family, level, split))
    seen: set[str] = set()
    while True:
        for _ in range(MAX_MISSES):
            canonical, problem = draw(rng, level)
            if split_of(canonical) == split and problem.id not in seen:
                break
        else:
            raise DataError(
                f"limit: {family}, level {level}, {split} has hardly more than {len(seen)} problems"
            )
        seen.add(problem.id)
        yield problem


def problem_id(family: str, level: str, question: str) -> str:
    """Return an id made from the question, so that the same problem has the same id everywhere.

    >>> problem_id("words", "1", "How many?") == problem_id("words", "1", "How many?")
    True
    """
    return f"{family}-{level}-{blake2b(question.encode(), digest_size=6).hexdigest()}"


def chosen_levels(family: str, levels: Iterable[str | int] | None, valid: tuple[str, ...]) -> tuple[str, ...]:
    """Return the wanted levels as text, in the order given; DataError for an unknown one.

    >>> chosen_levels("words", [2, "1"], ("1", "2", "3"))
    ('2', '1')
    """
    wanted = valid if levels is None else tuple(dict.fromkeys(map(str, listed("levels", levels, int))))
    unknown = [level for level in wanted if level not in valid]
    if unknown or not wanted:
        raise DataError(f"levels: {family} has {', '.join(valid)}; got {', '.join(unknown) or 'none'}")
    return wanted
