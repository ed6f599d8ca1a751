"""Read the arguments of instructions: each reader returns a checked value, or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from envs.errors import HALF_CHARACTER
from envs.instructions.text import LANGUAGES

Reader: TypeAlias = Callable[[object], object]
Types: TypeAlias = Mapping[str, tuple[Callable[..., bool], Mapping[str, Reader]]]
"""Instructions by their published names: the check of each, and how its arguments are read."""

RELATIONS = ("less than", "at least")
QUANTIFIERS = ("at least", "around", "at most")
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


def first_phrase(value: object) -> str:
    """Text that is not blank, ends trimmed; of a list its first: some published rows have one."""
    return phrase(value[0] if isinstance(value, list) and value else value).strip()


def keyword(value: object) -> str:
    """A short text, as a response may hold it many times."""
    if len(phrase(value)) > _LONGEST_KEYWORD:
        raise Unfit(f"needs at most {_LONGEST_KEYWORD} characters")
    return phrase(value)


def keywords(value: object) -> list[str]:
    """A list of keywords, at least one."""
    if not isinstance(value, list | tuple) or not value:
        raise Unfit("needs a list of texts that are not blank")
    if len(value) > _MOST_KEYWORDS:
        raise Unfit(f"needs a list of at most {_MOST_KEYWORDS} texts")
    return [keyword(item) for item in value]


def letter(value: object) -> str:
    """One character; the published set has "#" and "!" too."""
    if len(phrase(value)) != 1:
        raise Unfit("needs one character")
    return phrase(value)


def language(value: object) -> str:
    """One of IFEval's languages."""
    if not isinstance(value, str) or value not in LANGUAGES:
        raise Unfit(f"needs one of {', '.join(sorted(LANGUAGES))}")
    return value


def listed_options(value: object) -> list[str]:
    """Answers to choose from: a list, or a text that separates them by "/", "or" or ","."""
    if isinstance(value, str):
        separator = next((mark for mark in ("/", "or") if mark in value), ",")
        value = [part.strip() for part in value.split(separator)]
    return keywords(value)


def quantifier(value: object) -> str:
    """One of QUANTIFIERS."""
    if value not in QUANTIFIERS:
        raise Unfit(f"needs one of {QUANTIFIERS}")
    return str(value)
