"""The printer of the plain screen: lines to a stream, in colour on a terminal that has any."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO, TypeAlias

from rich.cells import cell_len

from debate_rl.formatting import counted, padded

Style: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "cyan"]
CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
GRADES: dict[str, Style] = {"right": "green", "wrong": "red", "missing": "yellow"}
"""The colours of what is right and wrong; the words stand there as well."""


@dataclass(frozen=True, slots=True)
class Printer:
    """Lines go to ``stream``. ``width``: the columns of a terminal, None where nothing has to fit."""

    stream: TextIO
    colour: bool = False
    width: int | None = None

    def line(self, text: str = "") -> None:
        """Write one line, as it is."""
        self.stream.write(text + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines, as they are."""
        for line in lines:
            self.line(line)

    def json(self, value: object) -> None:
        """Write a value as one line of JSON, in ASCII."""
        self.line(json.dumps(value, allow_nan=False))

    def paint(self, text: str, style: Style | None) -> str:
        """Return the text in a colour or weight, as it is where there are none."""
        if not self.colour or style is None or not text:
            return text
        return f"\x1b[{CODES[style]}m{text}\x1b[0m"

    def grade(self, word: str) -> str:
        """Return "right", "wrong" and so on in their colours."""
        return self.paint(word, GRADES.get(word))


def printer_for(stream: TextIO) -> Printer:
    """Return the printer of a stream: colour and width on a terminal alone; NO_COLOR, TERM=dumb: none."""
    if not stream.isatty():
        return Printer(stream)
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")
    return Printer(stream, not plain, shutil.get_terminal_size().columns)


def widths_of(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that each column of cells needs.

    >>> widths_of([("a", "bb"), ("ccc", "d")])
    [3, 2]
    """
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def table(rows: Sequence[Sequence[str]], *, left: int) -> Iterator[str]:
    """Yield the lines of a table; its first ``left`` columns are set to the left, the others to the right.

    >>> list(table([("a", "b"), ("cc", "100")], left=1))
    ['a     b', 'cc  100']
    """
    widths = widths_of(rows)
    for row in rows:
        yield "  ".join(padded_cells(row, widths, left=range(left))).rstrip()


def padded_cells(row: Sequence[str], widths: Sequence[int], *, left: Container[int]) -> list[str]:
    """Return the first cells of a row, in these widths; ``left``: the columns that are set to the left.

    >>> padded_cells(("a", "bcdef", "c"), [3, 4], left=(0,))
    ['a  ', 'bc..']
    """
    cells = enumerate(zip(row, widths, strict=False))
    return [padded(cell, width, left=index in left, dots="..") for index, (cell, width) in cells]


def fitting(widths: Sequence[int], width: int | None) -> list[int]:
    """Return the widths of as many columns as fit a terminal, two blanks between them; one at least.

    >>> fitting([4, 4, 9], 12), fitting([4, 4, 9], None)
    ([4, 4], [4, 4, 9])
    """
    fit = list(widths)
    while width is not None and len(fit) > 1 and sum(fit) + 2 * (len(fit) - 1) > width:
        fit.pop()
    return fit


def left_out(printer: Printer, columns: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Yield the line that says how many of the columns do not fit; none where all do."""
    if more := len(columns) - len(widths):
        yield printer.paint(f"{counted(more, 'column')} more at a wider terminal or with --json", "dim")
