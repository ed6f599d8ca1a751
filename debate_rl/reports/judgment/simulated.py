"""What was put into simulated debates, beside what the report finds in them."""

from __future__ import annotations

from collections.abc import Mapping

from debate_rl.formatting import number
from debate_rl.reports.document import Cell, Section, Table
from debate_rl.reports.judgment.sections import Judged
from debate_rl.reports.judgment.told import bounds_of, interval_of
from debate_rl.statistics import Estimate

COLUMNS = ("figure", "put in", "found", "95% interval", "in the interval", "n", "problems")
NOTE = (
    "The judges of these debates are simulated with known accuracy and biases. Of many such intervals 95 in "
    "a hundred hold what was put in."
)


def simulation_section(judged: Judged, expected: Mapping[str, float], *, prefix: str = "") -> Section:
    """Return a table of the figures that are known beforehand."""
    found = {figure.name: figure.estimate for figure in judged.figures}
    rows = tuple(_row(name, value, found.get(name)) for name, value in expected.items())
    named = f"{judged.run}: " if prefix else ""
    table = Table("put-in", "What was put in, and what was found", COLUMNS, rows, NOTE)
    return Section(f"{prefix}simulation", f"{named}Simulated judges", (table,))


def _row(name: str, value: float, found: Estimate | None) -> tuple[Cell, ...]:
    signed = bounds_of(name)[0] < 0
    first = Cell(name), Cell(number(value, signed=signed), value)
    if found is None:
        return *first, *(Cell("none") for _ in COLUMNS[2:])
    reach, inside = interval_of(name, found), found.low <= value <= found.high
    verdict = Cell("yes" if inside else "no", inside, tone="good" if inside else "warn")
    return (
        *first,
        Cell(number(found.value, signed=signed), found.value),
        Cell(reach),
        Cell("none") if reach == "none" else verdict,
        Cell(f"{found.n:,}", found.n),
        Cell(f"{found.clusters:,}", found.clusters),
    )
