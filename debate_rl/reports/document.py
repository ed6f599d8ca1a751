"""What a report says, before it is HTML or JSON: sections of text, tables and charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import Literal, TypeAlias
from urllib.parse import quote as in_address

from debate_rl.formatting import figure, interval, number, percent, printable, short
from debate_rl.metrics.intervals import Bounded, Estimate
from debate_rl.reports.figures import TABLES, Figure
from debate_rl.reports.rows import Study

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
        """Return the command that lists the debates."""
        words = ["debate", "inspect", quote(printable(behind.run)), "ls"]
        return " ".join([*words, quote(printable(behind.filter))] if behind.filter else words)

    def address(self, behind: Behind) -> str | None:
        """Return where the inspector shows the debates."""
        if not self.inspector:
            return None
        name = in_address(printable(Path(behind.run).resolve().name), safe="")
        filter = in_address(printable(behind.filter), safe="")
        return f"{self.inspector.rstrip('/')}/run/{name}/debates" + (f"?filter={filter}" if filter else "")


@dataclass(frozen=True, slots=True)
class Judged:
    """The debates of one run under a filter, as rows and as figures; ``run`` is the folder as it was named.

    ``damaged``: lines that could not be read.
    """

    run: str
    study: Study
    figures: Sequence[Figure]
    filter: str = ""
    damaged: int = 0

    def behind(self, filter: str | None) -> Behind | None:
        """Return the debates of the run that a filter finds too."""
        both = combined_filter(self.filter, filter)
        return None if both is None else Behind(self.run, both)


def combined_filter(filter: str, other: str | None) -> str | None:
    """Return the filter that finds what two filters both find; None where one cannot be written.

    >>> combined_filter("step:>3 OR winner:none", "flip:CW"), combined_filter("step:3", None)
    ('(step:>3 OR winner:none) flip:CW', None)
    """
    if other is None:
        return None
    return f"({filter}) {other}" if filter and other else filter or other


def data_of(chart: Chart) -> Table:
    """Return the numbers that a chart draws, a row for each x."""
    columns, drawn = [chart.x_label], list[dict[float, float | None]]()
    for series in chart.series:
        ends = (("low", series.low), ("high", series.high)) if series.low and series.high else ()
        for name, values in ((chart.y_label, series.y), *ends):
            columns.append(f"{series.label}: {name}" if len(chart.series) > 1 else name)
            drawn.append(dict(zip(series.x, values, strict=True)))
    rows = tuple(
        (Cell(_tick(chart, x)), *(Cell(figure(column.get(x)), column.get(x)) for column in drawn))
        for x in sorted({x for series in chart.series for x in series.x})
    )
    return Table(f"{chart.name}-data", chart.title, tuple(columns), rows)


def _tick(chart: Chart, x: float) -> str:
    index = int(x) if x == int(x) else -1
    return chart.ticks[index] if 0 <= index < len(chart.ticks) else f"{x:g}"


def interval_of(estimate: Estimate, bounds: tuple[float, float] = (-1.0, 1.0)) -> str:
    """Return the 95% interval as far as the figure can go, "none" where it has none.

    >>> interval_of(Estimate(0.9, 0.75, 1.05, 9, 9), (0.0, 1.0))
    '0.750 to 1.000'
    """
    low, high = max(estimate.low, bounds[0]), min(estimate.high, bounds[1])
    known = isfinite(estimate.low) and isfinite(estimate.high)
    return interval(low, high, partial(number, signed=bounds[0] < 0)) if known else "none"


def estimate_cell(figure: Figure, behind: Behind | None = None) -> Cell:
    """Return the estimate with the debates behind it, marked where there is something to be warned of."""
    if figure.estimate is None:
        return Cell("none")
    text = number(figure.estimate.value, signed=figure.range[0] < 0)
    flagged = f"{text} ({figure.flag})" if figure.flag else text
    return Cell(flagged, figure.estimate.value, behind, "warn" if figure.flag else "")


def count_cell(count: int) -> Cell:
    """Return a cell with a whole number."""
    return Cell(f"{count:,}", count)


def number_cell(value: float | None, *, behind: Behind | None = None) -> Cell:
    """Return a cell with a number."""
    return Cell(short(value), value if value is not None and isfinite(value) else None, behind)


def bounded(estimate: Estimate | None) -> Bounded | None:
    """Return an estimate with its bounds; None of none."""
    return (estimate.value, estimate.low, estimate.high) if estimate else None


def row(*values: Cell | str | float | Bounded | None) -> tuple[Cell, ...]:
    """Return cells of texts, numbers, numbers with the bounds of their interval, and None, which is "-".

    >>> [cell.text for cell in row("a", 0.5, (0.5, 0.25, 0.75), None)]
    ['a', '0.500', '0.500 [0.250, 0.750]', '-']
    """
    return tuple(map(_cell, values))


def _cell(value: Cell | str | float | Bounded | None) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(value)
    if not isinstance(value, tuple):
        return number_cell(value)
    if not all(map(isfinite, value)):
        return number_cell(value[0])
    found, low, high = map(number, value)
    return Cell(f"{found} [{low}, {high}]", value[0])


def table_of(key: str, rows: Iterable[tuple[Cell, ...]], *more: str, **words: object) -> Table:
    """Return a table of tables.toml with its words filled in; ``more``: further columns."""
    about = TABLES["table"][key]
    columns = tuple(column.format(**words) for column in about["columns"])
    note, folded = about.get("note", "").format(**words), about.get("folded", False)
    return Table(
        key.format(**words), about["title"].format(**words), columns + more, tuple(rows), note, folded
    )


def section_of(key: str, parts: Iterable[Part], **words: object) -> Section:
    """Return a section of tables.toml with its words filled in."""
    about = TABLES["section"][key]
    return Section(key, about["title"], tuple(parts), about["about"].format(**words))


def bounds_text(low: float, high: float) -> str:
    """Return the bounds of an interval, "" where they are not known."""
    return f" [{short(low)}, {short(high)}]" if isfinite(low) and isfinite(high) else ""


def percent_of(estimate: Estimate) -> str:
    """Return a share in percent with its interval."""
    text, low, high = percent(estimate.value), 100 * estimate.low, 100 * estimate.high
    if not (isfinite(low) and isfinite(high)):
        return text
    return f"{text} (95% interval {interval(max(0.0, low), min(100.0, high), '{:.1f}'.format)})"


def points_of(estimate: Estimate | None) -> str:
    """Return a difference of shares in percentage points with its interval."""
    if estimate is None:
        return "no cases"
    text = f"{100 * estimate.value:+.1f} points"
    bounds = interval(100 * estimate.low, 100 * estimate.high, "{:+.1f}".format)
    return f"{text} ({bounds})" if bounds else text
