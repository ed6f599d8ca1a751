"""The columns of a list: which of them fit a width, and one row of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from inspector.terminal.style import FAINT
from inspector.terminal.wrap import cells

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
    """Return (place, column, width) of the columns that fit.

    >>> few = [Column("id", 6), Column("votes", 5, need=2), Column("question", 10, need=1, rest=True)]
    >>> [(column.name, size) for _, column, size in fitting(few, 22)]
    [('id', 6), ('question', 14)]
    """
    kept = list(enumerate(columns))
    while _taken(kept) > width and any(column.need for _, column in kept):
        kept.remove(max(kept, key=lambda one: (one[1].need, one[0])))
    spare = max(0, width - _taken(kept))
    return [(place, one, one.width + (spare if one.rest else 0)) for place, one in kept]


def _taken(kept: Sequence[tuple[int, Column]]) -> int:
    return sum(column.width for _, column in kept) + GAP * (len(kept) - 1)


def head(fit: Sequence[tuple[int, Column, int]]) -> Text:
    """Return the row of the names."""
    return _row([((column.name, FAINT), column, width) for _, column, width in fit])


def body(fit: Sequence[tuple[int, Column, int]], cells_of: Sequence[Cell]) -> Text:
    """Return one row; ``cells_of`` has a cell for each column, those that do not fit included."""
    return _row([(cells_of[place], column, width) for place, column, width in fit])


def _row(parts: Sequence[tuple[Cell, Column, int]]) -> Text:
    row = Text(no_wrap=True, end="")
    for count, (cell, column, width) in enumerate(parts):
        text, style = (cell, "") if isinstance(cell, str) else cell
        if count:
            row.append(" " * GAP)
        row.append(padded(text, width, left=column.left or column.rest), style)
    return row


def padded(text: str, width: int, *, left: bool = True) -> str:
    """Return a text of exactly so many cells, cut or filled.

    >>> padded("abcdef", 4), padded("ab", 4, left=False)
    ('abc…', '  ab')
    """
    if cells(text) > width:
        text = text[:width]
        while text and cells(text) > width - 1:
            text = text[:-1]
        text += "…"
    blank = " " * (width - cells(text))
    return text + blank if left else blank + text
