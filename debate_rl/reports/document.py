"""What a report says, before it is HTML, Markdown or JSON: sections of text, tables and charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal, TypeAlias
from urllib.parse import quote as in_address

from debate_rl.formatting import figure, printable

Tone: TypeAlias = Literal["", "good", "warn", "bad"]
"""How a number or a verdict is to be taken; "" is neither."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The debates that a number was counted from: a run's folder and a filter, "" for all of it."""

    run: str
    filter: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; ``value`` is the same for JSON, where it is not the text."""

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
    A ``small`` one stands beside a text.
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
    small: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A piece of plain text; ``command`` is a command to type, shown with it."""

    text: str
    tone: Tone = ""
    behind: Behind | None = None
    command: str = ""


Part: TypeAlias = Table | Chart | Paragraph


@dataclass(frozen=True, slots=True)
class Section:
    """A named part of a report, folded on a page; ``name`` is its anchor, ``about`` says what is in it."""

    name: str
    title: str
    parts: tuple[Part, ...]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question of the first screen, its answer in a word and a few sentences, and one small picture."""

    name: str
    question: str
    word: str
    text: tuple[Paragraph, ...]
    picture: Chart | Table | None = None

    @property
    def tone(self) -> Tone:
        """How the answer is to be taken: that of its first sentence."""
        return self.text[0].tone if self.text else ""


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report: ``lead`` says what was read, ``answers`` come first, ``sections`` have all the rest.

    ``findings``: everything that was looked for, as JSON has it.
    """

    title: str
    lead: tuple[Paragraph, ...]
    sections: tuple[Section, ...]
    answers: tuple[Answer, ...] = ()
    findings: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Links:
    """``inspector``: the address of a running browser inspector, "" where there is none."""

    inspector: str = ""

    def __post_init__(self) -> None:
        if self.inspector and not self.inspector.startswith(("http://", "https://")):
            raise ValueError(f"--inspector {self.inspector}: must begin with http:// or https://")

    def command(self, behind: Behind) -> str:
        """Return the command that lists the debates.

        >>> Links().command(Behind("runs/a", "winner:wrong step:>3"))
        "debate inspect runs/a ls 'winner:wrong step:>3'"
        """
        words = ["debate", "inspect", quote(printable(behind.run)), "ls"]
        return " ".join([*words, quote(printable(behind.filter))] if behind.filter else words)

    def address(self, behind: Behind) -> str | None:
        """Return where the inspector shows the debates.

        >>> Links("http://127.0.0.1:8000/").address(Behind("runs/a b", "flip:CW"))
        'http://127.0.0.1:8000/run/a%20b/debates?filter=flip%3ACW'
        """
        if not self.inspector:
            return None
        name = in_address(printable(Path(behind.run).resolve().name), safe="")
        filter = in_address(printable(behind.filter), safe="")
        return f"{self.inspector.rstrip('/')}/run/{name}/debates" + (f"?filter={filter}" if filter else "")


def numeric(table: Table) -> list[bool]:
    """Return for each column whether it holds numbers, which are set to the right."""
    columns = [[row[index].text for row in table.rows] for index in range(len(table.columns))]
    return [bool(texts) and all(_is_number(text) for text in texts) for texts in columns]


def wordy(table: Table) -> list[bool]:
    """Return for each column but the first whether it holds sentences, which may be broken into lines."""
    columns = [[row[index].text for row in table.rows] for index in range(len(table.columns))]
    return [index > 0 and max(map(len, texts), default=0) > 40 for index, texts in enumerate(columns)]


def _is_number(text: str) -> bool:
    return text in ("", "none", "-") or text.lstrip("+-.")[:1].isdigit()


def data_of(chart: Chart) -> Table:
    """Return the numbers that a chart draws, a row for each x."""
    positions = sorted({x for series in chart.series for x in series.x})
    columns = [chart.x_label]
    drawn: list[dict[float, float | None]] = []
    for series in chart.series:
        ends = (("low", series.low), ("high", series.high)) if series.low and series.high else ()
        for name, values in ((chart.y_label, series.y), *ends):
            columns.append(f"{series.label}: {name}" if len(chart.series) > 1 else name)
            drawn.append(dict(zip(series.x, values, strict=True)))
    rows = tuple(
        (Cell(_tick(chart, x)), *(Cell(figure(column.get(x)), column.get(x)) for column in drawn))
        for x in positions
    )
    return Table(f"{chart.name}-data", chart.title, tuple(columns), rows)


def _tick(chart: Chart, x: float) -> str:
    index = int(x) if x == int(x) else -1
    return chart.ticks[index] if 0 <= index < len(chart.ticks) else f"{x:g}"
