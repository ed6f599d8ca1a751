"""Numbers of a report as cells."""

from __future__ import annotations

from math import isfinite

from debate_rl.formatting import number, short
from debate_rl.reports.document import Behind, Cell, Tone


def number_cell(
    value: float | None, *, digits: int = 3, behind: Behind | None = None, tone: Tone = ""
) -> Cell:
    """Return a cell with a number."""
    known = value if value is not None and isfinite(value) else None
    return Cell(short(value, digits), known, behind, tone)


def interval_cell(
    value: float | None, low: float | None, high: float | None, *, behind: Behind | None = None
) -> Cell:
    """Return a cell with a number and the bounds of its interval.

    >>> interval_cell(0.5, 0.25, 0.75).text
    '0.500 [0.250, 0.750]'
    """
    if value is None or low is None or high is None or not (isfinite(low) and isfinite(high)):
        return number_cell(value, behind=behind)
    return Cell(f"{number(value)} [{number(low)}, {number(high)}]", value, behind)


def between(low: float, high: float) -> str:
    """Return the bounds of an interval, "" where they are not known."""
    return f" [{short(low)}, {short(high)}]" if isfinite(low) and isfinite(high) else ""
