"""The 25 verifiable instructions of IFEval, one function each [Zhou et al. 2023, arXiv 2311.07911, table 1].

From a response and the instruction's arguments, under their published names, to whether it is followed.
Strictly: as the published checkers decide, but keywords and markers stand for themselves and are not regular
expressions, and every check is linear in the response and raises on none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from envs.instructions.text import capital_words, count_sentences, count_words, enclosed, language_of

OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
"""What a constrained response chooses from."""

_BOLD = re.compile(r"\*\*([^\n*]*)\*\*")
_ITALIC = re.compile(r"\*([^\n*]*)\*")
_STAR = re.compile(r"^[^\S\n]*+\*[^*].*$", re.MULTILINE)
_DASH = re.compile(r"^[^\S\n]*+-.*$", re.MULTILINE)
_FENCES = ("```json", "```Json", "```JSON", "```")
_BOUNDARY, _NO_WORD = re.compile(r"\b"), re.compile(r"(?<!\w)(?!\w)")
_POSTSCRIPTS = {"P.S.": re.compile(r"p\.\s?s\."), "P.P.S": re.compile(r"p\.\s?p\.\s?s")}


def compared(count: int, relation: str, bound: int) -> bool:
    """Return whether a count is "at least" a bound, or "less than" it.

    >>> compared(3, "at least", 3), compared(3, "less than", 3)
    (True, False)
    """
    return count < bound if relation == "less than" else count >= bound


def keyword_existence(response: str, *, keywords: Sequence[str]) -> bool:
    """Every keyword stands somewhere, also inside a word; case is ignored."""
    text = folded(response)
    return all(folded(keyword) in text for keyword in keywords)


def keyword_frequency(response: str, *, keyword: str, frequency: int, relation: str) -> bool:
    """The keyword stands so often, also inside words; case is ignored."""
    return compared(folded(response).count(folded(keyword.strip())), relation, frequency)


def forbidden_words(response: str, *, forbidden_words: Sequence[str]) -> bool:
    """None of the words, ends trimmed, stands as a word of its own; case is ignored."""
    text = _apart(folded(response))
    return not any(_apart(folded(word.strip())) in text for word in forbidden_words)


def letter_frequency(response: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    """The character stands so often; case is ignored."""
    return compared(response.lower().count(letter.lower()), let_relation, let_frequency)


def response_language(response: str, *, language: str) -> bool:
    """The whole response is in the language. One without any letter is in none."""
    return language_of(response) == language


def number_sentences(response: str, *, num_sentences: int, relation: str) -> bool:
    """It has so many sentences (``envs.instructions.text``)."""
    return compared(count_sentences(response), relation, num_sentences)


def number_paragraphs(response: str, *, num_paragraphs: int) -> bool:
    """It has exactly so many paragraphs between dividers ``***``; none but the outermost may be empty."""
    parts = between(response, "***")
    return all(parts) and len(parts) == num_paragraphs


def number_words(response: str, *, num_words: int, relation: str) -> bool:
    """It has so many words."""
    return compared(count_words(response), relation, num_words)


def nth_paragraph_first_word(
    response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> bool:
    """It has exactly so many paragraphs between empty lines, and the n-th starts with the word."""
    paragraphs = [part.strip() for part in response.split("\n\n")]
    count = sum(map(bool, paragraphs))
    if count != num_paragraphs or nth_paragraph > count or not paragraphs[nth_paragraph - 1]:
        return False
    word = paragraphs[nth_paragraph - 1].split(maxsplit=1)[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower() == first_word.lower()


def number_placeholders(response: str, *, num_placeholders: int) -> bool:
    """It has at least so many placeholders such as ``[address]``, each within a line."""
    return sum(enclosed(line, "[", "]") for line in response.split("\n")) >= num_placeholders


def postscript(response: str, *, postscript_marker: str) -> bool:
    """The marker stands somewhere; case, and a blank between its letters, are ignored."""
    marker = postscript_marker.strip()
    pattern = _POSTSCRIPTS.get(marker)
    text = response.lower()
    return pattern.search(text) is not None if pattern else marker.lower() in text


def number_bullet_lists(response: str, *, num_bullets: int) -> bool:
    """It has exactly so many lines that begin with ``*`` and not ``**``, or with ``-``.

    A lone ``*`` takes the next line with it, as in the published expressions.
    """
    return sum(1 for bullet in (_STAR, _DASH) for _ in bullet.finditer(response)) == num_bullets


def constrained_response(response: str) -> bool:
    """One of the three answers "My answer is yes.", "no." and "maybe." stands in it."""
    return any(option in response for option in OPTIONS)


def number_highlighted_sections(response: str, *, num_highlights: int) -> bool:
    """It has at least so many stretches ``*such*`` or ``**such**``, each within a line and not empty."""
    marked = (match[1] for pattern in (_ITALIC, _BOLD) for match in pattern.finditer(response))
    return sum(bool(inside.strip()) for inside in marked) >= num_highlights


def multiple_sections(response: str, *, section_spliter: str, num_sections: int) -> bool:
    """It has at least so many headings such as "Section 1": the word and a number."""
    heading = re.compile(rf"{re.escape(section_spliter.strip())}\s?\d+")
    return sum(1 for _ in heading.finditer(response)) >= num_sections


def json_format(response: str) -> bool:
    """All of it is JSON (RFC 8259), NaN and Infinity are none; each opening of a fence is taken off once."""
    text = response.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    text = text.removesuffix("```").strip()
    try:
        json.loads(text, parse_int=str, parse_constant=refuse_constant)  # a number may have any length
    except (ValueError, RecursionError):  # the latter by JSON nested a thousand deep
        return False
    return True


def refuse_constant(name: str) -> None:
    """Raise ValueError for NaN and Infinity, which Python's reader would take."""
    raise ValueError(f"{name} is not JSON")


