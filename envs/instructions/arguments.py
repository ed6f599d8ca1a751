"""The arguments of an instruction: from what a row has to what a check takes, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from envs.errors import HALF_CHARACTER
from envs.instructions.language import LANGUAGES

Reader: TypeAlias = Callable[[object], object]

RELATIONS = ("less than", "at least")
_LARGEST = 1_000_000
_LONGEST = 100_000
_LONGEST_KEYWORD = 200
_MOST_KEYWORDS = 64


class Unfit(Exception):
    """What is wrong with an argument, as the end of a sentence."""


def count(value: object) -> int:
    """A whole number from 0; a table of numbers and gaps may hold it as a float."""
    return _whole(value, 0)


def ordinal(value: object) -> int:
    """A whole number from 1."""
    return _whole(value, 1)


def _whole(value: object, least: int) -> int:
    whole = isinstance(value, float) and value.is_integer()
    if isinstance(value, bool) or not (isinstance(value, int) or whole):
        raise Unfit("needs a whole number")
    assert isinstance(value, int | float)
    if not least <= value <= _LARGEST:
        raise Unfit(f"needs a number in {least}..{_LARGEST}")
    return int(value)


def relation(value: object) -> str:
    """One of RELATIONS."""
    if value not in RELATIONS:
        raise Unfit(f"needs one of {RELATIONS}")
    return str(value)


def phrase(value: object) -> str:
    """Text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise Unfit("needs text that is not blank")
    if HALF_CHARACTER.search(value):
        raise Unfit("holds half a character (a lone surrogate)")
    if len(value) > _LONGEST:
        raise Unfit(f"needs at most {_LONGEST} characters")
    return value


def keyword(value: object) -> str:
    """Such a text that a response may hold many times: a short one."""
    if len(phrase(value)) > _LONGEST_KEYWORD:
        raise Unfit(f"needs at most {_LONGEST_KEYWORD} characters")
    return phrase(value)


def keywords(value: object) -> list[str]:
    """A list of keywords, at least one."""
    if not isinstance(value, list | tuple) or not value:
        raise Unfit("needs a list of texts that are not blank")
    if len(value) > _MOST_KEYWORDS:
        raise Unfit(f"needs a list of at most {_MOST_KEYWORDS} texts")
    return [keyword(one) for one in value]


def letter(value: object) -> str:
    """One character; the published set asks for "#" and "!" as well."""
    if len(phrase(value)) != 1:
        raise Unfit("needs one character")
    return phrase(value)


def language(value: object) -> str:
    """One of IFEval's languages."""
    if not isinstance(value, str) or value not in LANGUAGES:
        raise Unfit(f"needs one of {', '.join(sorted(LANGUAGES))}")
    return value
