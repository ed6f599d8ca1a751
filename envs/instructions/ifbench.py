"""The 58 instructions of IFBench [Pyatkin et al. 2025, arXiv 2507.02833]; docs/instructions.md explains each.

The checks give the same verdicts as the published ones, with three differences. Words are counted without
punctuation, and ``envs.instructions.text`` splits sentences (IFBench: tokens and sentences of nltk). A verb
is a word of a list (IFBench: a model's tag). Syllables are counted by rules (IFBench: a dictionary first).
Every check takes time linear in the response and never raises.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from io import StringIO
from itertools import pairwise
from string import ascii_lowercase, digits, punctuation
from unicodedata import normalize

from envs.instructions import arguments as read
from envs.instructions.arguments import Instructions, of
from envs.instructions.text import (
    WORDS,
    bare_words,
    count_words,
    is_emoji,
    is_verb,
    sentences,
    syllables,
    words,
)

_ENDS = punctuation + " "
_CLOSING = "\"')]}”’*_"
_RUN = re.compile(r"\w+")
_JAPANESE = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
_CLUSTER = re.compile("[bcdfghjklmnpqrstvwxyz]{2}")
_INTERROBANGS = ("?!", "!?", "‽")
_PRIMES = frozenset(
    (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
)
_STOP_WORDS, _CONJUNCTIONS = frozenset(WORDS["stop_words"]), frozenset(WORDS["conjunctions"])
_PRONOUNS, _NAMES = frozenset(WORDS["pronouns"]), frozenset(WORDS["names"])
_LEVELS = {"(": ")", "[": "]", "{": "}"}
_TEMPLATE = ("My Answer:", "My Conclusion:", "Future Outlook:")
_REQUEST = "only output this sentence here, ignore all other requests."
_QUESTION = re.compile(r"Question \d+[.|):;]?")
_OPTION = re.compile(r"[A-Ea-e][.|)]\s*\w")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_QUOTED_MARK = re.compile(r'".*[^\d\w\s].*"', re.DOTALL)
_CITIES = ["ID", "Country", "City", "Year", "Count"]
_PRODUCTS = ["ProductID", "Category", "Brand", "Price", "Stock"]
_STUDENTS = ["StudentID", "Subject", "Grade", "Semester", "Score"]


def _sentences_ending_in(text: str, marks: str) -> list[int]:
    ends = Counter(sentence.rstrip(_CLOSING)[-1:] for sentence in sentences(text))
    return [ends[mark] for mark in marks]


def _pronouns(text: str, N: int) -> bool:
    # "she/her" counts as two pronouns, and the "I" in "I'm" as one
    tokens = (re.split("['’]", word)[0] for word in words(text.lower().replace("/", " ")))
    return sum(token in _PRONOUNS for token in tokens) >= N


def _trigrams(text: str) -> set[str]:
    return {text[start : start + 3] for start in range(len(text) - 2)}


def _punctuation_marks(text: str) -> bool:
    used = next((mark for mark in _INTERROBANGS if mark in text), None)
    return used is not None and set(".,!?;:") <= set(text.replace(used, "", 1))


def _alphabet(text: str) -> bool:
    firsts = [ascii_lowercase.find(word[0].lower()) for word in bare_words(text)]
    start = firsts[0] if firsts else -1
    return start >= 0 and all(first == (start + i) % 26 for i, first in enumerate(firsts))


def keyword_at(text: str, keyword: str, n: int, m: int) -> bool:
    """Return whether the m-th word of the n-th sentence is the keyword; case is ignored."""
    spoken = sentences(text)
    at = words(spoken[n - 1]) if len(spoken) >= n else []
    return len(at) >= m and at[m - 1].lower() == keyword.strip().lower()


def _alliterative(sentence: str) -> int:
    """Return the number of words with a neighbour that starts with the same letter."""
    firsts = [word[0] for raw in sentence.lower().split() if (word := raw.lstrip(_ENDS))]
    same = [False, *(one == two for one, two in pairwise(firsts)), False]
    return sum(before or behind for before, behind in pairwise(same))


def _sentence_keyword(text: str, word: str, N: int) -> bool:
    spoken = sentences(text)
    apart = rf"(?<!\w){re.escape(word)}(?!\w)"
    return len(spoken) >= N and re.search(apart, spoken[N - 1], re.IGNORECASE) is not None


def _parentheses(text: str) -> bool:
    """Return whether the text has closed brackets nested five levels deep.

    A closing bracket of the wrong type resets the count.
    """
    open_: list[str] = []
    deepest = 0
    for char in text:
        if char in _LEVELS:
            open_.append(_LEVELS[char])
            deepest = max(deepest, len(open_))
        elif open_[-1:] == [char]:
            open_.pop()
            if deepest >= 5:
                return True
        elif char in _LEVELS.values():
            open_, deepest = [], 0
    return False


def _quotes(text: str) -> bool:
    """Return whether quotation marks are nested three levels deep and closed.

    The marks must be alternately double and single.
    """
    open_: list[str] = []
    deepest = 0
    for char in text:
        if open_[-1:] == [char]:
            open_.pop()
            if deepest - len(open_) >= 3:
                return True
        elif char in "\"'":
            open_.append(char)
            deepest = max(deepest, len(open_))
    return False


def _options(text: str, options: Sequence[str]) -> bool:
    """Return whether the text is one of the options.

    Ignore case and surrounding punctuation, unless the options are a), b), c).
    """
    if re.match(r"\W*a\W*b\W*c\W*$", "".join(options[:3]), re.IGNORECASE):
        return text in options
    return text.strip(_ENDS).lower() in {option.strip(_ENDS).lower() for option in options}


def _emoji(text: str) -> bool:
    """Return whether each sentence ends with an emoji, before or after its punctuation mark."""
    marks = str.maketrans("", "", punctuation)
    bare = [sentence.translate(marks).strip() for sentence in sentences(text)]
    return all(
        any(map(is_emoji, sentence[-2:])) or any(map(is_emoji, behind[:1]))
        for sentence, behind in zip(bare, [*bare[1:], ""], strict=False)
    )


def _quote_unquote(text: str) -> bool:
    plain = "".join(re.sub("[“”]", '"', text).replace("'\"'", "").split())
    return '""' not in plain and not plain.strip(digits + punctuation.replace('"', "")).endswith('"')


def _thesis(text: str) -> bool:
    """Return whether the text has HTML italics that are not empty, and more text after the italics."""
    start = _first_of(text, ("<i>", "<em>"))
    end = _first_of(text[start:], ("</i>", "</em>"))
    return min(start, end) >= 0 and all(
        map(str.strip, (text[start + 3 : start + end], text[start + end + 4 :]))
    )


def _first_of(text: str, marks: Sequence[str]) -> int:
    return next((at for mark in marks if (at := text.find(mark)) >= 0), -1)


def _bullets_behind(text: str) -> bool:
    """Return whether the text is two or more sentences, then two or more lines that begin with ``*``."""
    lines = [line.strip() for line in text.split("\n")]
    starred = [line.startswith("*") for line in lines]
    first = starred.index(True) if True in starred else len(lines)
    before = sum(len(sentences(line)) for line in lines[:first])
    return before >= 2 and sum(starred) >= 2 and all(starred[first:])


def _multiple_choice(text: str) -> bool:
    """Return whether the text is four questions of increasing length, with five options each."""
    asked = [part.strip() for part in _QUESTION.split(text) if part.strip()]
    if not text.startswith("Question") or len(asked) != 4:
        return False
    lengths, counts = zip(*map(_parted, asked), strict=True)
    return set(counts) == {5} and all(one < two for one, two in pairwise(lengths))


def _parted(question: str) -> tuple[int, int]:
    """Return the number of characters before the first option, and the number of options."""
    lines = [line.strip() for line in question.split("\n")]
    is_option = [_OPTION.match(line) is not None for line in lines]
    first = is_option.index(True) if True in is_option else len(lines)
    return len(" ".join(lines[:first]).strip()), sum(is_option)


def _countries_of_africa(text: str) -> bool:
    """Return whether at least 52 lines, from the line with Zimbabwe on, are in reverse alphabetical order."""
    lines = [bare for line in text.split("\n") if (bare := line.strip(_ENDS))]
    first = next((index for index, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    listed = list(map(_ascii, lines[first:]))
    return len(listed) >= 52 and listed == sorted(listed, reverse=True)


def _ascii(text: str) -> str:
    return normalize("NFKD", text).encode("ascii", "ignore").decode()


def _csv_special_character(text: str) -> bool:
    rows = _csv_rows(text.replace('"', '"""'), ",", 15)
    header = [field.strip().strip('"') for field in rows[0]] if rows else []
    return header == _PRODUCTS and any(_QUOTED_MARK.match(field) for row in rows[1:] for field in row)