def title(response: str) -> bool:
    """A title such as ``<<poem of joy>>`` stands in one of its lines."""
    return any(map(_title, response.split("\n")))


def _title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end - 2 and bool(line[start:end].lstrip("<").rstrip(">").strip())


def two_responses(response: str) -> bool:
    """It is two different responses with ``******`` between them."""
    parts = between(response, "******")
    return len(parts) == 2 and all(parts) and parts[0] != parts[1]


def repeat_prompt(response: str, *, prompt_to_repeat: str) -> bool:
    """It begins with the request, word for word; case is ignored."""
    return response.strip().lower().startswith(prompt_to_repeat.strip().lower())


def end_checker(response: str, *, end_phrase: str) -> bool:
    """It ends with the phrase; quotation marks after it and case are ignored."""
    return response.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def capital_word_frequency(response: str, *, capital_frequency: int, capital_relation: str) -> bool:
    """It has so many words all in capitals (``envs.instructions.text``)."""
    return compared(capital_words(response), capital_relation, capital_frequency)


def english_capital(response: str) -> bool:
    """It is English without a small letter."""
    return response.isupper() and language_of(response) == "en"


def english_lowercase(response: str) -> bool:
    """It is English without a capital letter."""
    return response.islower() and language_of(response) == "en"


def no_comma(response: str) -> bool:
    """It has no comma."""
    return "," not in response


def quotation(response: str) -> bool:
    """It stands between double quotation marks."""
    text = response.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def folded(text: str) -> str:
    """Return text in which case is ignored; the small sigma has two forms."""
    return text.lower().replace("ς", "σ")


def _apart(text: str) -> str:
    """Return text with a mark around each word and around each character that is not part of one.

    In this form only a word of its own is found with its marks: one quick search finds it anywhere.
    """
    plain = text.replace("\0", "\2").replace("\1", "\2")  # the marks
    return _BOUNDARY.sub("\0", _NO_WORD.sub("\1", plain))


def between(response: str, divider: str) -> list[str]:
    """Return what stands between dividers, ends trimmed; the first and the last only if not empty."""
    parts = [part.strip() for part in response.split(divider)]
    kept = slice(0 if parts[0] else 1, len(parts) if parts[-1] else len(parts) - 1)
    return parts[kept]
