r"""Multiple choice: which letter an answer means.

A letter counts when it is the whole answer or opens it (``B``, ``(B)``, ``\text{B}``, ``B) 12``); the text of
exactly one option maps to that option's letter. Letters beyond the item's options are no answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from envs.notation import clean, spelling

LETTERS = "ABCDEFGHIJ"

_LETTER = re.compile(r"\(?([A-Ja-j])\)?(?:\s*[).:].*|\s+.*)?", re.DOTALL)


def letter_of(answer: str, choices: Sequence[str] = ()) -> str | None:
    r"""Return the letter in upper case, or None when the answer names none of the options.

    >>> letter_of(r"\text{(b)}"), letter_of("12 cm", ("10 cm", "12 cm")), letter_of("Because")
    ('B', 'B', None)
    >>> letter_of("C", ("1", "2")) is None
    True
    """
    text = clean(answer)
    texts = [spelling(clean(choice)).casefold() for choice in choices]
    if texts.count(spelling(text).casefold()) == 1:
        place = texts.index(spelling(text).casefold())
        return LETTERS[place] if place < len(LETTERS) else None
    match = _LETTER.fullmatch(text)
    letter = match[1].upper() if match else None
    return letter if letter and letter in LETTERS[: len(choices) or len(LETTERS)] else None
