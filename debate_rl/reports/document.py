"""The content of a report before it becomes HTML or JSON: sections of text, tables and charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeAlias
from urllib.parse import quote as in_address

from debate_rl.formatting import figure, interval, number, percent, printable, short
from debate_rl.metrics.intervals import Bounded, Estimate
from debate_rl.reports.figures import TABLES, Figure
from debate_rl.reports.rows import Study

Tone: TypeAlias = Literal["", "good", "warn", "bad"]
"""The judgment on a number or a verdict. "" is neutral."""


@dataclass(frozen=True, slots=True)
class Behind:
    """The debates of a number: a run's folder and a filter ("" for all debates)."""

    run: str
    filter: str = ""

    @property
    def command(self) -> str:
        """The command that lists the debates."""
        words = ["debate", "inspect", quote(printable(self.run)), "ls"]
        return " ".join([*words, quote(printable(self.filter))] if self.filter else words)

    def address(self, inspector: str) -> str | None:
        """Return the address of the debates in a browser inspector, or None if ``inspector`` is ""."""
        if not inspector:
            return None
        name = in_address(printable(Path(self.run).resolve().name), safe="")
        filter = in_address(printable(self.filter), safe="")
        return f"{inspector.rstrip('/')}/run/{name}/debates" + (f"?filter={filter}" if filter else "")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table. ``value``: the value for JSON, if it differs from the text."""

    text: str
    value: float | int | bool | None = None
    behind: Behind | None = None
    tone: Tone = ""


Rows: TypeAlias = Iterable[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under named columns. A ``folded`` table is hidden until opened."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: ``x`` and ``y`` (n,), with y None for a missing value. ``low``, ``high``: its interval."""

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves, or bars at x. ``rules``: named horizontal lines, such as 0.5 for chance.

    ``ticks``: names of x = 0, 1, 2, ... for horizontal bars. ``table``: the table with the chart's numbers,
    or "" if the page lists them below the chart. A ``small`` chart is placed next to a text.
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

    def data(self) -> Table:
        """Return the numbers of the chart, with a row for each x."""
        columns, drawn = [self.x_label], list[dict[float, float | None]]()
        for series in self.series:
            ends = (("low", series.low), ("high", series.high)) if series.low and series.high else ()
            for name, values in ((self.y_label, series.y), *ends):
                columns.append(f"{series.label}: {name}" if len(self.series) > 1 else name)
                drawn.append(dict(zip(series.x, values, strict=True)))
        every = sorted({x for series in self.series for x in series.x})
        ticks = {float(x): tick for x, tick in enumerate(self.ticks)}
        rows = (
            (Cell(ticks.get(x, f"{x:g}")), *(Cell(figure(of.get(x)), of.get(x)) for of in drawn))
            for x in every
        )
        return Table(f"{self.name}-data", self.title, tuple(columns), tuple(rows))


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of plain text. ``command``: a command to type, shown with the text."""

    text: str
    tone: Tone = ""
    behind: Behind | None = None
    command: str = ""


Part: TypeAlias = Table | Chart | Paragraph


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report, folded on a page. ``name``: its anchor. ``about``: its summary."""

    name: str
    title: str
    parts: tuple[Part, ...]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question of the first screen, with its answer in a word and a few sentences, and a small chart."""

    name: str
    question: str
    word: str
    text: tuple[Paragraph, ...]
    picture: Chart | Table | None = None

    @property
    def tone(self) -> Tone:
        """The tone of the answer's first sentence."""
        return self.text[0].tone if self.text else ""


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report. ``lead``: what was read. ``findings``: every comparison, for JSON."""

    title: str
    lead: tuple[Paragraph, ...]
    sections: tuple[Section, ...]
    answers: tuple[Answer, ...] = ()
    findings: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """The debates of one run that match a filter, as rows and as figures.

    ``run``: the folder as given by the user. ``damaged``: number of lines that could not be read.
    ``by_hand``: the stars, notes and labels that people gave, as rows of ``annotation_rows``.
    """

    run: str
    study: Study
    figures: Sequence[Figure]
    filter: str = ""
    damaged: int = 0
    by_hand: Sequence[Mapping[str, Any]] = ()

    def behind(self, filter: str | None) -> Behind | None:
        """Return the debates of the run that also match a further filter."""
        both = combined_filter(self.filter, filter)
        return None if both is None else Behind(self.run, both)


def combined_filter(filter: str, other: str | None) -> str | None:
    """Return the filter for debates that match both filters, or None if it cannot be written.

    >>> combined_filter("step:>3 OR winner:none", "flip:CW"), combined_filter("step:3", None)
    ('(step:>3 OR winner:none) flip:CW', None)
    """
    if other is None:
        return None
    return f"({filter}) {other}" if filter and other else filter or other


def interval_of(estimate: Estimate, bounds: tuple[float, float] = (-1.0, 1.0)) -> str:
    """Return the 95% interval, clipped to the figure's range, or "none" if there is no interval.

    >>> interval_of(Estimate(0.9, 0.75, 1.05, 9, 9), (0.0, 1.0))
    '0.750 to 1.000'
    """
    low, high = max(estimate.low, bounds[0]), min(estimate.high, bounds[1])
    known = isfinite(estimate.low) and isfinite(estimate.high)
    return interval(low, high, partial(number, signed=bounds[0] < 0)) if known else "none"


def estimate_cell(figure: Figure, behind: Behind | None = None) -> Cell:
    """Return a cell with the estimate and its debates, marked if the figure has a warning."""
    if figure.estimate is None:
        return Cell("none")
    text = number(figure.estimate.value, signed=figure.range[0] < 0)
    flagged = f"{text} ({figure.flag})" if figure.flag else text
    return Cell(flagged, figure.estimate.value, behind, "warn" if figure.flag else "")


def bounded(estimate: Estimate | None) -> Bounded | None:
    """Return an estimate with its bounds, or None."""
    return (estimate.value, estimate.low, estimate.high) if estimate else None


def row(*values: Cell | str | float | Bounded | None) -> tuple[Cell, ...]:
    """Return cells for texts, counts, numbers, numbers with interval bounds, and None (shown as "-").

    >>> [cell.text for cell in row("a", 0.5, 1000, (0.5, 0.25, 0.75), None)]
    ['a', '0.500', '1,000', '0.500 [0.250, 0.750]', '-']
    """

    def cell(value: Cell | str | float | Bounded | None) -> Cell:
        if isinstance(value, Cell):
            return value
        if isinstance(value, str):
            return Cell(value)
        if isinstance(value, int):
            return Cell(f"{value:,}", value)
        if isinstance(value, tuple) and all(map(isfinite, value)):
            found, low, high = map(number, value)
            return Cell(f"{found} [{low}, {high}]", value[0])
        value = value[0] if isinstance(value, tuple) else value
        return Cell(short(value), value if value is not None and isfinite(value) else None)

    return tuple(map(cell, values))


def table_of(key: str, rows: Rows, *more: str, **words: object) -> Table:
    """Return a table of tables.toml with names filled in. ``more``: additional columns."""
    about = TABLES["table"][key]
    columns = (*(column.format(**words) for column in about["columns"]), *more)
    name, title, note = (text.format(**words) for text in (key, about["title"], about.get("note", "")))
    return Table(name, title, columns, tuple(rows), note, about.get("folded", False))


def section_of(key: str, parts: Iterable[Part], **words: object) -> Section:
    """Return a section of tables.toml with names filled in."""
    about = TABLES["section"][key]
    return Section(key, about["title"], tuple(parts), about["about"].format(**words))


def bounds_text(low: float, high: float) -> str:
    """Return the bounds of an interval as text, or "" if unknown."""
    return f" [{short(low)}, {short(high)}]" if isfinite(low) and isfinite(high) else ""


def percent_of(estimate: Estimate) -> str:
    """Return a fraction in percent with its interval."""
    low, high = max(0.0, 100 * estimate.low), min(100.0, 100 * estimate.high)
    known = isfinite(estimate.low) and isfinite(estimate.high)
    bounds = f" (95% interval {interval(low, high, '{:.1f}'.format)})" if known else ""
    return f"{percent(estimate.value)}{bounds}"


def points_of(estimate: Estimate | None) -> str:
    """Return a difference of fractions in percentage points with its interval."""
    if estimate is None:
        return "no cases"
    bounds = interval(100 * estimate.low, 100 * estimate.high, "{:+.1f}".format)
    return f"{100 * estimate.value:+.1f} points" + (f" ({bounds})" if bounds else "")
