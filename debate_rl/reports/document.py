"""What a report says, before it is HTML, Markdown or JSON: sections of text, tables and charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Tone: TypeAlias = Literal["", "good", "warn", "bad"]
"""How a number or a verdict is to be taken; "" is neither."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The debates that a number was counted from: a run's folder and a filter, "" for all of it."""

    run: str
    filter: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows in one place; ``value`` is the same for JSON, where it is not the text."""

    text: str
    value: float | int | bool | None = None
    behind: Behind | None = None
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under named columns; ``folded``: shown on request (all of it is in the files)."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: ``x`` and ``y`` (n,), y None where there is no value; ``low`` and ``high`` its interval."""

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves, or bars at x; ``rules`` are horizontal lines with a name, such as 0.5, a coin.

    ``ticks`` name x = 0, 1, 2, ... of bars, which then lie one below the other beside their names. ``table``
    names the table behind the chart that has its numbers, "" where there is none and they are to be listed.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Literal["line", "bars"] = "line"
    rules: tuple[tuple[str, float], ...] = ()
    note: str = ""
    behind: Behind | None = None
    ticks: tuple[str, ...] = ()
    table: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A piece of plain text."""

    text: str
    tone: Tone = ""
    behind: Behind | None = None


Part: TypeAlias = Table | Chart | Paragraph


@dataclass(frozen=True, slots=True)
class Section:
    """A named part of a report; ``name`` is its anchor."""

    name: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report; ``lead`` says in a few lines what was read and found."""

    title: str
    lead: tuple[Paragraph, ...]
    sections: tuple[Section, ...]
