"""What all formats need to know of tables and charts."""

from __future__ import annotations

from debate_rl.formatting import figure
from debate_rl.reports.document import Cell, Chart, Table


def numeric(table: Table) -> list[bool]:
    """Return for each column whether it holds numbers, which are set to the right."""
    columns = [[row[place].text for row in table.rows] for place in range(len(table.columns))]
    return [bool(texts) and all(_is_number(text) for text in texts) for texts in columns]


def wordy(table: Table) -> list[bool]:
    """Return for each column but the first whether it holds sentences, which may be broken into lines."""
    columns = [[row[place].text for row in table.rows] for place in range(len(table.columns))]
    return [place > 0 and max(map(len, texts), default=0) > 40 for place, texts in enumerate(columns)]


def _is_number(text: str) -> bool:
    return text in ("", "none", "-") or text.lstrip("+-.")[:1].isdigit()


def data_of(chart: Chart) -> Table:
    """Return the numbers that a chart draws, a row for each place of x."""
    places = sorted({x for series in chart.series for x in series.x})
    columns = [chart.x_label]
    found: list[dict[float, float | None]] = []
    for series in chart.series:
        ends = (("low", series.low), ("high", series.high)) if series.low and series.high else ()
        for name, values in ((chart.y_label, series.y), *ends):
            columns.append(f"{series.label}: {name}" if len(chart.series) > 1 else name)
            found.append(dict(zip(series.x, values, strict=True)))
    rows = tuple(
        (Cell(_tick(chart, x)), *(Cell(figure(column.get(x)), column.get(x)) for column in found))
        for x in places
    )
    return Table(f"{chart.name}-data", chart.title, tuple(columns), rows)


def _tick(chart: Chart, x: float) -> str:
    place = int(x) if x == int(x) else -1
    return chart.ticks[place] if 0 <= place < len(chart.ticks) else f"{x:g}"
