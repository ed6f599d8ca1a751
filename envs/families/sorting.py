r"""Put numbers in ascending order: ``Sort 8 3 11.`` has the answer ``3 8 11``.

A solution is right only if every number is in its place: a model that gets one place in three right sometimes
sorts three numbers, but never nine. Every place takes the same skill, so short lists teach long lists: a
curriculum in miniature.

| level | numbers, of 1..30 | orders  |
|-------|-------------------|---------|
| 1     | 3                 | 6       |
| 2     | 6                 | 720     |
| 3     | 9                 | 362,880 |

The planted mistake for demonstrations is that each place has any of the three smallest remaining numbers.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

from debate.types import Kind, Problem
from envs.families.synthetic import SyntheticFamily, matched

LEVELS = {"1": 3, "2": 6, "3": 9}  # level: number of numbers
LARGEST = 30

Numbers: TypeAlias = tuple[int, ...]

_QUESTION = re.compile(r"Sort((?: \d{1,4}){2,64})\.\Z", re.ASCII)
_NUMBERS = re.compile(r"\s*\d{1,4}(?:(?:\s*,\s*|\s+)\d{1,4}){0,63}\s*\.?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sorting(SyntheticFamily):
    """The family as an environment, with some of its levels; an attempt is the numbers in some order."""

    levels: tuple[str, ...] = tuple(LEVELS)
    name: str = "sorting"
    kind: ClassVar[Kind] = "expression"

    def draw(self, rng: random.Random, level: str) -> tuple[str, str, str]:
        """Return the canonical form (the sorted numbers), the question and the answer."""
        numbers = rng.sample(range(1, LARGEST + 1), LEVELS[level])
        while numbers == sorted(numbers):
            rng.shuffle(numbers)
        answer = _written(sorted(numbers))
        return answer, f"Sort{_written(numbers)}.", answer.strip()

    def read_answer(self, answer: str) -> Numbers | None:
        """Return the numbers of an answer in the order written; None for any other answer."""
        if len(answer) > 512 or not _NUMBERS.fullmatch(answer):
            return None
        return tuple(map(int, re.findall(r"\d+", answer)))

    def expected(self, problem: Problem, *, lured: bool = False) -> Numbers:
        """Return the listed numbers in ascending order."""
        return tuple(sorted(read_question(problem.question)))

    def spelled(self, said: Numbers) -> str:
        """Return the numbers in the order written, separated by single blanks."""
        return _written(said).strip()

    def check(self, problem: Problem, said: Numbers, *, lured: bool) -> tuple[str, bool]:
        """Return the text of the numbers, and whether they are right (``lured``: in any order)."""
        return _written(said), (tuple(sorted(said)) if lured else said) == self.expected(problem)

    def attempt(
        self, problem: Problem, rng: random.Random, *, right: float = 1.0, lure: float = 0.0
    ) -> Numbers:
        """Return the numbers: sorted, or as a lure with the planted mistake, or two neighbours swapped."""
        draw, order = rng.random(), sorted(read_question(problem.question))
        if right <= draw < right + lure:
            return tuple(order.pop(rng.randrange(min(3, len(order)))) for _ in order[:])
        if draw >= right:
            at = rng.randrange(1, len(order))
            order[at - 1], order[at] = order[at], order[at - 1]
        return tuple(order)

    def write_solution(self, problem: Problem, attempt: Numbers) -> str:
        """Return the solution text of an order."""
        return f" \\boxed{{{_written(attempt)}}}"

    def vocabulary(self) -> tuple[str, ...]:
        """Return every token that the texts need; joined tokens spell each text exactly."""
        words = ("Sort", ".", " ", " right", " wrong", " none", "\\boxed{", " \\boxed{", "}")
        return (*words, *(f" {n}" for n in range(1, LARGEST + 1)))


@lru_cache(maxsize=4096)
def read_question(question: str) -> Numbers:
    """Return the numbers in the order of the question.

    >>> read_question("Sort 8 3 11 5.")
    (8, 3, 11, 5)
    """
    match = matched(_QUESTION, question, "a list to sort ('Sort 8 3 11 5.')")
    return tuple(map(int, match[1].split()))


def _written(numbers: Numbers | list[int]) -> str:
    return "".join(f" {number}" for number in numbers)


FAMILY = Sorting()
