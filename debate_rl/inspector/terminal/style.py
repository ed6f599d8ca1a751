"""How lines look: styles that need no colour, columns that fit a width, and where a line is broken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, get_character_cell_size
from rich.text import Text

from debate_rl.formatting import GRADE_SIGNS, padded

RIGHT: Final = "green"
WRONG: Final = "red"
DOUBT: Final = "yellow"
FAINT: Final = "dim"
STRONG: Final = "bold"
TITLE: Final = "bold cyan"
JUDGE: Final = "magenta"
CHOSEN: Final = "reverse"

GRADES: Final = {"right": RIGHT, "wrong": WRONG, "missing": DOUBT}
"""The style of each grade that is not faint."""


def sign(grade: str) -> tuple[str, str]:
    """Return the sign of a grade, "·" without one, and its style.

    >>> sign("right"), sign("")
    (('✓', 'green'), ('·', 'dim'))
    """
    return GRADE_SIGNS.get(grade, "·"), GRADES.get(grade, FAINT)


def line(*pieces: str | tuple[str, str]) -> Text:
    """Return one line of pieces, each a text or a text with a style; nothing in them is read as markup."""
    return Text.assemble(*pieces, no_wrap=True, end="")


def heading(words: str, note: str = "") -> Text:
    """Return the line over a part, with a note behind it."""
    return line((words, TITLE), (f"  {note}" if note else "", FAINT))


Cell = str | tuple[str, str]
"""A text, or a text and its style."""
GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its cells take ``width``; ``need`` 0 always stays, the highest goes first.

    ``rest``: it takes the cells that the others leave.
    """

    name: str
    width: int
    need: int = 0
    left: bool = False
    rest: bool = False


def fitting(columns: Sequence[Column], width: int) -> list[tuple[int, Column, int]]:
    """Return (index, column, width) of the columns that fit.

    >>> few = [Column("id", 6), Column("votes", 5, need=2), Column("question", 10, need=1, rest=True)]
    >>> [(column.name, size) for _, column, size in fitting(few, 22)]
    [('id', 6), ('question', 14)]
    """
    kept = list(enumerate(columns))
    while _taken(kept) > width and any(column.need for _, column in kept):
        kept.remove(max(kept, key=lambda one: (one[1].need, one[0])))
    spare = max(0, width - _taken(kept))
    return [(index, one, one.width + (spare if one.rest else 0)) for index, one in kept]


def _taken(kept: Sequence[tuple[int, Column]]) -> int:
    return sum(column.width for _, column in kept) + GAP * (len(kept) - 1)


def head(fit: Sequence[tuple[int, Column, int]]) -> Text:
    """Return the row of the names."""
    return _row([((column.name, FAINT), column, width) for _, column, width in fit])


def body(fit: Sequence[tuple[int, Column, int]], cells_of: Sequence[Cell]) -> Text:
    """Return one row; ``cells_of`` has a cell for each column, those that do not fit included."""
    return _row([(cells_of[index], column, width) for index, column, width in fit])


def _row(parts: Sequence[tuple[Cell, Column, int]]) -> Text:
    row = Text(no_wrap=True, end="")
    for count, (cell, column, width) in enumerate(parts):
        text, style = (cell, "") if isinstance(cell, str) else cell
        if count:
            row.append(" " * GAP)
        row.append(padded(text, width, left=column.left or column.rest), style)
    return row


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
        size, full = cell_len(bare), cell_len(bare) + len(word) - len(bare)
        if used and used + size > width:
            found.append((start, match.start()))
            start, used = match.start(), 0
        if size > width or len(bare) > FULLEST * width:
            pieces = _broken(text, start, match.end(), width)
            found += pieces[:-1]
            start = pieces[-1][0]
            full = cell_len(text[start : match.end()])
        used += full
    found.append((start, len(text)))
    return found


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
