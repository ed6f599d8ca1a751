r"""Multiple choice: which letter an answer means.

A letter counts when it is the whole answer or opens it (``B``, ``(B)``, ``\text{B}``, ``B) 12``); the text of
exactly one option maps to that option's letter. Letters beyond the item's options are no answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from envs.notation import clean, spelling

LETTERS = "ABCDEFGHIJ"

_OTHER = re.compile(r"(?:\bor\b|\band\b|\bnot\b|[,;/&(])\s{0,4}\(?([A-Ja-j])(?![\w'])")
_CAPITAL = re.compile(r"(?<![\w'])([A-J])(?![\w'])")
_LETTER = re.compile(r"\(?([A-Ja-j])\)?(?:\s*[).:].*|\s+.*)?", re.DOTALL)


def letter_of(answer: str, choices: Sequence[str] = ()) -> str | None:
    r"""Return the letter in upper case, or None when the answer names none of the options.

    >>> letter_of(r"\text{(b)}"), letter_of("12 cm", ("10 cm", "12 cm")), letter_of("Because")
    ('B', 'B', None)
    >>> letter_of("C", ("1", "2")), letter_of("B or C"), letter_of("B) A rectangle")
    (None, None, 'B')
    """
    text = clean(answer)
    texts = [spelling(clean(choice)).casefold() for choice in choices]
    if texts.count(spelling(text).casefold()) == 1:
        place = texts.index(spelling(text).casefold())
        return LETTERS[place] if place < len(LETTERS) else None
    match = _LETTER.fullmatch(text)
    letter = match[1].upper() if match else None
    if not match or not letter or letter not in LETTERS[: len(choices) or len(LETTERS)]:
        return None
    rest = text[match.end(1) :]
    place = LETTERS.index(letter)
    if place < len(texts) and spelling(rest.lstrip(").: ")).casefold() == texts[place]:
        return letter
    return None if _names_another(rest, letter, LETTERS[: len(choices) or 5]) else letter


def _names_another(rest: str, letter: str, letters: str) -> bool:
    """Whether what follows a letter names another option: "B or C" is a hedge, "B) A rectangle" is none."""
    named = [m[1].upper() for m in _OTHER.finditer(rest)]
    capitals = [m[1] for m in _CAPITAL.finditer(rest) if m[1] != "A"]
    return any(name != letter and name in letters for name in named + capitals)
