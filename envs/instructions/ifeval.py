"""The instructions of IFEval, of Open-Instruct, which extends IFEval, and of RLVR-IFeval, which rewrites it.

IFEval: Zhou et al. 2023, arXiv 2311.07911, table 1. Open-Instruct (allenai/IF_multi_constraints_upto5):
Pyatkin et al. 2025, arXiv 2507.02833. RLVR-IFeval: Lambert et al. 2024, arXiv 2411.15124. Tulu 3 rewrote
IFEval's 25 instructions with "at most" and "around", exact counts and other rules for case.
docs/instructions.md explains each instruction. The checks give the same verdicts as the published ones,
except that keywords and markers are not regular expressions. Every check takes time linear in the response
and never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise

from envs.instructions import arguments as read
from envs.instructions.arguments import Instructions, of
from envs.instructions.ifbench import keyword_at
from envs.instructions.text import count_words, enclosed, language_of, sentences, words

_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_TOKEN = re.compile(r"\w+(?:[-./]\w+)*")
_BOLD, _ITALIC = re.compile(r"\*\*([^\n*]*)\*\*"), re.compile(r"\*([^\n*]*)\*")
_STAR = re.compile(r"^[^\S\n]*+\*[^*].*$", re.MULTILINE)
_DASH = re.compile(r"^[^\S\n]*+-.*$", re.MULTILINE)
_FENCES = ("```json", "```Json", "```JSON", "```")
_BOUNDARY, _NO_WORD = re.compile(r"\b"), re.compile(r"(?<!\w)(?!\w)")
_POSTSCRIPTS = {"P.S.": re.compile(r"p\.\s?s\."), "P.P.S": re.compile(r"p\.\s?p\.\s?s")}
_PUNCTUATION = re.compile(r"[^\w\s]")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s")
_NO_END = re.compile(r"\w\.\w.|.[A-Z][a-z]\.", re.DOTALL)


def compared(number: int, relation: str, bound: int) -> bool:
    """Return whether a number is "at least" a bound, or "less than" it.

    >>> compared(3, "at least", 3), compared(3, "less than", 3)
    (True, False)
    """
    return number < bound if relation == "less than" else number >= bound


def folded(text: str) -> str:
    """Return the text in lower case, with one form of the Greek small sigma."""
    return text.lower().replace("ς", "σ")


def between(response: str, divider: str) -> list[str]:
    """Return the stripped parts between dividers; the first and the last part are dropped if empty."""
    parts = [part.strip() for part in response.split(divider)]
    return parts[0 if parts[0] else 1 : len(parts) if parts[-1] else len(parts) - 1]


def is_two(parts: Sequence[str]) -> bool:
    """Return whether there are exactly two parts and neither is empty."""
    return len(parts) == 2 and all(parts)


def _apart(text: str) -> str:
    """Return the text with a mark around each word and around each character outside words.

    A substring search for a marked word then finds only whole words.
    """
    plain = text.replace("\0", "\2").replace("\1", "\2")  # \0 and \1 are the marks
    return _BOUNDARY.sub("\0", _NO_WORD.sub("\1", plain))


def _has_all(text: str, keywords: Sequence[str]) -> bool:
    return all(word in text for word in keywords)


def _times(response: str, keyword: str) -> int:
    return folded(response).count(folded(keyword.strip()))


def _no_forbidden_word(text: str, forbidden_words: Sequence[str]) -> bool:
    apart = _apart(folded(text))
    return not any(_apart(folded(word.strip())) in apart for word in forbidden_words)


def _no_forbidden_part(text: str, forbidden_words: Sequence[str]) -> bool:
    lowered = text.lower()
    return not any(word.lower() in lowered for word in forbidden_words)


def _nth_paragraph_first_word(text: str, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    paragraphs = [part.strip() for part in text.split("\n\n")]
    number = sum(map(bool, paragraphs))
    if number != num_paragraphs or nth_paragraph > number or not paragraphs[nth_paragraph - 1]:
        return False
    word = paragraphs[nth_paragraph - 1].split(maxsplit=1)[0].lstrip("'").lstrip('"')
    return re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower() == first_word.lower()


def _postscript(text: str, postscript_marker: str) -> bool:
    marker = postscript_marker.strip()
    pattern = _POSTSCRIPTS.get(marker)
    return pattern.search(text.lower()) is not None if pattern else marker.lower() in text.lower()


def bullets(text: str) -> int:
    """Return the number of lines that begin with ``-``, or with ``*`` but not ``**``.

    A ``*`` alone on its line counts together with the next line, as in the published regular expressions.
    """
    return sum(1 for bullet in (_STAR, _DASH) for _ in bullet.finditer(text))


def is_json(text: str) -> bool:
    """Return whether a text is valid JSON by RFC 8259, which excludes NaN and Infinity."""
    try:
        json.loads(text, parse_int=str, parse_constant=_refuse)  # a number may have any length
    except (ValueError, RecursionError):  # RecursionError: JSON nested a thousand levels deep
        return False
    return True


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def is_fenced_json(response: str) -> bool:
    """Return whether a text is valid JSON once the code fence around it is removed."""
    text = response.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    return is_json(text.removesuffix("```").strip())


def _has_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end - 2 and bool(line[start:end].lstrip("<").rstrip(">").strip())


IFEVAL: Instructions = {
    "keywords:existence": of(lambda text, keywords: _has_all(folded(text), list(map(folded, keywords)))),
    "keywords:frequency": of(
        lambda text, keyword, frequency, relation: compared(_times(text, keyword), relation, frequency)
    ),
    "keywords:forbidden_words": of(_no_forbidden_word),
    "keywords:letter_frequency": of(
        lambda text, letter, let_frequency, let_relation: compared(
            text.lower().count(letter.lower()), let_relation, let_frequency
        )
    ),
    "language:response_language": of(lambda text, language: language_of(text) == language),
    "length_constraints:number_sentences": of(
        lambda text, num_sentences, relation: compared(len(sentences(text)), relation, num_sentences)
    ),
    "length_constraints:number_paragraphs": of(
        lambda text, num_paragraphs: all(parts := between(text, "***")) and len(parts) == num_paragraphs
    ),
    "length_constraints:number_words": of(
        lambda text, num_words, relation: compared(count_words(text), relation, num_words)
    ),
    "length_constraints:nth_paragraph_first_word": of(_nth_paragraph_first_word, num_paragraphs=read.ordinal),
    "detectable_content:number_placeholders": of(
        lambda text, num_placeholders: enclosed(text, "[", "]") >= num_placeholders
    ),
    "detectable_content:postscript": of(_postscript),
    "detectable_format:number_bullet_lists": of(lambda text, num_bullets: bullets(text) == num_bullets),
    "detectable_format:constrained_response": of(lambda text: any(one in text for one in _OPTIONS)),
    "detectable_format:number_highlighted_sections": of(
        lambda text, num_highlights: (
            sum(bool(m[1].strip()) for mark in (_ITALIC, _BOLD) for m in mark.finditer(text))
            >= num_highlights
        )
    ),
    "detectable_format:multiple_sections": of(
        lambda text, section_spliter, num_sections: (
            len(re.findall(rf"{re.escape(section_spliter.strip())}\s?\d+", text)) >= num_sections
        )
    ),
    "detectable_format:json_format": of(is_fenced_json),
    "detectable_format:title": of(lambda text: any(map(_has_title, text.split("\n")))),
    "combination:two_responses": of(
        lambda text: is_two(parts := between(text, "******")) and parts[0] != parts[1]
    ),
    "combination:repeat_prompt": of(
        lambda text, prompt_to_repeat: text.strip().lower().startswith(prompt_to_repeat.strip().lower())
    ),
    "startend:end_checker": of(
        lambda text, end_phrase: text.strip().strip('"').lower().endswith(end_phrase.strip().lower())
    ),
    "change_case:capital_word_frequency": of(
        lambda text, capital_frequency, capital_relation: compared(
            capital_words(text), capital_relation, capital_frequency
        )
    ),
    "change_case:english_capital": of(lambda text: text.isupper() and language_of(text) == "en"),
    "change_case:english_lowercase": of(lambda text: text.islower() and language_of(text) == "en"),
    "punctuation:no_comma": of(lambda text: "," not in text),
    "startend:quotation": of(lambda text: len(bare := text.strip()) > 1 and bare[0] == bare[-1] == '"'),
}


def capital_words(text: str) -> int:
    """Return the number of words that are all in capitals, including single letters.

    A word is a sequence of letters, digits and underscores, and may have hyphens, periods and slashes inside.
    "DON'T" is two words, as for nltk's word_tokenize, which IFEval uses and which has more rules.

    >>> capital_words("I saw NASA's X-15 and the U.S. team, DON'T you?")
    6
    """
    return sum(match.group().isupper() for match in _TOKEN.finditer(text))


def _repeat_phrase(text: str, phrase: str, small_n: int) -> bool:
    """Return whether the text has exactly ``small_n`` copies of the phrase with one word changed in each.

    A copy runs from the phrase's first word to its last word.
    """
    wanted = phrase.split()
    stretches = [stretch.split() for line in text.split("\n") for stretch in _stretches(line, wanted)]
    return len(stretches) == small_n and all(
        len(stretch) == len(wanted) and sum(one != two for one, two in zip(stretch, wanted, strict=True)) == 1
        for stretch in stretches
    )


def _stretches(line: str, wanted: list[str]) -> list[str]:
    """Return the spans from a phrase's first word to the nearest last word, without overlaps."""
    found: list[str] = []
    first, last, at = f"{wanted[0]} ", f" {wanted[-1]}", 0
    while (start := line.find(first, at)) >= 0 and (end := line.find(last, start + len(first))) >= 0:
        at = end + len(last)
        found.append(line[start:at])
    return found


