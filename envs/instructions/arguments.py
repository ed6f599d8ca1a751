"""Instructions: a check and the parsers of its arguments.

A parser returns a valid argument or raises ``Unfit``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import NamedTuple, TypeAlias

from envs.errors import HALF_CHARACTER
from envs.instructions.text import LANGUAGES

Reader: TypeAlias = Callable[[object], object]
_LARGEST = 1_000_000
_LONGEST = 100_000
_LONGEST_KEYWORD = 200
_MOST_KEYWORDS = 64


class Instruction(NamedTuple):
    """A check of a response, and the parser of each argument of the check."""

    check: Callable[..., bool]
    readers: Mapping[str, Reader]


Instructions: TypeAlias = Mapping[str, Instruction]
"""Instructions by their published names. Every argument must be given: there are no defaults."""


class Unfit(Exception):
    """An invalid argument; the message completes a sentence that begins with the argument's name."""


def whole(least: int) -> Reader:
    """Return a parser of integers that are at least ``least``.

    The parser accepts floats with integer values, which published tables may contain.
    """

    def read(value: object) -> int:
        is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not is_whole:
            raise Unfit("needs a whole number")
        number = int(value)  # type: ignore[call-overload]
        if not least <= number <= _LARGEST:
            raise Unfit(f"needs a number in {least}..{_LARGEST}")
        return number

    return read


count, ordinal = whole(0), whole(1)


def one_of(*words: str) -> Reader:
    """Return a parser that accepts one of the words."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise Unfit(f"needs one of {words if len(words) < 9 else ', '.join(words)}")
        return value

    return read


relation = one_of("less than", "at least")
quantifier = one_of("at least", "around", "at most")
language = one_of(*sorted(LANGUAGES))


def phrase(value: object) -> str:
    """Parse a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise Unfit("needs text that is not blank")
    if HALF_CHARACTER.search(value):
        raise Unfit("contains half a character (a lone surrogate)")
    if len(value) > _LONGEST:
        raise Unfit(f"needs at most {_LONGEST} characters")
    return value


def first_phrase(value: object) -> str:
    """Parse a text that is not blank, and strip it.

    Of a list, which some published rows have, the first item is parsed.
    """
    return phrase(value[0] if isinstance(value, list) and value else value).strip()


def keyword(value: object) -> str:
    """Parse a text that is short, because a response may contain it many times."""
    if len(text := phrase(value)) > _LONGEST_KEYWORD:
        raise Unfit(f"needs at most {_LONGEST_KEYWORD} characters")
    return text


def keywords(value: object) -> list[str]:
    """Parse a list of at least one keyword."""
    if not isinstance(value, list | tuple) or not value:
        raise Unfit("needs a list of texts that are not blank")
    if len(value) > _MOST_KEYWORDS:
        raise Unfit(f"needs a list of at most {_MOST_KEYWORDS} texts")
    return [keyword(item) for item in value]


def options(value: object) -> list[str]:
    """Parse the answers to choose from: a list, or a text that separates the answers by "/", "or" or ","."""
    if isinstance(value, str):
        separator = next((mark for mark in ("/", "or") if mark in value), ",")
        value = [part.strip() for part in value.split(separator)]
    return keywords(value)


def letter(value: object) -> str:
    """Parse one character, which need not be a letter: the published set also has "#" and "!"."""
    if len(text := phrase(value)) != 1:
        raise Unfit("needs one character")
    return text


ARGUMENTS: Mapping[str, Reader] = {
    name: read
    for read, names in {
        count: "frequency let_frequency capital_frequency num_sentences num_paragraphs num_words num_bullets "
        "num_placeholders num_highlights num_sections min_words max_words N small_n percentage n_start n_end",
        ordinal: "nth_paragraph n m n_sent n_words i",
        relation: "relation let_relation capital_relation",
        quantifier: "quantifier",
        keyword: "keyword keyword1 keyword2 keyword3 keyword4 keyword5 word phrase sep section_spliter "
        "section_splitter",
        keywords: "keywords forbidden_words keyword_list",
        phrase: "first_word postscript_marker prompt_to_repeat end_phrase reference_text original_prompt",
        first_phrase: "last_word",
        letter: "letter",
        language: "language",
        options: "options",
    }.items()
    for name in names.split()
}
"""The parser of each argument by its published name; some instructions override it."""


def of(check: Callable[..., bool], /, **others: Reader) -> Instruction:
    """Return the instruction that a check function defines.

    Its arguments are the check's parameters after ``response``. ``others`` overrides the parsers of
    ``ARGUMENTS``.
    """
    names = list(signature(check).parameters)[1:]
    return Instruction(check, {name: others.get(name) or ARGUMENTS[name] for name in names})
