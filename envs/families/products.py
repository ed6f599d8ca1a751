r"""Multiply two numbers of several digits: too hard for a small model, but one line of Python.

``What is 347 * 29?`` A written solution multiplies by one digit after the other, as taught at school. A
solution with a tool has a program and its output (the format of NuminaMath-TIR).

| level | digits of the factors | problems, in any order |
|-------|-----------------------|------------------------|
| 1     | 2 and 2               | 4,095                  |
| 2     | 3 and 2               | 81,000                 |
| 3     | 3 and 3               | 405,450                |

The planted mistake for demonstrations is to forget the zeros: 347 * 20 = 694.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

from debate.types import Kind, Problem
from envs.families.synthetic import SyntheticFamily, matched, read_integer

LEVELS = {"1": (2, 2), "2": (3, 2), "3": (3, 3)}  # level: digits of both factors; either may come first

Parts: TypeAlias = tuple[int, ...]
"""The products of the first factor and each nonzero digit of the second factor, largest place first."""

_QUESTION = re.compile(r"What is (\d{1,9}) \* (\d{1,9})\?\Z", re.ASCII)
_INTEGER = re.compile(r"\s*(\d{1,18})(?:\.0*)?\s*\.?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Products(SyntheticFamily):
    """The family as an environment, with some of its levels; an attempt is the products by each digit."""

    levels: tuple[str, ...] = tuple(LEVELS)
    name: str = "products"
    kind: ClassVar[Kind] = "number"

    def draw(self, rng: random.Random, level: str) -> tuple[str, str, str]:
        """Return the canonical form (the factors in ascending order), the question and the answer."""
        one, other = (rng.randrange(10 ** (digits - 1), 10**digits) for digits in LEVELS[level])
        if rng.random() < 0.5:
            one, other = other, one
        return f"{min(one, other)}*{max(one, other)}", f"What is {one} * {other}?", str(one * other)

    def read_answer(self, answer: str) -> int | None:
        """Return the integer that an answer states; None for any other answer."""
        return read_integer(_INTEGER, answer)

    def expected(self, problem: Problem, *, lured: bool = False) -> int:
        """Return the product; with ``lured``, the product computed without the zeros."""
        one, other = read_question(problem.question)
        return sum(one * (int(str(part)[0]) if lured else part) for part in places(other))

    def attempt(
        self, problem: Problem, rng: random.Random, *, right: float = 1.0, lure: float = 0.0
    ) -> Parts:
        """Return the products by each digit: right, or as a lure without zeros, or with one wrong digit."""
        one, other = read_question(problem.question)
        parts, draw = tuple(one * part for part in places(other)), rng.random()
        if draw < right:
            return parts
        if draw < right + lure:
            return tuple(one * int(str(part)[0]) for part in places(other))
        at = rng.randrange(len(parts))
        digits = str(parts[at])
        place = rng.randrange(len(digits))
        other_digit = rng.choice([digit for digit in "0123456789"[place == 0 :] if digit != digits[place]])
        wrong = int(f"{digits[:place]}{other_digit}{digits[place + 1 :]}")
        return (*parts[:at], wrong, *parts[at + 1 :])

    def write_solution(self, problem: Problem, attempt: Parts) -> str:
        r"""Return the solution text of an attempt: the products by each digit, and the sum of the products.

        >>> Products().write_solution(Problem("p", "What is 347 * 29?"), (6940, 3123))
        ' 347 * 20 = 6940. 347 * 9 = 3123. 6940 + 3123 = 10063. \\boxed{10063}'
        """
        one, other = read_question(problem.question)
        lines = [f" {one} * {by} = {part}." for by, part in zip(places(other), attempt, strict=True)]
        if len(attempt) > 1:
            lines.append(f" {' + '.join(map(str, attempt))} = {sum(attempt)}.")
        return f"{''.join(lines)} \\boxed{{{sum(attempt)}}}"

    def write_with_tool(self, problem: Problem) -> str:
        r"""Return a solution with a program that prints the product, and the program's output.

        >>> print(Products().write_with_tool(Problem("p", "What is 34 * 29?")))
         In Python:
        ```python
        print(34 * 29)
        ```
        ```output
        986
        ```
        \boxed{986}
        """
        one, other = read_question(problem.question)
        output = f"```output\n{one * other}\n```\n"
        program = f"```python\nprint({one} * {other})\n```\n"
        return f" In Python:\n{program}{output}\\boxed{{{one * other}}}"

    def vocabulary(self) -> tuple[str, ...]:
        """Return every token that the texts need, one per digit; joined tokens spell each text exactly."""
        signs = ("What is", "?", ".", " ", " *", " +", " =", "\\boxed{", " \\boxed{", "}")
        fences = ("In Python:", "\n```python\n", "print(", ")\n```\n", "```output\n", "\n```\n")
        words = (" right", " wrong", " none", "\n")
        return (*signs, *fences, *words, *map(str, range(10)))


@lru_cache(maxsize=4096)
def read_question(question: str) -> tuple[int, int]:
    """Return the two factors in the order of the question.

    >>> read_question("What is 347 * 29?")
    (347, 29)
    """
    match = matched(_QUESTION, question, "a product ('What is 347 * 29?')")
    return int(match[1]), int(match[2])


def places(number: int) -> Parts:
    """Return the place values of a number's nonzero digits, largest first.

    >>> places(329), places(40)
    ((300, 20, 9), (40,))
    """
    digits = str(number)
    return tuple(int(digit) * 10 ** (len(digits) - 1 - at) for at, digit in enumerate(digits) if digit != "0")


FAMILY = Products()