def _is_copy(text: str, prompt_to_repeat: str) -> bool:
    return text.strip().lower() == prompt_to_repeat.strip().lower()


def _pairs_wrapped(text: str) -> bool:
    spoken = text.split()
    pairs = zip(spoken[::2], spoken[1::2], strict=False)
    return all(one.startswith("<<") and two.endswith(">>") for one, two in pairs)


def _ends_with_word(text: str, last_word: str) -> bool:
    return _PUNCTUATION.sub("", text.split()[-1]).lower() == last_word.lower()


OPEN_INSTRUCT: Instructions = {
    "copy:repeat_phrase": of(_repeat_phrase),
    "copy:copy": of(_is_copy),
    "copy:copying_simple": of(_is_copy),
    "copy:copying_multiple": of(
        lambda text, prompt_to_repeat, N: (
            len(parts := text.split("******")) == N
            and all(_is_copy(part, prompt_to_repeat) for part in parts)
        ),
        N=read.ordinal,
    ),
    "new:copy_span_idx": of(
        lambda text, prompt_to_repeat, n_start, n_end: _is_copy(text, prompt_to_repeat[n_start:n_end])
    ),
    "detectable_format:sentence_hyphens": of(
        lambda text: text.split("-") == sentences(text.replace("-", " "))
    ),
    "detectable_format:square_brackets": of(
        lambda text: all(word.startswith("[") and word.endswith("]") for word in text.split())
    ),
    "detectable_format:bigram_wrapping": of(_pairs_wrapped),
    "keywords:no_adjacent_consecutive": of(
        lambda text: all(ord(two[0]) - ord(one[0]) != 1 for one, two in pairwise(text.lower().split()))
    ),
    "keywords:word_once": of(lambda text, keyword: _times(text, keyword) == 1),
    "keywords:word_count_different_numbers": IFEVAL["keywords:frequency"],
    "keywords:exclude_word_harder": of(lambda text, keyword: f" {keyword.strip()} " not in text),
    "keywords:palindrome": of(lambda text: any(word == word[::-1] for word in text.split())),
    "keywords:keyword_specific_position": of(keyword_at, keyword=read.first_phrase),
    "keywords:start_end": of(
        lambda text: (
            len(spoken := words(text.lower())) > 1
            and spoken[0] == spoken[-1]
            and text.strip().lower().endswith(spoken[-1])
        )
    ),
    "paragraphs:paragraphs": of(lambda text: is_two(between(text, "***"))),
    "paragraphs:paragraphs2": of(lambda text: is_two(between(text, "\n\n"))),
    "first_word:first_word_sent": of(
        lambda text, first_word: all(
            sentence.split()[0].lower() == first_word.lower() for sentence in sentences(text)
        ),
        first_word=read.first_phrase,
    ),
    "first_word:first_word_answer": of(
        lambda text, first_word: text.split()[0].lower() == first_word.lower(), first_word=read.first_phrase
    ),
    "last_word:last_word_sent": of(
        lambda text, last_word: all(_ends_with_word(sentence, last_word) for sentence in sentences(text))
    ),
    "last_word:last_word_answer": of(_ends_with_word),
    "punctuation:punctuation_dot": of(lambda text: "." not in text),
    "punctuation:punctuation_exclamation": of(lambda text: "!" not in text),
    "letters:letter_counting": of(
        lambda text, N, relation: compared(len(re.findall("[a-zA-Z]", text)), relation, N)
    ),
    "letters:letter_counting2": IFEVAL["keywords:letter_frequency"],
    "count:lowercase_counting": of(lambda text, N: len(re.findall(r"\b[a-z]+\b", text)) <= N),
    "count:counting_composition": of(  # three paragraphs between dividers
        lambda text, n_sent, n_words: (
            list(map(len, parts := [sentences(part) for part in between(text, "***")])) == [n_sent] * 3
            and {len(words(sentence)) for part in parts for sentence in part} == {n_words}
        )
    ),
    "count:count_unique": of(lambda text: len(set(spoken := words(text))) == len(spoken)),
    "count:count_increment_word": of(
        lambda text, keyword1, keyword2: _times(text, keyword1) == 1 and _times(text, keyword2) == 2
    ),
}


