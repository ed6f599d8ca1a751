"""The instructions by their published names: the check of each, and how its arguments are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from envs.errors import HALF_CHARACTER
from envs.instructions import checks
from envs.instructions.text import LANGUAGES

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


TYPES: Mapping[str, tuple[Callable[..., bool], Mapping[str, Reader]]] = MappingProxyType(
    {
        "keywords:existence": (checks.keyword_existence, {"keywords": keywords}),
        "keywords:frequency": (
            checks.keyword_frequency,
            {"keyword": keyword, "frequency": count, "relation": relation},
        ),
        "keywords:forbidden_words": (checks.forbidden_words, {"forbidden_words": keywords}),
        "keywords:letter_frequency": (
            checks.letter_frequency,
            {"letter": letter, "let_frequency": count, "let_relation": relation},
        ),
        "language:response_language": (checks.response_language, {"language": language}),
        "length_constraints:number_sentences": (
            checks.number_sentences,
            {"num_sentences": count, "relation": relation},
        ),
        "length_constraints:number_paragraphs": (checks.number_paragraphs, {"num_paragraphs": count}),
        "length_constraints:number_words": (checks.number_words, {"num_words": count, "relation": relation}),
        "length_constraints:nth_paragraph_first_word": (
            checks.nth_paragraph_first_word,
            {"num_paragraphs": ordinal, "nth_paragraph": ordinal, "first_word": phrase},
        ),
        "detectable_content:number_placeholders": (checks.number_placeholders, {"num_placeholders": count}),
        "detectable_content:postscript": (checks.postscript, {"postscript_marker": phrase}),
        "detectable_format:number_bullet_lists": (checks.number_bullet_lists, {"num_bullets": count}),
        "detectable_format:constrained_response": (checks.constrained_response, {}),
        "detectable_format:number_highlighted_sections": (
            checks.number_highlighted_sections,
            {"num_highlights": count},
        ),
        "detectable_format:multiple_sections": (
            checks.multiple_sections,
            {"section_spliter": keyword, "num_sections": count},
        ),
        "detectable_format:json_format": (checks.json_format, {}),
        "detectable_format:title": (checks.title, {}),
        "combination:two_responses": (checks.two_responses, {}),
        "combination:repeat_prompt": (checks.repeat_prompt, {"prompt_to_repeat": phrase}),
        "startend:end_checker": (checks.end_checker, {"end_phrase": phrase}),
        "change_case:capital_word_frequency": (
            checks.capital_word_frequency,
            {"capital_frequency": count, "capital_relation": relation},
        ),
        "change_case:english_capital": (checks.english_capital, {}),
        "change_case:english_lowercase": (checks.english_lowercase, {}),
        "punctuation:no_comma": (checks.no_comma, {}),
        "startend:quotation": (checks.quotation, {}),
    }
)
"""Every argument must be given: there are no defaults."""

DETECTED = frozenset(
    ("language:response_language", "change_case:english_capital", "change_case:english_lowercase")
)
"""Those that need to detect the language."""
