"""The 29 instructions that Open-Instruct trains on beside IFEval's [Pyatkin et al. 2025, arXiv 2507.02833].

allenai/IF_multi_constraints_upto5 combines them with IFEval's 25, up to five in a prompt. What the published
checkers decide, with the differences of ``ifbench``, and keywords stand for themselves and are not regular
expressions. Every check is linear in the response and raises on none.
"""

from __future__ import annotations

import re
from itertools import pairwise

from envs.instructions.arguments import Types, count, first_phrase, keyword, letter, ordinal, phrase, relation
from envs.instructions.checks import between, compared, folded, letter_frequency
from envs.instructions.ifbench import keywords_specific_position
from envs.instructions.text import sentences, words

_LOWERCASE = re.compile(r"\b[a-z]+\b")
_LETTER = re.compile("[a-zA-Z]")
_NO_WORD = re.compile(r"[^\w\s]")


def repeat_phrase(response: str, *, phrase: str, small_n: int) -> bool:
    """Stretches from the phrase's first to its last word: exactly so many, each with one other word."""
    wanted = phrase.split()
    stretches = [stretch.split() for line in response.split("\n") for stretch in _stretches(line, wanted)]
    return len(stretches) == small_n and all(_differing(stretch, wanted) == 1 for stretch in stretches)


def _stretches(line: str, wanted: list[str]) -> list[str]:
    """Return what stands from a phrase's first to the nearest last word, none overlapping."""
    found: list[str] = []
    first, last, at = f"{wanted[0]} ", f" {wanted[-1]}", 0
    while (start := line.find(first, at)) >= 0 and (end := line.find(last, start + len(first))) >= 0:
        at = end + len(last)
        found.append(line[start:at])
    return found


def _differing(stretch: list[str], wanted: list[str]) -> int:
    if len(stretch) != len(wanted):
        return -1
    return sum(one != two for one, two in zip(stretch, wanted, strict=True))


def copy(response: str, *, prompt_to_repeat: str) -> bool:
    """It is the request and nothing else; case is ignored."""
    return response.strip().lower() == prompt_to_repeat.strip().lower()


def copy_span(response: str, *, prompt_to_repeat: str, n_start: int, n_end: int) -> bool:
    """It is the request's characters from one index to before the other; case is ignored."""
    return copy(response, prompt_to_repeat=prompt_to_repeat[n_start:n_end])


def copying_multiple(response: str, *, prompt_to_repeat: str, N: int) -> bool:
    """It is the request so many times, ``******`` between; case is ignored."""
    parts = response.split("******")
    return len(parts) == N and all(copy(part, prompt_to_repeat=prompt_to_repeat) for part in parts)


def sentence_hyphens(response: str) -> bool:
    """Hyphens without blanks stand between its sentences, and nowhere else."""
    return response.split("-") == sentences(response.replace("-", " "))


def no_adjacent_consecutive(response: str) -> bool:
    """No word starts with the letter that follows that of the word before in the alphabet."""
    firsts = [ord(word.lower()[0]) for word in response.split()]
    return all(two - one != 1 for one, two in pairwise(firsts))


def square_brackets(response: str) -> bool:
    """Each word stands in square brackets."""
    return all(word.startswith("[") and word.endswith("]") for word in response.split())


def bigram_wrapping(response: str) -> bool:
    """Each two words stand in double angular brackets, a last odd one may not."""
    spoken = response.split()
    pairs = zip(spoken[::2], spoken[1::2], strict=False)
    return all(one.startswith("<<") and two.endswith(">>") for one, two in pairs)


def word_times(response: str, *, keyword: str, frequency: int = 1) -> bool:
    """The keyword stands exactly so often, also inside words; case is ignored."""
    return folded(response).count(folded(keyword.strip())) == frequency


def word_count(response: str, *, keyword: str, frequency: int, relation: str) -> bool:
    """The keyword stands so often, also inside words; case is ignored."""
    return compared(folded(response).count(folded(keyword.strip())), relation, frequency)


def count_increment(response: str, *, keyword1: str, keyword2: str) -> bool:
    """The first keyword stands once and the second twice, also inside words; case is ignored."""
    return word_times(response, keyword=keyword1) and word_times(response, keyword=keyword2, frequency=2)


def exclude_word(response: str, *, keyword: str) -> bool:
    """The keyword does not stand between two blanks; case counts."""
    return f" {keyword.strip()} " not in response


def two_paragraphs(response: str) -> bool:
    """It has two paragraphs with a divider ``***`` between."""
    parts = between(response, "***")
    return len(parts) == 2 and all(parts)


def two_paragraphs_by_lines(response: str) -> bool:
    """It has two paragraphs with an empty line between."""
    parts = between(response, "\n\n")
    return len(parts) == 2 and all(parts)


def first_word_sent(response: str, *, first_word: str) -> bool:
    """Each sentence starts with the word, nothing attached to it; case is ignored."""
    return all(sentence.split()[0].lower() == first_word.lower() for sentence in sentences(response))