def quantified(number: int, how: str, bound: int, tolerance: int = 0) -> bool:
    """Return whether a number is "at least", "at most" or "around" a bound.

    "around" means within a tolerance, by default a tenth of the bound and at least 1.

    >>> [quantified(9, how, 10) for how in ("at least", "at most", "around")]
    [False, True, True]
    """
    if how == "around":
        return abs(number - bound) <= (tolerance or max(round(bound * 0.1), 1))
    return number >= bound if how == "at least" else number <= bound


def _sentences_by_blanks(text: str) -> int:
    """Return one more than the number of blanks after ".", "?" or "!", except after "Dr." or "e.g."."""
    ends = (end.start() for end in _SENTENCE_END.finditer(text))
    return 1 + sum(not _NO_END.fullmatch(text[max(0, end - 4) : end].rjust(4)) for end in ends)


def _two_by_one_divider(text: str) -> bool:
    one, *others = (part.strip() for part in text.split("******"))
    return len(others) == 1 and one != others[0]


RLVR_IFEVAL: Instructions = {
    "verify_keywords": of(
        lambda text, keyword_list: _has_all(text.lower(), [word.lower() for word in keyword_list])
    ),
    "verify_keyword_frequency": of(
        lambda text, word, N: re.findall(r"\b\w+\b", text.lower()).count(word.lower()) == N
    ),
    "validate_forbidden_words": of(_no_forbidden_part),
    "verify_letter_frequency": of(lambda text, letter, N: text.count(letter) == N),
    "validate_response_language": IFEVAL["language:response_language"],
    "verify_paragraph_count": of(
        lambda text, N: (
            len(parts := "\n".join(map(str.strip, text.splitlines())).strip().split("* * *")) == N
            and all(map(str.strip, parts))
        )
    ),
    "validate_word_constraint": of(lambda text, N, quantifier: quantified(len(text.split()), quantifier, N)),
    "verify_sentence_constraint": of(
        lambda text, N, quantifier: quantified(_sentences_by_blanks(text), quantifier, N, tolerance=1)
    ),
    "validate_paragraphs": of(
        lambda text, N, first_word, i: (
            len(parts := text.split("\n\n")) == N and parts[i - 1].strip().startswith(first_word)
        ),
        N=read.ordinal,
    ),
    "verify_postscript": of(
        lambda text, postscript_marker: bool(text.partition(postscript_marker)[2].strip())
    ),
    "validate_placeholders": of(lambda text, N: enclosed(text, "[", "]") >= N),
    "verify_bullet_points": of(
        lambda text, N: sum(line.strip().startswith(("*", "-")) for line in text.split("\n")) == N
    ),
    "validate_title": of(lambda text: enclosed(text, "<<", ">>") > 0),
    "validate_choice": of(lambda text, options: any(option in text for option in options)),
    "validate_highlighted_sections": of(
        lambda text, N: sum(line.count("*") // 2 for line in text.split("\n")) >= N
    ),
    "validate_sections": of(
        lambda text, N, section_splitter: len(parts := text.split(section_splitter)) - (parts[0] == "") == N
    ),
    "validate_json_format": of(is_json),
    "validate_repeat_prompt": of(lambda text, original_prompt: text.startswith(original_prompt)),
    "validate_two_responses": of(_two_by_one_divider),
    "validate_uppercase": of(lambda text: text == text.upper()),
    "validate_lowercase": of(lambda text: text == text.lower()),
    "validate_frequency_capital_words": of(
        lambda text, N, quantifier: quantified(len(re.findall(r"\b[A-Z]+\b", text)), quantifier, N)
    ),
    "validate_end": of(lambda text, end_phrase: text.endswith(end_phrase)),
    "validate_quotation": of(lambda text: text.startswith('"') and text.endswith('"')),
    "validate_no_commas": IFEVAL["punctuation:no_comma"],
}

DETECTED = frozenset(
    (
        "language:response_language",
        "change_case:english_capital",
        "change_case:english_lowercase",
        "validate_response_language",
    )
)
"""Instructions whose check detects the language."""
