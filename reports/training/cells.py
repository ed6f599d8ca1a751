"""Numbers as a report writes them."""

from __future__ import annotations

from math import isfinite

from reports.document import Behind, Cell, Tone

NONE = "-"


def written(value: float | None, digits: int = 3) -> str:
    """Return a number for people, - where there is none.

    >>> written(0.12345), written(1234567.0), written(2e-5), written(None), written(0.0), written(3.0)
    ('0.123', '1,234,567', '2e-05', '-', '0', '3')
    """
    if value is None or not isfinite(value):
        return NONE
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.{digits}f}" if 10**-digits <= abs(value) < 1e4 else f"{value:.{digits}g}"


def number(value: float | None, *, digits: int = 3, behind: Behind | None = None, tone: Tone = "") -> Cell:
    """Return a cell with a number."""
    known = value if value is not None and isfinite(value) else None
    return Cell(written(value, digits), known, behind, tone)


def interval(
    value: float | None, low: float | None, high: float | None, *, behind: Behind | None = None
) -> Cell:
    """Return a cell with a number and the bounds of its interval.

    >>> interval(0.5, 0.25, 0.75).text
    '0.500 [0.250, 0.750]'
    """
    if value is None or low is None or high is None or not (isfinite(low) and isfinite(high)):
        return number(value, behind=behind)
    return Cell(f"{value:.3f} [{low:.3f}, {high:.3f}]", value, behind)


def between(low: float, high: float) -> str:
    """Return the bounds of an interval, "" where they are not known."""
    return f" [{written(low)}, {written(high)}]" if isfinite(low) and isfinite(high) else ""
