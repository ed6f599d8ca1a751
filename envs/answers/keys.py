r"""Which wrong answers are the same answer, so that a majority counts them together.

Right ones are told by the grader. For wrong ones there is no gold answer to compare with, and comparing all
pairs by symbols would cost a process call each: they are the same when they are the same plain number, or
have the same spelling in plain notation. What only mathematics could join (``\sqrt{8}``, ``2\sqrt{2}``) stays
apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from debate.types import Problem
from envs.answers.notation import clean, sides, spelling
from envs.answers.numbers import parse_number

AnswerKey: TypeAlias = Callable[[Problem, str], str]
"""From a problem and an answer to a text that is equal for answers that are the same. Never raises."""

MAX_CHARS = 4000


def plain_key(problem: Problem, answer: str) -> str:
    r"""Return the value of a plain number, units and a leading "x =" left out; any other answer's spelling.

    >>> problem = Problem("p", "How long?")
    >>> [plain_key(problem, text) for text in ("1,200", "x = 1200.0", "1200 cm", r"\dfrac{1}{2}", "0.5")]
    ['1200', '1200', '1200', '1/2', '1/2']
    >>> plain_key(problem, r"x^{2} + 1") == plain_key(problem, "$x^2+1$")
    True
    """
    plain = clean(answer[:MAX_CHARS])
    last = sides(plain)
    number = parse_number(last[0]) if len(last) == 1 else None
    return str(number.value) if number else spelling(plain)


def key_of(environment: object) -> AnswerKey:
    """Return how an environment tells wrong answers apart: its ``answer_key``, else ``plain_key``."""
    return getattr(environment, "answer_key", plain_key)