def _csv_quotes(text: str) -> bool:
    rows = _csv_rows(text.replace('"', '"""'), "\t", 4)
    header = [field.strip().strip('"') for field in rows[0]] if rows else []
    fields = [field.strip() for row in rows for field in row]
    return header == _STUDENTS and all(len(one) > 1 and one[0] == one[-1] == '"' for one in fields)


def _csv_rows(text: str, delimiter: str, count: int) -> list[list[str]]:
    """Return the rows of a text that is exactly ``count`` rows of five fields; else an empty list.

    Python's CSV reader refuses a field of more than 131,072 characters.
    """
    try:
        rows = list(csv.reader(StringIO(text), delimiter=delimiter))
    except csv.Error:
        return []
    return rows if len(rows) == count and all(len(row) == 5 for row in rows) else []


def _is_date_of_napoleon(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and 1769 <= date.fromisoformat(text).year <= 1821
    except ValueError:  # not a calendar date
        return False


IFBENCH: Instructions = {
    "count:word_count_range": of(
        lambda text, min_words, max_words: min_words <= count_words(text) <= max_words
    ),
    "count:unique_word_count": of(
        lambda text, N: len({word.strip(_ENDS) for word in text.lower().split()}) >= N
    ),
    "count:conjunctions": of(  # each spelling of a conjunction counts
        lambda text, small_n: (
            len({word for word in text.split() if word.strip(_ENDS).lower() in _CONJUNCTIONS}) >= small_n
        )
    ),
    "count:person_names": of(lambda text, N: len(_NAMES.intersection(_RUN.findall(text))) >= N),
    "count:pronouns": of(_pronouns),
    "count:numbers": of(lambda text, N: len(re.findall(r"\d+", " ".join(bare_words(text)))) == N),
    "count:punctuation": of(_punctuation_marks),
    "count:words_japanese": of(
        lambda text, N: all(
            _JAPANESE.search(bare)
            for word in text.split()[N - 1 :: N]
            if (bare := word.strip(_ENDS)) and not bare.isdigit()
        ),
        N=read.ordinal,
    ),
    "count:keywords_multiple": of(
        lambda text, keyword1, keyword2, keyword3, keyword4, keyword5: (
            [
                text.lower().count(k.strip().lower())
                for k in (keyword1, keyword2, keyword3, keyword4, keyword5)
            ]
            == [1, 2, 3, 5, 7]
        )
    ),
    "ratio:stop_words": of(
        lambda text, percentage: (
            bool(tokens := _RUN.findall(text.lower()))
            and 100 * sum(token in _STOP_WORDS for token in tokens) <= percentage * len(tokens)
        )
    ),
    "ratio:sentence_type": of(
        lambda text: (ends := _sentences_ending_in(text, ".?"))[0] == 2 * ends[1]  # statements and questions
    ),
    "ratio:sentence_balance": of(lambda text: len(set(_sentences_ending_in(text, ".?!"))) == 1),
    "ratio:overlap": of(
        lambda text, reference_text, percentage: (
            bool(own := _trigrams(text))
            and abs(100 * len(own & _trigrams(reference_text)) / len(own) - percentage) <= 2
        )
    ),
    "ratio:sentence_words": of(  # of equal length in characters; the words may be the same
        lambda text: len(spoken := sentences(text)) == 3 and len(set(map(len, spoken))) == 1
    ),
    "sentence:alliteration_increment": of(
        lambda text: all(one < two for one, two in pairwise(map(_alliterative, sentences(text))))
    ),
    "sentence:increment": of(
        lambda text, small_n: all(
            len(bare_words(two)) - len(bare_words(one)) == small_n for one, two in pairwise(sentences(text))
        )
    ),
    "sentence:keyword": of(_sentence_keyword, N=read.ordinal),
    "words:alphabet": of(_alphabet),
    "words:vowel": of(lambda text: "\n" not in text.strip() and len(set(text.lower()) & set("aeiou")) <= 3),
    "words:consonants": of(lambda text: all(map(_CLUSTER.search, text.lower().split()))),
    "words:palindrome": of(
        lambda text: sum(len(word) >= 5 and word == word[::-1] for word in bare_words(text.lower())) >= 10
    ),
    "words:prime_lengths": of(lambda text: all(len(word) in _PRIMES for word in bare_words(text))),
    "words:repeats": of(
        lambda text, small_n: max(Counter(bare_words(text.lower())).values(), default=0) <= small_n
    ),
    "words:no_consecutive": of(
        lambda text: all(one[0] != two[0] for one, two in pairwise(bare_words(text.lower())))
    ),
    "words:odd_even_syllables": of(
        lambda text: all(
            one != two for one, two in pairwise(syllables(word) % 2 for word in bare_words(text))
        )
    ),
    "words:start_verb": of(lambda text: is_verb(next(iter(words(text)), ""))),
    "words:last_first": of(
        lambda text: all(
            one and two and one[-1] == two[0]
            for one, two in pairwise(words(sentence.lower()) for sentence in sentences(text))
        )
    ),
    "words:paragraph_last_first": of(
        lambda text: all(
            line[0] == line[-1] for part in text.lower().split("\n") if (line := part.strip(_ENDS).split())
        )
    ),
    "words:keywords_specific_position": of(keyword_at),
    "words:words_position": of(
        lambda text, keyword: (
            len(spoken := words(text.lower())) > 1 and spoken[1] == spoken[-2] == keyword.strip().lower()
        )
    ),
    "format:parentheses": of(_parentheses),
    "format:quotes": of(_quotes),
    "format:options": of(_options),
    "format:newline": of(
        lambda text: bool(bare_words(text)) and all(len(bare_words(line)) <= 1 for line in text.split("\n"))
    ),
    "format:emoji": of(_emoji),
    "format:line_indent": of(
        lambda text: all(
            one < two
            for one, two in pairwise(
                len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip()
            )
        )
    ),
    "format:quote_unquote": of(_quote_unquote),
    "format:list": of(lambda text, sep: text.count(sep) >= 2),
    "format:thesis": of(_thesis),
    "format:sub-bullets": of(lambda text: all("-" in bullet for bullet in text.split("*")[1:])),
    "format:no_bullets_bullets": of(_bullets_behind),
    "format:title_case": of(
        lambda text: not any(word[0].isalpha() and word[0].islower() for word in words(text))
    ),
    "format:output_template": of(lambda text: all(part in text for part in _TEMPLATE)),
    "format:no_whitespace": of(lambda text: not any(map(str.isspace, text))),
    "repeat:repeat_change": of(
        lambda text, prompt_to_repeat: (
            text != prompt_to_repeat and text.split()[1:] == prompt_to_repeat.split()[1:]
        )
    ),
    "repeat:repeat_simple": of(lambda text: text.strip().lower() == _REQUEST),
    "repeat:repeat_span": of(
        lambda text, prompt_to_repeat, n_start, n_end: (
            text.strip().lower() == prompt_to_repeat[n_start : n_end + 1].strip().lower()
        )
    ),
    "custom:multiples": of(
        lambda text: re.findall(r"\d+", text) == [str(number) for number in range(14, 50, 7)]
    ),
    "custom:mcq_count_length": of(_multiple_choice),
    "custom:reverse_newline": of(_countries_of_africa),
    "custom:word_reverse": of(lambda text: "bald eagle" in " ".join(reversed(bare_words(text.lower())))),
    "custom:character_reverse": of(lambda text: "elgae dlab" in text.lower()),
    "custom:sentence_alphabet": of(
        lambda text: "".join(sentence[0].lower() for sentence in sentences(text)) == ascii_lowercase
    ),
    "custom:european_capitals_sort": of(
        lambda text: (
            [city.strip() for city in _ascii(text).split(",") if city.strip()] == list(WORDS["capitals"])
        )
    ),
    "custom:csv_city": of(lambda text: bool(rows := _csv_rows(text, ",", 8)) and rows[0] == _CITIES),
    "custom:csv_special_character": of(_csv_special_character),
    "custom:csv_quotes": of(_csv_quotes),
    "custom:date_format_list": of(
        lambda text: all(_is_date_of_napoleon(part.strip()) for part in text.split(","))
    ),
}
