r"""Keys of answers, so that a majority vote counts equal wrong answers together.

The grader says which answers are right. Wrong answers have no gold answer to be compared with, and comparing
all pairs symbolically would cost one process call per pair. So two wrong answers count as equal if they are
the same plain number or have the same spelling in plain notation. ``\sqrt{8}`` and ``2\sqrt{2}`` have
different keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from debate.types import WHOLE_RESPONSE, Problem
from envs.answers.notation import MAX_CHARS, clean, sides, spelling
from envs.answers.numbers import parse_number
from envs.answers.words import letter_of, normal_text

AnswerKey: TypeAlias = Callable[[Problem, str], str]
"""A function of a problem and an answer that returns the same text for equal answers. It never raises."""


def plain_key(problem: Problem, answer: str) -> str:
    r"""Return the value of a plain number, without units and a leading "x ="; else the answer's spelling.

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


def key_of_kind(problem: Problem, answer: str) -> str:
    """Return the key for the problem's kind: a letter, a text or a whole response, else ``plain_key``."""
    if problem.kind == "text":
        return normal_text(answer)
    if problem.kind in ("verbatim", *WHOLE_RESPONSE):
        return answer.strip()
    letter = letter_of(answer[:MAX_CHARS], problem.choices) if problem.kind == "choice" else None
    return letter or plain_key(problem, answer)


def key_of(environment: object) -> AnswerKey:
    """Return the environment's ``answer_key`` if it has one, else ``plain_key``."""
    return getattr(environment, "answer_key", plain_key)
