"""The instructions of allenai/RLVR-IFeval, by their functions' names [Lambert et al. 2024, arXiv 2411.15124].

Tulu 3 wrote IFEval's 25 anew: "at most" and "around" are relations there, counts are exact, keywords case
sensitive or not by other rules. So they are instructions of their own, with what the published functions
decide; every check is linear in the response and raises on none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from envs.instructions.arguments import (
    Types,
    count,
    keyword,
    keywords,
    language,
    letter,
    listed_options,
    ordinal,
    phrase,
    quantifier,
)
from envs.instructions.checks import no_comma, refuse_constant, response_language
from envs.instructions.text import enclosed

_WORD = re.compile(r"\b\w+\b")
_CAPITALS = re.compile(r"\b[A-Z]+\b")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s")
_NO_END = re.compile(r"\w\.\w.|.[A-Z][a-z]\.", re.DOTALL)


def quantified(number: int, how: str, bound: int, tolerance: int) -> bool:
    """Return whether a number is "at least", "at most" or "around" a bound, that is within the tolerance.

    >>> [quantified(9, how, 10, 1) for how in ("at least", "at most", "around")]
    [False, True, True]
    """
    if how == "around":
        return abs(number - bound) <= tolerance
    return number >= bound if how == "at least" else number <= bound


def _tenth(bound: int) -> int:
    return max(round(bound * 0.1), 1)


def all_keywords(response: str, *, keyword_list: Sequence[str]) -> bool:
    """Every keyword stands somewhere, also inside a word; case is ignored."""
    text = response.lower()
    return all(keyword.lower() in text for keyword in keyword_list)


def keyword_frequency(response: str, *, word: str, N: int) -> bool:
    """The word stands exactly so often, as a word of its own; case is ignored."""
    return _WORD.findall(response.lower()).count(word.lower()) == N


def no_forbidden(response: str, *, forbidden_words: Sequence[str]) -> bool:
    """None of the words stands in it, also inside words; case is ignored."""
    text = response.lower()
    return not any(word.lower() in text for word in forbidden_words)


def letter_count(response: str, *, letter: str, N: int) -> bool:
    """The character stands exactly so often; case counts."""
    return response.count(letter) == N


def paragraph_count(response: str, *, N: int) -> bool:
    """It has exactly so many paragraphs between dividers ``* * *``, none of them empty."""
    parts = "\n".join(map(str.strip, response.splitlines())).strip().split("* * *")
    return len(parts) == N and all(map(str.strip, parts))


def word_constraint(response: str, *, N: int, quantifier: str) -> bool:
    """It has so many words between blanks; "around" is within a tenth."""
    return quantified(len(response.split()), quantifier, N, _tenth(N))


def sentence_constraint(response: str, *, N: int, quantifier: str) -> bool:
    """It has so many sentences: one more than blanks behind a mark; "around" is within one."""
    ends = (end.start() for end in _SENTENCE_END.finditer(response))
    return quantified(1 + sum(not _goes_on(response, end) for end in ends), quantifier, N, 1)


def _goes_on(text: str, end: int) -> bool:
    """Whether what stands before the blank is "Dr." or "e.g."."""
    return _NO_END.fullmatch(text[max(0, end - 4) : end].rjust(4)) is not None


def nth_paragraph(response: str, *, N: int, first_word: str, i: int) -> bool:
    """Exactly so many paragraphs stand between empty lines; the i-th starts with the word, case counting."""
    parts = response.split("\n\n")
    return len(parts) == N and parts[i - 1].strip().startswith(first_word)


def postscript(response: str, *, postscript_marker: str) -> bool:
    """Something stands behind the marker."""
    return bool(response.partition(postscript_marker)[2].strip())


def placeholders(response: str, *, N: int) -> bool:
    """It has at least so many stretches in square brackets, each within a line."""
    return sum(enclosed(line, "[", "]") for line in response.split("\n")) >= N


def bullet_points(response: str, *, N: int) -> bool:
    """It has exactly so many lines that begin with ``*`` or ``-``."""
    return sum(line.strip().startswith(("*", "-")) for line in response.split("\n")) == N


def title(response: str) -> bool:
    """It has a stretch in double angular brackets, within a line."""
    return any(enclosed(line, "<<", ">>") for line in response.split("\n"))


def choice(response: str, *, options: Sequence[str]) -> bool:
    """One of the options stands in it; case counts."""
    return any(option in response for option in options)


def highlighted(response: str, *, N: int) -> bool:
    """It has at least so many stretches between two ``*``, each within a line."""
    return sum(line.count("*") // 2 for line in response.split("\n")) >= N


def sections(response: str, *, N: int, section_splitter: str) -> bool:
    """The splitter parts it into exactly so many sections, an empty first one not among them."""
    parts = response.split(section_splitter)
    return len(parts) - (parts[0] == "") == N


def json_text(response: str) -> bool:
    """All of it is JSON (RFC 8259), without a fence."""
    try:
        json.loads(response, parse_int=str, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def repeat_prompt(response: str, *, original_prompt: str) -> bool:
    """It begins with the request, to the letter."""
    return response.startswith(original_prompt)


def two_responses(response: str) -> bool:
    """It is two different responses with ``******`` between, once."""
    one, *others = (part.strip() for part in response.split("******"))
    return len(others) == 1 and one != others[0]


def uppercase(response: str) -> bool:
    """It has no small letter."""
    return response == response.upper()


def lowercase(response: str) -> bool:
    """It has no capital letter."""
    return response == response.lower()


def capital_words(response: str, *, N: int, quantifier: str) -> bool:
    """It has so many words all in capitals of English; "around" is within a tenth."""
    return quantified(len(_CAPITALS.findall(response)), quantifier, N, _tenth(N))


def end_phrase(response: str, *, end_phrase: str) -> bool:
    """It ends with the phrase, to the letter."""
    return response.endswith(end_phrase)


def quotation(response: str) -> bool:
    """Its first and last characters are double quotation marks."""
    return response.startswith('"') and response.endswith('"')


RLVR_IFEVAL: Types = {
    "verify_keywords": (all_keywords, {"keyword_list": keywords}),
    "verify_keyword_frequency": (keyword_frequency, {"word": keyword, "N": count}),
    "validate_forbidden_words": (no_forbidden, {"forbidden_words": keywords}),
    "verify_letter_frequency": (letter_count, {"letter": letter, "N": count}),
    "validate_response_language": (response_language, {"language": language}),
    "verify_paragraph_count": (paragraph_count, {"N": count}),
    "validate_word_constraint": (word_constraint, {"N": count, "quantifier": quantifier}),
    "verify_sentence_constraint": (sentence_constraint, {"N": count, "quantifier": quantifier}),
    "validate_paragraphs": (nth_paragraph, {"N": ordinal, "first_word": phrase, "i": ordinal}),
    "verify_postscript": (postscript, {"postscript_marker": phrase}),
    "validate_placeholders": (placeholders, {"N": count}),
    "verify_bullet_points": (bullet_points, {"N": count}),
    "validate_title": (title, {}),
    "validate_choice": (choice, {"options": listed_options}),
    "validate_highlighted_sections": (highlighted, {"N": count}),
    "validate_sections": (sections, {"N": count, "section_splitter": keyword}),
    "validate_json_format": (json_text, {}),
    "validate_repeat_prompt": (repeat_prompt, {"original_prompt": phrase}),
    "validate_two_responses": (two_responses, {}),
    "validate_uppercase": (uppercase, {}),
    "validate_lowercase": (lowercase, {}),
    "validate_frequency_capital_words": (capital_words, {"N": count, "quantifier": quantifier}),
    "validate_end": (end_phrase, {"end_phrase": phrase}),
    "validate_quotation": (quotation, {}),
    "validate_no_commas": (no_comma, {}),
}
"""Every argument must be given."""
