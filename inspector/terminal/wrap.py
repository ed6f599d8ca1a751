"""Where a line of text is broken to fit a width, in time that grows with its length and no faster."""

from __future__ import annotations

import re

from rich.cells import get_character_cell_size

_WORDS = re.compile(r"[^ ]+ *| +")
FULLEST = 4
"""A row has at most so many characters for each cell, so that marks without width cannot pile up."""


def rows(text: str, width: int) -> list[tuple[int, int]]:
    """Return (start, end) of the rows of one line, broken after blanks, or within a word that is too long.

    >>> text = "one two three"
    >>> [text[start:end] for start, end in rows(text, 8)]
    ['one two ', 'three']
    >>> rows("", 8)
    [(0, 0)]
    """
    width = max(width, 2)
    if len(text) <= width and text.isascii():
        return [(0, len(text))]
    return _plain_rows(text, width) if text.isascii() else _wide_rows(text, width)


def _plain_rows(text: str, width: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > width:
        blank = text.rfind(" ", start, start + width + 1)
        end = blank + 1 if blank > start else start + width
        found.append((start, end))
        start = end
    return [*found, (start, len(text))] if start < len(text) else found


def _wide_rows(text: str, width: int) -> list[tuple[int, int]]:
    """Return the rows of a line some of whose characters take two cells, or none."""
    found: list[tuple[int, int]] = []
    start, used = 0, 0
    for match in _WORDS.finditer(text):
        word = match[0]
        bare = word.rstrip(" ")
        size, full = cells(bare), cells(bare) + len(word) - len(bare)
        if used and used + size > width:
            found.append((start, match.start()))
            start, used = match.start(), 0
        if size > width or len(bare) > FULLEST * width:
            pieces = _broken(text, start, match.end(), width)
            found += pieces[:-1]
            start = pieces[-1][0]
            full = cells(text[start : match.end()])
        used += full
    found.append((start, len(text)))
    return found


def cells(text: str) -> int:
    """Return how many cells a text takes."""
    return len(text) if text.isascii() else sum(map(get_character_cell_size, text))


def _broken(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    """Return the rows of a word that is longer than a row."""
    found: list[tuple[int, int]] = []
    used = 0
    for at in range(start, end):
        size = get_character_cell_size(text[at])
        if used + size > width or at - start >= FULLEST * width:
            found.append((start, at))
            start, used = at, 0
        used += size
    return [*found, (start, end)]
