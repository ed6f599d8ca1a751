"""How lines look: styles, columns that fit a width, and where a line is broken."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

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
Item = TypeVar("Item")
GAP = 2


def count_cell(value: int) -> Cell:
    """Return a number of things, faint where there are none."""
    return f"{value:,}", "" if value else FAINT


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """One column: ``cell`` returns what it shows of an item, escaped, in ``width`` cells of the terminal.

    ``need`` 0 always stays; where columns do not fit, the highest goes first. ``rest``: it takes what the
    others leave.
    """

    name: str
    width: int
    cell: Callable[[Item], Cell] = str
    need: int = 0
    left: bool = False
    rest: bool = False


def fitting(columns: Sequence[Column[Any]], width: int) -> list[tuple[Column[Any], int]]:
    """Return the columns that fit, each with its width.

    >>> few = [Column("id", 6), Column("votes", 5, need=2), Column("question", 10, need=1, rest=True)]
    >>> [(column.name, size) for column, size in fitting(few, 22)]
    [('id', 6), ('question', 14)]
    """
    left = list(columns)
    while _total(left) > width and any(column.need for column in left):
        left.remove(max(reversed(left), key=lambda column: column.need))
    spare = max(0, width - _total(left))
    return [(column, column.width + (spare if column.rest else 0)) for column in left]


def _total(columns: Sequence[Column[Any]]) -> int:
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def head(columns: Sequence[tuple[Column[Any], int]]) -> Text:
    """Return the row of the names."""
    return _row(columns, [(column.name, FAINT) for column, _ in columns])


def body(columns: Sequence[tuple[Column[Item], int]], item: Item) -> Text:
    """Return the row of an item."""
    return _row(columns, [column.cell(item) for column, _ in columns])


def _row(columns: Sequence[tuple[Column[Any], int]], cells: Sequence[Cell]) -> Text:
    row = Text(no_wrap=True, end="")
    for (column, width), cell in zip(columns, cells, strict=True):
        text, style = (cell, "") if isinstance(cell, str) else cell
        row.append(" " * GAP if row else "")
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
    spans: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > width:
        blank = text.rfind(" ", start, start + width + 1)
        end = blank + 1 if blank > start else start + width
        spans.append((start, end))
        start = end
    return [*spans, (start, len(text))] if start < len(text) else spans


def _wide_rows(text: str, width: int) -> list[tuple[int, int]]:
    """Return the rows of a line some of whose characters take two cells, or none."""
    spans: list[tuple[int, int]] = []
    start, used = 0, 0
    for match in _WORDS.finditer(text):
        word = match[0]
        bare = word.rstrip(" ")
        size, full = cell_len(bare), cell_len(bare) + len(word) - len(bare)
        if used and used + size > width:
            spans.append((start, match.start()))
            start, used = match.start(), 0
        if size > width or len(bare) > FULLEST * width:
            pieces = _broken(text, start, match.end(), width)
            spans += pieces[:-1]
            start = pieces[-1][0]
            full = cell_len(text[start : match.end()])
        used += full
    spans.append((start, len(text)))
    return spans


def _broken(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    """Return the rows of a word that is longer than a row."""
    spans: list[tuple[int, int]] = []
    used = 0
    for at in range(start, end):
        size = get_character_cell_size(text[at])
        if used + size > width or at - start >= FULLEST * width:
            spans.append((start, at))
            start, used = at, 0
        used += size
    return [*spans, (start, end)]
