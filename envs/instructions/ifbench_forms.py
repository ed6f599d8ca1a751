"""IFBench's instructions on form, repeating and single questions [Pyatkin et al. 2025, arXiv 2507.02833].

As in ``ifbench``: what the published checkers decide, each linear in the response and raising on none.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import date
from io import StringIO
from itertools import pairwise
from string import digits, punctuation
from unicodedata import normalize

from envs.instructions.arguments import Types, count, keyword, listed_options, phrase
from envs.instructions.lexicon import CAPITALS, is_emoji
from envs.instructions.text import bare_words, sentences, words

_ENDS = punctuation + " "
_LEVELS = {"(": ")", "[": "]", "{": "}"}
_DEPTH, _QUOTES = 5, 3
_OPENINGS, _CLOSINGS = ("<i>", "<em>"), ("</i>", "</em>")
_TEMPLATE = ("My Answer:", "My Conclusion:", "Future Outlook:")
_REQUEST = "only output this sentence here, ignore all other requests."
_QUESTION = re.compile(r"Question \d+[.|):;]?")
_OPTION = re.compile(r"[A-Ea-e][.|)]\s*\w")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_QUOTED_MARK = re.compile(r'".*[^\d\w\s].*"', re.DOTALL)
_MULTIPLES = [str(number) for number in range(14, 50, 7)]
_NAPOLEON = (1769, 1821)
_AFRICA = 52
_CITIES = ("ID", "Country", "City", "Year", "Count")
_PRODUCTS = ("ProductID", "Category", "Brand", "Price", "Stock")
_STUDENTS = ("StudentID", "Subject", "Grade", "Semester", "Score")


def parentheses(response: str) -> bool:
    """A group of brackets, rightly closed, is nested five levels deep; a wrong mark begins anew."""
    open_: list[str] = []
    deepest = 0
    for char in response:
        if char in _LEVELS:
            open_.append(_LEVELS[char])
            deepest = max(deepest, len(open_))
        elif char in _LEVELS.values():
            if open_ and open_[-1] == char:
                open_.pop()
                if deepest >= _DEPTH:
                    return True
            else:
                open_, deepest = [], 0
    return False


def quotes(response: str) -> bool:
    """Quotation marks, double and single in turn, are nested three levels deep and closed."""
    open_: list[str] = []
    deepest = 0
    for char in response:
        if open_ and char == open_[-1]:
            open_.pop()
            if deepest - len(open_) >= _QUOTES:
                return True
        elif char in "\"'":
            open_.append(char)
            deepest = max(deepest, len(open_))
    return False


def options(response: str, *, options: Sequence[str]) -> bool:
    """It is one of the options; case and punctuation around it count only where they are a), b), c)."""
    if re.match(r"\W*a\W*b\W*c\W*$", "".join(options[:3]), re.IGNORECASE):
        return response in options
    return response.strip(_ENDS).lower() in {option.strip(_ENDS).lower() for option in options}


def newline(response: str) -> bool:
    """Each word stands on a line of its own."""
    lines = response.translate(str.maketrans("", "", punctuation)).split("\n")
    return all(len(line.split()) <= 1 for line in lines) and bool(bare_words(response))


def emoji(response: str) -> bool:
    """Each sentence ends with an emoji, before or behind its mark."""
    bare = [_without_marks(sentence) for sentence in sentences(response)]
    following = [*bare[1:], ""]
    return all(
        any(map(is_emoji, sentence[-2:])) or any(map(is_emoji, behind[:1]))
        for sentence, behind in zip(bare, following, strict=True)
    )


def _without_marks(text: str) -> str:
    return text.translate(str.maketrans("", "", punctuation)).strip()


def line_indent(response: str) -> bool:
    """Each line is indented by more blanks than the one before; empty lines do not count."""
    indents = [len(line) - len(line.lstrip(" ")) for line in response.split("\n") if line.strip()]
    return all(one < two for one, two in pairwise(indents))


def quote_unquote(response: str) -> bool:
    """No quotation follows another at once, and it does not end with one."""
    plain = re.sub("[“”]", '"', response).replace("'\"'", "")
    plain = "".join(plain.split())
    return '""' not in plain and not plain.strip(digits + punctuation.replace('"', "")).endswith('"')


def list_marker(response: str, *, sep: str) -> bool:
    """The marker stands in it at least twice."""
    return response.count(sep) >= 2


def thesis(response: str) -> bool:
    """It has a stretch in italics by HTML, not empty, and text behind it."""
    start = _first_of(response, _OPENINGS)
    if start < 0:
        return False
    end = _first_of(response[start:], _CLOSINGS)
    if end < 0:
        return False
    inside, behind = response[start + 3 : start + end], response[start + end + 4 :]
    return bool(inside.strip()) and bool(behind.strip())


def _first_of(text: str, marks: Sequence[str]) -> int:
    return next((at for mark in marks if (at := text.find(mark)) >= 0), -1)


def sub_bullets(response: str) -> bool:
    """Behind each ``*``, up to the next, stands a ``-``."""
    return all("-" in bullet for bullet in response.split("*")[1:])


def bullets_behind(response: str) -> bool:
    """Two sentences or more come first, then two lines or more that begin with ``*``, and nothing else."""
    lines = [line.strip() for line in response.split("\n")]
    starred = [line.startswith("*") for line in lines]
    first = starred.index(True) if True in starred else len(lines)
    before = sum(len(sentences(line)) for line in lines[:first])
    return before >= 2 and sum(starred) >= 2 and all(starred[first:])


def title_case(response: str) -> bool:
    """Each word begins with a capital; one all in capitals may."""
    return not any(word[0].isalpha() and word[0].islower() for word in words(response))


def output_template(response: str) -> bool:
    """It has "My Answer:", "My Conclusion:" and "Future Outlook:"."""
    return all(part in response for part in _TEMPLATE)


def no_whitespace(response: str) -> bool:
    """It has no blank, tab or line break."""
    return not any(map(str.isspace, response))


def repeat_change(response: str, *, prompt_to_repeat: str) -> bool:
    """It is the request with another first word."""
    return response != prompt_to_repeat and response.split()[1:] == prompt_to_repeat.split()[1:]


def repeat_simple(response: str) -> bool:
    """It is the sentence that asks to be repeated, and nothing else; case is ignored."""
    return response.strip().lower() == _REQUEST


def repeat_span(response: str, *, prompt_to_repeat: str, n_start: int, n_end: int) -> bool:
    """It is the request's characters from one index to the other, that included; case is ignored."""
    return response.strip().lower() == prompt_to_repeat[n_start : n_end + 1].strip().lower()


