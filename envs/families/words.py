r"""Word problems: ``Tom has 8 apples. Tom gets 4 more. Tom loses 3. How many apples?``

A story starts with 2..12 things and adds or takes away 1..6 things once at level 1, twice at level 2 and
three times at level 3. Every intermediate number lies in 0..30. Names and things vary but are not part of a
problem's canonical form, so the same arithmetic is never in two splits.

The planted mistake for demonstrations is a habit: to read "loses" as "gets".
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, TypeAlias

from debate.types import Kind, Problem
from envs.families.synthetic import SyntheticFamily, matched, read_integer

LEVELS = ("1", "2", "3")
LARGEST = 30
NAMES = ("Tom", "Ann", "Ben", "Eva")
THINGS = ("apples", "books", "coins", "pens")

Reading: TypeAlias = tuple[int, ...]  # a story as understood: the start, then each change with its sign

_START = re.compile(r"[A-Z][a-z]+ has (\d+) [a-z]+\.", re.ASCII)
_CHANGE = re.compile(r"(gets|loses) (\d+)", re.ASCII)
_INTEGER = re.compile(r"\s*(-?\d{1,6})(?:\.0*)?\s*(?:[a-z]+)?\s*\.?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Words(SyntheticFamily):
    """The family as an environment, with some of its levels; an attempt is a reading of the story."""

    levels: tuple[str, ...] = LEVELS
    name: str = "words"
    kind: ClassVar[Kind] = "number"

    def draw(self, rng: random.Random, level: str) -> tuple[str, str, str]:
        """Return the canonical form (only the arithmetic), the question and the answer."""
        while True:
            changes = [rng.choice((1, -1)) * rng.randint(1, 6) for _ in range(int(level))]
            reading = (rng.randint(2, 12), *changes)
            if _stays_in_range(reading):
                break
        name, thing = rng.choice(NAMES), rng.choice(THINGS)
        told = (f" {name} gets {n} more." if n > 0 else f" {name} loses {-n}." for n in changes)
        question = f"{name} has {reading[0]} {thing}.{''.join(told)} How many {thing}?"
        return " ".join(map(str, reading)), question, str(sum(reading))

    def read_answer(self, answer: str) -> int | None:
        """Return the integer that an answer states, with or without a unit word; None if there is none."""
        return read_integer(_INTEGER, answer)

    def expected(self, problem: Problem, *, lured: bool = False) -> int:
        """Return the final number; with ``lured``, the final number of the planted habit."""
        reading = read_story(problem.question)
        return sum(_habit(reading) if lured else reading)

    def fault(self, problem: Problem, answer: str) -> str | None:
        """Return the name of the planted habit if the answer has it; None for any other answer."""
        habit = self.expected(problem, lured=True)
        return '"loses" read as "gets"' if self.read_answer(answer) == habit else None

    def attempt(
        self, problem: Problem, rng: random.Random, *, right: float = 1.0, lure: float = 0.0
    ) -> Reading:
        """Return a reading of the story: right, or as a lure by the habit, or with one wrong sign."""
        reading = read_story(problem.question)
        draw = rng.random()
        if draw < right:
            return reading
        if draw < right + lure:
            return _habit(reading)
        at = rng.randrange(1, len(reading))
        misread = (*reading[:at], -reading[at], *reading[at + 1 :])
        return misread if _stays_in_range(misread) else _habit(reading)

    def write_solution(self, problem: Problem, attempt: Reading) -> str:
        """Return the solution text of a reading, step by step."""
        totals = list(accumulate(attempt))
        steps = zip(totals, attempt[1:], totals[1:], strict=False)
        working = "".join(f" {a} {'+' if n > 0 else '-'} {abs(n)} = {b}." for a, n, b in steps)
        return f"{working} \\boxed{{ {sum(attempt)}}}"

    def vocabulary(self) -> tuple[str, ...]:
        """Return every token that the texts need; joined tokens spell each text exactly."""
        words = ("has", "gets", "more", "loses", "How", "many", "right", "wrong", "none", *THINGS)
        signs = (".", "?", " ", " +", " -", " =", "\\boxed{", " \\boxed{", "}")
        names = (piece for name in NAMES for piece in (name, f" {name}"))
        return (*signs, *names, *(f" {word}" for word in words), *(f" {n}" for n in range(LARGEST + 1)))


@lru_cache(maxsize=4096)
def read_story(question: str) -> Reading:
    """Return the start and the signed changes of a story.

    >>> read_story("Tom has 8 apples. Tom gets 4 more. Tom loses 3. How many apples?")
    (8, 4, -3)
    """
    match = matched(_START, question, "a story of this family ('Tom has 8 apples. ...')")
    changes = (int(n) if verb == "gets" else -int(n) for verb, n in _CHANGE.findall(question))
    return (int(match[1]), *changes)


def _habit(reading: Reading) -> Reading:
    return (reading[0], *(abs(n) for n in reading[1:]))


def _stays_in_range(reading: Reading) -> bool:
    return all(0 <= total <= LARGEST for total in accumulate(reading))


FAMILY = Words()
