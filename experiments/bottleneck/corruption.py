"""Ways to damage a reasoning, as arXiv 2404.18988 does, to see how much of the answer hangs on it."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from random import Random

Corrupt = Callable[[str, float, Random], str]
_ALPHANUMERIC = string.ascii_letters + string.digits


def delete(text: str, share: float, rng: Random) -> str:
    """Return the text without a share of its characters, drawn at random.

    >>> delete("abcd", 0.5, Random(0)), delete("abcd", 1.0, Random(0))
    ('ac', '')
    """
    gone = set(rng.sample(range(len(text)), int(share * len(text))))
    return "".join(char for at, char in enumerate(text) if at not in gone)


def truncate_end(text: str, share: float, rng: Random) -> str:
    """Return the text without the last share of its characters.

    >>> truncate_end("abcd", 0.25, Random(0))
    'abc'
    """
    return text[: len(text) - int(share * len(text))]


def truncate_start(text: str, share: float, rng: Random) -> str:
    """Return the text without the first share of its characters.

    >>> truncate_start("abcd", 0.25, Random(0))
    'bcd'
    """
    return text[int(share * len(text)) :]


def replace_digits(text: str, share: float, rng: Random) -> str:
    """Return the text with each digit, by this chance, drawn again; one in ten of them is the same again."""
    return _drawn(text, share, rng, string.digits)


def replace_characters(text: str, share: float, rng: Random) -> str:
    """Return the text with each letter and digit of ASCII, by this chance, drawn again among them."""
    return _drawn(text, share, rng, _ALPHANUMERIC)


def _drawn(text: str, share: float, rng: Random, alphabet: str) -> str:
    return "".join(
        rng.choice(alphabet) if char in alphabet and rng.random() < share else char for char in text
    )


CORRUPTIONS: Mapping[str, Corrupt] = {
    "delete": delete,
    "truncate the end": truncate_end,
    "truncate the start": truncate_start,
    "replace digits": replace_digits,
    "replace characters": replace_characters,
}
"""By the names of a table."""