def multiples(response: str) -> bool:
    """Its numbers are 14, 21, 28, 35, 42 and 49."""
    return re.findall(r"\d+", response) == _MULTIPLES


def mcq_count_length(response: str) -> bool:
    """It is four questions with five options each, each question longer than the one before."""
    asked = [part.strip() for part in _QUESTION.split(response) if part.strip()]
    if not response.startswith("Question") or len(asked) != 4:
        return False
    parted = [_parted(question) for question in asked]
    return all(count == 5 for _, count in parted) and all(
        one < two for (one, _), (two, _) in pairwise(parted)
    )


def _parted(question: str) -> tuple[int, int]:
    """Return the characters before the first option, and the number of options."""
    lines = [line.strip() for line in question.split("\n")]
    is_option = [_OPTION.match(line) is not None for line in lines]
    first = is_option.index(True) if True in is_option else len(lines)
    return len(" ".join(lines[:first]).strip()), sum(is_option)


def reverse_newline(response: str) -> bool:
    """From the line with Zimbabwe on it has at least 52 lines, in reverse alphabetical order."""
    lines = [bare for line in response.split("\n") if (bare := line.strip(_ENDS))]
    first = next((index for index, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    listed = list(map(_ascii, lines[first:]))
    return len(listed) >= _AFRICA and listed == sorted(listed, reverse=True)


def _ascii(text: str) -> str:
    return normalize("NFKD", text).encode("ascii", "ignore").decode()


def word_reverse(response: str) -> bool:
    """Its words, read backwards, hold "bald eagle"."""
    return "bald eagle" in " ".join(reversed(bare_words(response.lower())))


def character_reverse(response: str) -> bool:
    """It holds "bald eagle", letters backwards; case is ignored."""
    return "elgae dlab" in response.lower()


def sentence_alphabet(response: str) -> bool:
    """It has 26 sentences, which begin with the letters of the alphabet in order."""
    return "".join(sentence[0].lower() for sentence in sentences(response)) == "abcdefghijklmnopqrstuvwxyz"


def european_capitals_sort(response: str) -> bool:
    """It lists the capitals of Europe north of 45 degrees from north to south, between commas."""
    return [city.strip() for city in _ascii(response).split(",") if city.strip()] == CAPITALS


def csv_city(response: str) -> bool:
    """It is CSV: the five columns asked for, and seven rows of five fields."""
    rows = _rows(response, ",")
    return rows is not None and len(rows) == 8 and tuple(rows[0]) == _CITIES and _all_of_five(rows)


def csv_special_character(response: str) -> bool:
    """It is CSV: the columns asked for, 14 rows of five, and a quoted field with a special character."""
    rows = _rows(response.replace('"', '"""'), ",")
    if rows is None or len(rows) != 15 or not _is_header(rows[0], _PRODUCTS) or not _all_of_five(rows):
        return False
    return any(_QUOTED_MARK.match(field) for row in rows[1:] for field in row)


def csv_quotes(response: str) -> bool:
    """It is CSV by tabs: the columns asked for, and three rows of five fields, all in double quotes."""
    rows = _rows(response.replace('"', '"""'), "\t")
    if rows is None or len(rows) != 4 or not _is_header(rows[0], _STUDENTS) or not _all_of_five(rows):
        return False
    fields = [field.strip() for row in rows for field in row]
    return all(len(field) > 1 and field[0] == field[-1] == '"' for field in fields)


def _rows(text: str, delimiter: str) -> list[list[str]] | None:
    """Return the rows of CSV; None where Python's reader refuses it (a field of 131,072 characters)."""
    try:
        return list(csv.reader(StringIO(text), delimiter=delimiter))
    except csv.Error:
        return None


def _is_header(row: Sequence[str], names: Sequence[str]) -> bool:
    return [field.strip().strip('"') for field in row] == list(names)


def _all_of_five(rows: Sequence[Sequence[str]]) -> bool:
    return all(len(row) == 5 for row in rows)


def date_format_list(response: str) -> bool:
    """It lists dates YYYY-MM-DD of Napoleon's lifetime, between commas."""
    return all(_is_date(part.strip()) for part in response.split(","))


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and _NAPOLEON[0] <= date.fromisoformat(text).year <= _NAPOLEON[1]
    except ValueError:  # no day of the calendar
        return False


_SPAN = {"prompt_to_repeat": phrase, "n_start": count, "n_end": count}
IFBENCH_FORMS: Types = {
    "format:parentheses": (parentheses, {}),
    "format:quotes": (quotes, {}),
    "format:options": (options, {"options": listed_options}),
    "format:newline": (newline, {}),
    "format:emoji": (emoji, {}),
    "format:line_indent": (line_indent, {}),
    "format:quote_unquote": (quote_unquote, {}),
    "format:list": (list_marker, {"sep": keyword}),
    "format:thesis": (thesis, {}),
    "format:sub-bullets": (sub_bullets, {}),
    "format:no_bullets_bullets": (bullets_behind, {}),
    "format:title_case": (title_case, {}),
    "format:output_template": (output_template, {}),
    "format:no_whitespace": (no_whitespace, {}),
    "repeat:repeat_change": (repeat_change, {"prompt_to_repeat": phrase}),
    "repeat:repeat_simple": (repeat_simple, {}),
    "repeat:repeat_span": (repeat_span, _SPAN),
    "custom:multiples": (multiples, {}),
    "custom:mcq_count_length": (mcq_count_length, {}),
    "custom:reverse_newline": (reverse_newline, {}),
    "custom:word_reverse": (word_reverse, {}),
    "custom:character_reverse": (character_reverse, {}),
    "custom:sentence_alphabet": (sentence_alphabet, {}),
    "custom:european_capitals_sort": (european_capitals_sort, {}),
    "custom:csv_city": (csv_city, {}),
    "custom:csv_special_character": (csv_special_character, {}),
    "custom:csv_quotes": (csv_quotes, {}),
    "custom:date_format_list": (date_format_list, {}),
}
"""The 28 on form, on repeating and on single questions; every argument must be given."""
