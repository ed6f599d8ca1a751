"""Count the words, sentences and marked spans of a text by fixed rules, and detect its language."""

from __future__ import annotations

import re
import threading
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path
from string import punctuation
from typing import Any

from debate.settings import install_hint
from envs.errors import MissingPackageError

WORDS = {
    name: tuple(text.split())
    for name, text in tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8")).items()
}
"""The word lists of lexicon.toml by name."""
LANGUAGES = frozenset(WORDS["languages"])  # the ISO 639-1 codes that IFEval may ask for

_WORD = re.compile(r"\w+")
_WORD_WITH_MARKS = re.compile(r"\w+(?:[-./'’]\w+)*")
_NO_PUNCTUATION = str.maketrans("", "", punctuation)
_STOP = re.compile(r"(?<![.?!])[.?!]++[\"')\]}”’*_]{0,8}(?=\s|$)")
_INITIALS = frozenset("ABCDEFGHJKLMNOPQRSTUVWXYZ")
_ABBREVIATIONS = frozenset(WORDS["abbreviations"])
_CONTEXT = 24
_VERBS, _IRREGULAR_VERBS = frozenset(WORDS["verbs"]), frozenset(WORDS["irregular_verbs"])
_VOWELS = re.compile("[aeiouy]+")
_APART = re.compile(
    r"(?<![cgst])i(?:a|o(?!u)|u)|eo|oe(?=[mt])|ua|uou|uity"
    r"|(?<=[^aeiou])ie(?:n|t)|eat(?=e|i)|[aeiou]ing$"
)
_SILENT = re.compile(
    r"(?<=[^aeiouy])e$(?<![bcdfgkpstz]le)|(?<=[^aeiouytd])ed$|(?<=[^aeioucgsxz])(?<!ch)(?<!sh)es$"
)
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa-\u25fe"
    "\u2600-\u27bf\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_LOCK = threading.Lock()


def count_words(text: str) -> int:
    """Return the number of words, which are sequences of letters, digits and underscores, as in IFEval.

    >>> count_words("It's a well-known fact: 3.5!")
    8
    """
    return sum(1 for _ in _WORD.finditer(text))


def sentences(text: str) -> list[str]:
    """Return the stripped sentences of a text; text after the last full stop also counts as a sentence.

    A sentence ends at ``.``, ``?`` or ``!`` before a blank or the end of the text. It does not end at several
    dots before a lower-case letter, nor at an abbreviation or an initial before more text. A line break
    alone does not end a sentence, and "1." before a list entry is a sentence. These rules follow nltk's
    punkt, which IFEval uses and which knows more abbreviations.

    >>> sentences("Dr. Li met J. Smith at 5 p.m. on Monday. Why? Nobody knows"), sentences("")
    (['Dr. Li met J. Smith at 5 p.m. on Monday.', 'Why?', 'Nobody knows'], [])
    """
    ends = [stop.end() for stop in _STOP.finditer(text) if _ends_sentence(text, stop)]
    parts = [text[start:end].strip() for start, end in pairwise([0, *ends])]
    rest = text[ends[-1] if ends else 0 :].strip()
    return [*parts, rest] if rest else parts


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


def words(text: str) -> list[str]:
    """Return the words of a text without punctuation, except for apostrophes and hyphens inside a word.

    >>> words("Don't stop: 'well-known', 3.5!")
    ["Don't", 'stop', 'well-known', '3.5']
    """
    return _WORD_WITH_MARKS.findall(text)


def bare_words(text: str) -> list[str]:
    """Return the pieces between blanks without any ASCII punctuation.

    >>> bare_words("Don't stop -- now!")
    ['Dont', 'stop', 'now']
    """
    return text.translate(_NO_PUNCTUATION).split()


def enclosed(text: str, opening: str, closing: str) -> int:
    """Return the number of spans from an opening mark to the next closing mark in the same line.

    >>> enclosed("[name] of [[the] street, [city", "[", "]")
    2
    """
    count = 0
    for line in text.split("\n"):
        at = 0
        while (start := line.find(opening, at)) >= 0:
            end = line.find(closing, start + len(opening))
            if end < 0:
                break
            count, at = count + 1, end + len(closing)
    return count


def is_verb(word: str) -> bool:
    """Return whether an English word may be a verb, that is, a form of one of 700 common verbs.

    >>> [is_verb(word) for word in ("Imagine", "running", "tried", "Went", "The", "Thing", "can")]
    [True, True, True, True, False, False, False]
    """
    plain = word.lower()
    bases = [plain]
    for ending in ("ing", "ed", "es", "s", "d"):
        if plain.endswith(ending) and len(plain) > len(ending) + 1:
            stem = plain.removesuffix(ending)
            bases += [stem, stem + "e"]
            bases += [stem[:-1] + "y"] if stem[-1] == "i" else []
            bases += [stem[:-1]] if stem[-1] == stem[-2:-1] else []
    return plain in _IRREGULAR_VERBS or not _VERBS.isdisjoint(bases)


def syllables(word: str) -> int:
    """Return the number of syllables of an English word, estimated from its groups of vowels; at least 1.

    A final "e" is silent, except in "-le" after a consonant. A final "-es" or "-ed" is silent, except where
    speakers pronounce it ("boxes", "wanted"). IFBench looks words up in a dictionary first.

    >>> [syllables(word) for word in ("cat", "table", "created", "walked", "boxes", "science", "the")]
    [1, 2, 3, 1, 2, 2, 1]
    """
    plain = re.sub(r"[^a-z]", "", word.lower()).replace("qu", "q")
    if plain in WORDS["two_syllables"]:
        return 2
    count = len(_VOWELS.findall(plain)) + len(_APART.findall(plain))
    return max(1, count - bool(_SILENT.search(plain)))


def is_emoji(char: str) -> bool:
    """Return whether a character is a Unicode emoji, alone or with a variation selector after it.

    >>> [is_emoji(char) for char in "😀❤⭐©a.é中"]
    [True, True, True, True, False, False, False, False]
    """
    return _EMOJI.fullmatch(char) is not None


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of the most likely of 97 languages; None if the text has no letter.

    Case is ignored. The same text always gives the same code, and the time is linear in the length. Raise
    MissingPackageError if the package ``py3langid`` is not installed.
    """
    if not any(map(str.isalpha, text)):
        return None
    plain = text.lower().encode(errors="replace").decode()  # a lone surrogate cannot be encoded
    with _LOCK:
        return str(_detector().classify(plain)[0])


def require_detector() -> None:
    """Raise MissingPackageError, which says what to install, if the language detector is missing."""
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
