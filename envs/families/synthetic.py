"""The base class of synthetic families: seeded streams of distinct problems, and splits that cannot overlap.

A problem's split is a function of its canonical form, without the order of its numbers or the names in its
story, so splits are disjoint for any seeds. A stream depends only on the seed and skips repeats, so the
problems of a smaller limit are a prefix of those of a larger one.
"""

from __future__ import annotations

import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, ClassVar, Self

from debate.seeds import derive_seed
from debate.types import Kind, Problem
from envs.answers.keys import plain_key
from envs.errors import DataError, listed
from envs.grading.extraction import last_box
from envs.types import Grade, GradeStatus

SPLITS = ("train", "validation", "test")
MAX_MISSES = 20_000


@dataclass(frozen=True, slots=True)
class SyntheticFamily(ABC):
    """A family as an environment, with some of its levels; by default a subclass has all of its levels.

    It also makes demonstrations; an ``attempt`` is a solver's result, such as two numbers.
    """

    levels: tuple[str, ...]
    name: str
    kind: ClassVar[Kind]

    def __post_init__(self) -> None:
        valid = type(self).__dataclass_fields__["levels"].default
        unknown = [level for level in self.levels if level not in valid]
        if unknown or not self.levels:
            got = ", ".join(unknown) or "none"
            raise DataError(f"levels: {self.name} has {', '.join(valid)}; got {got}")

    def of_levels(self, levels: Iterable[str | int] | None) -> Self:
        """Return the family with these levels in this order (None: its own); DataError for an unknown one."""
        if levels is None:
            return self
        return replace(self, levels=tuple(dict.fromkeys(map(str, listed("levels", levels, int)))))

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return ``limit`` distinct problems of a split, in rotation over the levels."""
        if split not in SPLITS:
            raise DataError(f"split: {self.name} has {', '.join(SPLITS)}; got {split!r}")
        if limit is None or limit < 1:
            endless = f"{self.name} generates any number of problems"
            raise DataError(f"env.limit: {endless}; set it to 1 or more (got {limit})")
        streams = {level: self._distinct(level, split, seed or 0) for level in self.levels}
        return tuple(next(streams[self.levels[i % len(self.levels)]]) for i in range(limit))

    def _distinct(self, level: str, split: str, seed: int) -> Iterator[Problem]:
        rng = random.Random(derive_seed(seed, self.name, level, split))
        seen: set[str] = set()
        while True:
            for _ in range(MAX_MISSES):
                canonical, question, answer = self.draw(rng, level)
                digest = blake2b(question.encode(), digest_size=6).hexdigest()
                id = f"{self.name}-{level}-{digest}"  # the same problem has the same id everywhere
                if self.split_of(canonical) == split and id not in seen:
                    break
            else:
                where = f"{self.name}, level {level}, {split}"
                raise DataError(f"limit: {where} has only about {len(seen)} problems")
            seen.add(id)
            yield Problem(id, question, answer, self.name, level, self.kind)

    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return the grade of an extracted answer (None if none was found). Never raise, whatever it is."""
        started = time.perf_counter()
        if answer is None:
            return Grade(GradeStatus.MISSING, "none")
        status = GradeStatus.CORRECT if self.is_right(problem, answer) else GradeStatus.WRONG
        return Grade(status, self.name, answer, time.perf_counter() - started)

    def split_of(self, canonical: str) -> str:
        """Return the split of a canonical form."""
        return split_of(canonical)

    @abstractmethod
    def draw(self, rng: random.Random, level: str) -> tuple[str, str, str]:
        """Return the canonical form, the question and the answer of a new problem."""

    @abstractmethod
    def read_answer(self, answer: str) -> Any:
        """Return the parsed answer, or None if it cannot be parsed. Never raise."""

    def expected(self, problem: Problem, *, lured: bool = False) -> Any:
        """Return the parsed right answer; with ``lured``, the parsed answer of the planted mistake."""
        raise NotImplementedError

    def is_right(self, problem: Problem, answer: str) -> bool:
        """Return whether an answer as written is right."""
        return self.read_answer(answer) == self.expected(problem)

    def spelled(self, said: Any) -> str:
        """Return a parsed answer in its plain spelling."""
        return str(said)

    def answer_key(self, problem: Problem, answer: str) -> str:
        """Return the plain spelling of an answer, or ``plain_key`` if the answer cannot be parsed."""
        said = self.read_answer(answer)
        return plain_key(problem, answer) if said is None else self.spelled(said)

    def fault(self, problem: Problem, answer: str) -> str | None:
        """Return what is wrong with a wrong answer, as a noun; None if the family does not classify it."""
        return None

    @abstractmethod
    def attempt(self, problem: Problem, rng: random.Random, *, right: float = 1.0, lure: float = 0.0) -> Any:
        """Return an attempt: right with probability ``right``, with the planted mistake with ``lure``."""

    def invent(self, problem: Problem, rng: random.Random) -> Any:
        """Return a made-up attempt that looks right; None if there is none."""
        return None

    @abstractmethod
    def write_solution(self, problem: Problem, attempt: Any) -> str:
        """Return the solution text of an attempt."""

    def write_lie(self, problem: Problem, attempt: Any) -> str:
        """Return a solution text that states a false result, if the family has such texts."""
        return self.write_solution(problem, attempt)

    def write_with_tool(self, problem: Problem) -> str:
        """Return a right solution with a program and its output; DataError if the family has none."""
        raise DataError(f"{self.name}: has no solutions with programs")

    def check(self, problem: Problem, said: Any, *, lured: bool) -> tuple[str, bool]:
        """Return the text of a check of a parsed answer, and whether the check accepts the answer."""
        expected = self.expected(problem, lured=lured)
        return f" {said} = {expected}", said == expected

    def write_check(self, problem: Problem, solution: str, *, lured: bool = False) -> str:
        """Return the check of a solution, which ends in "right." or "wrong."; ``lured``: with the mistake."""
        box = last_box(solution)
        said = self.read_answer(box.of(solution)) if box else None
        if said is None:
            return " none wrong."
        text, holds = self.check(problem, said, lured=lured)
        return f"{text} {'right' if holds else 'wrong'}."

    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]:
        """Return every token that the texts of these levels need; joined tokens spell each text exactly."""


def read_integer(pattern: re.Pattern[str], answer: str) -> int | None:
    """Return the integer in the pattern's first group; None if the answer is too long or does not match."""
    match = pattern.fullmatch(answer) if len(answer) <= 64 else None
    return int(match[1]) if match else None


def matched(pattern: re.Pattern[str], question: str, like: str) -> re.Match[str]:
    """Return the match of a question; raise DataError for a question of another family."""
    match = pattern.match(question.strip())
    if match is None:
        raise DataError(f"question: {question!r} is not {like}")
    return match


def split_of(canonical: str) -> str:
    """Return the split of a canonical form, by its hash: test for 20%, validation for 10%, else train.

    >>> split_of("19:3,5,8,9,10,11") in SPLITS
    True
    """
    share = int.from_bytes(blake2b(canonical.encode(), digest_size=8).digest()) % 10
    return "test" if share < 2 else "validation" if share == 2 else "train"