def first_word_answer(response: str, *, first_word: str) -> bool:
    """It starts with the word, nothing attached to it; case is ignored."""
    return response.split()[0].lower() == first_word.lower()


def last_word_sent(response: str, *, last_word: str) -> bool:
    """Each sentence ends with the word; case and punctuation are ignored."""
    return all(last_word_answer(sentence, last_word=last_word) for sentence in sentences(response))


def last_word_answer(response: str, *, last_word: str) -> bool:
    """It ends with the word; case and punctuation are ignored."""
    return _NO_WORD.sub("", response.split()[-1]).lower() == last_word.lower()


def no_dot(response: str) -> bool:
    """It has no point."""
    return "." not in response


def no_exclamation(response: str) -> bool:
    """It has no exclamation mark."""
    return "!" not in response


def lowercase_counting(response: str, *, N: int) -> bool:
    """It has at most so many words all in small letters of English."""
    return len(_LOWERCASE.findall(response)) <= N


def letter_counting(response: str, *, N: int, relation: str) -> bool:
    """It has so many letters of English."""
    return compared(len(_LETTER.findall(response)), relation, N)


def counting_composition(response: str, *, n_sent: int, n_words: int) -> bool:
    """It has three paragraphs between dividers ``***``, each of so many sentences of so many words."""
    paragraphs = [sentences(part) for part in between(response, "***")]
    lengths = [len(words(sentence)) for paragraph in paragraphs for sentence in paragraph]
    return [len(paragraph) for paragraph in paragraphs] == [n_sent] * 3 and set(lengths) == {n_words}


def count_unique(response: str) -> bool:
    """No word stands in it twice; case counts."""
    spoken = words(response)
    return len(set(spoken)) == len(spoken)


def any_palindrome(response: str) -> bool:
    """A word of it, with what is attached to it, reads the same backwards; one character does."""
    return any(word == word[::-1] for word in response.split())


def start_end(response: str) -> bool:
    """Its first word is also its last, and nothing stands behind that; case is ignored."""
    spoken = words(response.lower())
    return len(spoken) > 1 and spoken[0] == spoken[-1] and response.strip().lower().endswith(spoken[-1])


OPEN_INSTRUCT: Types = {
    "copy:repeat_phrase": (repeat_phrase, {"phrase": keyword, "small_n": count}),
    "copy:copy": (copy, {"prompt_to_repeat": phrase}),
    "copy:copying_simple": (copy, {"prompt_to_repeat": phrase}),
    "copy:copying_multiple": (copying_multiple, {"prompt_to_repeat": phrase, "N": ordinal}),
    "new:copy_span_idx": (copy_span, {"prompt_to_repeat": phrase, "n_start": count, "n_end": count}),
    "detectable_format:sentence_hyphens": (sentence_hyphens, {}),
    "detectable_format:square_brackets": (square_brackets, {}),
    "detectable_format:bigram_wrapping": (bigram_wrapping, {}),
    "keywords:no_adjacent_consecutive": (no_adjacent_consecutive, {}),
    "keywords:word_once": (word_times, {"keyword": keyword}),
    "keywords:word_count_different_numbers": (
        word_count,
        {"keyword": keyword, "frequency": count, "relation": relation},
    ),
    "keywords:exclude_word_harder": (exclude_word, {"keyword": keyword}),
    "keywords:palindrome": (any_palindrome, {}),
    "keywords:keyword_specific_position": (
        keywords_specific_position,
        {"keyword": first_phrase, "n": ordinal, "m": ordinal},
    ),
    "keywords:start_end": (start_end, {}),
    "paragraphs:paragraphs": (two_paragraphs, {}),
    "paragraphs:paragraphs2": (two_paragraphs_by_lines, {}),
    "first_word:first_word_sent": (first_word_sent, {"first_word": first_phrase}),
    "first_word:first_word_answer": (first_word_answer, {"first_word": first_phrase}),
    "last_word:last_word_sent": (last_word_sent, {"last_word": first_phrase}),
    "last_word:last_word_answer": (last_word_answer, {"last_word": first_phrase}),
    "punctuation:punctuation_dot": (no_dot, {}),
    "punctuation:punctuation_exclamation": (no_exclamation, {}),
    "letters:letter_counting": (letter_counting, {"N": count, "relation": relation}),
    "letters:letter_counting2": (
        letter_frequency,
        {"letter": letter, "let_frequency": count, "let_relation": relation},
    ),
    "count:lowercase_counting": (lowercase_counting, {"N": count}),
    "count:counting_composition": (counting_composition, {"n_sent": ordinal, "n_words": ordinal}),
    "count:count_unique": (count_unique, {}),
    "count:count_increment_word": (count_increment, {"keyword1": keyword, "keyword2": keyword}),
}
"""Every argument must be given."""
