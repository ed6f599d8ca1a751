"""Count words, sentences, capitals and marked stretches of a text by fixed rules, and detect its language."""

from __future__ import annotations

import re
import threading
from functools import cache
from itertools import pairwise
from string import punctuation
from typing import Any

from debate.settings import install_hint
from envs.errors import MissingPackageError

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+(?:[-./]\w+)*")
_WORD_WITH_MARKS = re.compile(r"\w+(?:[-./'’]\w+)*")
_NO_PUNCTUATION = str.maketrans("", "", punctuation)
_STOP = re.compile(r"(?<![.?!])[.?!]++[\"')\]}”’*_]{0,8}(?=\s|$)")
_INITIALS = frozenset("ABCDEFGHJKLMNOPQRSTUVWXYZ")
_SHORT = (
    "mr mrs ms dr prof st jr sr vs etc inc ltd co corp gen gov sen rep hon rev capt col lt sgt "
    "e.g i.e a.m p.m u.s u.k d.c ph.d vol fig al approx dept est"
)
_ABBREVIATIONS = frozenset(_SHORT.split())
_CONTEXT = 24

_CODES = "ar bg bn de en es fa fi fr gu he hi it ja kn ko ml mr ne pa pl pt ru sw ta te th uk ur vi"
LANGUAGES = frozenset(_CODES.split())
"""The ISO 639-1 codes that IFEval may ask for."""

_LOCK = threading.Lock()


def count_words(text: str) -> int:
    """Return how many runs of letters, digits and underscores there are, as IFEval counts words.

    >>> count_words("It's a well-known fact: 3.5!")
    8
    """
    return sum(1 for _ in _WORD.finditer(text))


def count_sentences(text: str) -> int:
    """Return how many sentences there are; a rest that no mark ends is one.

    A sentence ends at ``.``, ``?`` or ``!`` before a blank or the end; not at dots that go on in lower case,
    and not behind an abbreviation or an initial that something follows. A line break alone ends none, and
    "1." before a list entry is one: so nltk's punkt has it, which IFEval uses and which knows many more
    abbreviations, learnt from newspapers.

    >>> count_sentences("Dr. Li met J. Smith at 5 p.m. on Monday. Why? Nobody knows"), count_sentences("")
    (3, 0)
    """
    return len(sentences(text))


def sentences(text: str) -> list[str]:
    """Return the sentences that ``count_sentences`` counts, ends trimmed.

    >>> sentences("Dr. Li left. Why? Nobody knows")
    ['Dr. Li left.', 'Why?', 'Nobody knows']
    """
    ends = [stop.end() for stop in _STOP.finditer(text) if _ends_sentence(text, stop)]
    parts = [text[start:end].strip() for start, end in pairwise([0, *ends])]
    rest = text[ends[-1] if ends else 0 :].strip()
    return [*parts, rest] if rest else parts


def words(text: str) -> list[str]:
    """Return the words of a text without punctuation; an apostrophe or a hyphen within one is part of it.

    >>> words("Don't stop: 'well-known', 3.5!")
    ["Don't", 'stop', 'well-known', '3.5']
    """
    return _WORD_WITH_MARKS.findall(text)


def bare_words(text: str) -> list[str]:
    """Return what stands between blanks, ASCII punctuation left out everywhere.

    >>> bare_words("Don't stop -- now!")
    ['Dont', 'stop', 'now']
    """
    return text.translate(_NO_PUNCTUATION).split()


def _ends_sentence(text: str, stop: re.Match[str]) -> bool:
    mark, start = stop[0], stop.start()
    if "?" in mark or "!" in mark:
        return True
    if ".." in mark and text[stop.end() : stop.end() + _CONTEXT].lstrip()[:1].islower():
        return False
    before = text[max(0, start - _CONTEXT) : start]
    word = before.rstrip()
    if not word[-1:].isalpha():  # an abbreviation and an initial end in a letter
        return True
    initial = before[-1] in _INITIALS and not (before[-2:-1].isalnum() or before[-2:-1] == "_")
    if not initial and word.rsplit(None, 1)[-1].lower().lstrip("([\"'*_") not in _ABBREVIATIONS:
        return True
    return not text[stop.end() : stop.end() + _CONTEXT].lstrip()


def capital_words(text: str) -> int:
    """Return how many words are all in capitals, single letters among them.

    A word is a run of letters, digits and underscores, with hyphens, points and slashes inside it; "DON'T" is
    two, as for nltk's word_tokenize, which IFEval uses and which has more rules.

    >>> capital_words("I saw NASA's X-15 and the U.S. team, DON'T you?")
    6
    """
    return sum(match.group().isupper() for match in _TOKEN.finditer(text))


def enclosed(line: str, opening: str, closing: str) -> int:
    """Return how many stretches of a line stand between two marks, each from the first opening mark on.

    >>> enclosed("[name] of [[the] street, [city", "[", "]")
    2
    """
    count, at = 0, 0
    while (start := line.find(opening, at)) >= 0:
        end = line.find(closing, start + len(opening))
        if end < 0:
            break
        count, at = count + 1, end + len(closing)
    return count


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of the likeliest of 97 languages, case left out; None without any letter.

    The same text always gives the same code, and time is linear. MissingPackageError without the package.
    """
    if not any(map(str.isalpha, text)):
        return None
    plain = text.lower().encode(errors="replace").decode()  # half a character cannot be encoded
    with _LOCK:
        return str(_detector().classify(plain)[0])


def require_detector() -> None:
    """Raise MissingPackageError, with what to install, unless languages can be detected."""
    with _LOCK:
        _detector()


@cache
def _detector() -> Any:
    try:
        import py3langid
    except ImportError as error:
        raise MissingPackageError(
            f"the 'py3langid' package is needed to detect languages: {install_hint('ifeval')}"
        ) from error
    py3langid.classify("")  # loads the model
    return py3langid
