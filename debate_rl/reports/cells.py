"""Numbers as cells: how many digits, how far an interval can go, and which debates are behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite

from debate_rl.formatting import interval, number, percent, short
from debate_rl.metrics.intervals import Estimate
from debate_rl.reports.document import Behind, Cell, Tone
from debate_rl.reports.figures.figure import Figure
from debate_rl.reports.figures.study import Study

UNBOUNDED = ("regression/", "collusion/peer", "collusion/truth", "collusion/gap", "collusion/entropy_trend")
SIGNED = (
    *("bias", "winner/lift", "winner/minus_majority", "winner/tau_b", "winner/correlation"),
    *("cascade/first_listed", "collusion/reciprocity"),
)


def bounds_of(name: str) -> tuple[float, float]:
    """Return the least and the most that a figure can be.

    >>> bounds_of("judge/accuracy/round/1"), bounds_of("winner/lift"), bounds_of("graph/slater")
    ((0.0, 1.0), (-1.0, 1.0), (0.0, inf))
    """
    if name.startswith(UNBOUNDED):
        return -inf, inf
    if name == "graph/slater":
        return 0.0, inf
    return (-1.0, 1.0) if name.startswith(SIGNED) else (0.0, 1.0)


def interval_of(name: str, estimate: Estimate) -> str:
    """Return the 95% interval as far as the figure can go, "none" where it has none.

    >>> interval_of("judge/accuracy", Estimate(0.9, 0.75, 1.05, 9, 9))
    '0.750 to 1.000'
    """
    if not (isfinite(estimate.low) and isfinite(estimate.high)):
        return "none"
    low, high = bounds_of(name)
    write = partial(number, signed=low < 0)
    return interval(max(estimate.low, low), min(estimate.high, high), write)


def estimate_cell(figure: Figure, behind: Behind | None) -> Cell:
    """Return the estimate with the debates behind it, marked where there is something to be warned of."""
    if figure.estimate is None:
        return Cell("none")
    text = number(figure.estimate.value, signed=bounds_of(figure.name)[0] < 0)
    flagged = f"{text} ({figure.flag})" if figure.flag else text
    return Cell(flagged, figure.estimate.value, behind, "warn" if figure.flag else "")


def combined_filter(filter: str, other: str | None) -> str | None:
    """Return the filter that finds what two filters both find; None where one cannot be written.

    >>> combined_filter("step:>3 OR winner:none", "flip:CW"), combined_filter("step:3", None)
    ('(step:>3 OR winner:none) flip:CW', None)
    """
    if other is None:
        return None
    if not filter or not other:
        return filter or other
    return f"({filter}) {other}"


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

    def behind(self, figure: Figure) -> Behind | None:
        """Return the debates behind a figure."""
        filter = combined_filter(self.filter, figure.filter)
        return None if filter is None else Behind(self.run, filter)


def count_cell(count: int) -> Cell:
    """Return a cell with a whole number."""
    return Cell(f"{count:,}", count)


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


def bounds_text(low: float, high: float) -> str:
    """Return the bounds of an interval, "" where they are not known."""
    return f" [{short(low)}, {short(high)}]" if isfinite(low) and isfinite(high) else ""


def percent_of(estimate: Estimate, *, short: bool = False) -> str:
    """Return a share in percent with its interval.

    >>> estimate = Estimate(0.7123, 0.66, 0.76, 100, 20)
    >>> percent_of(estimate), percent_of(estimate, short=True)
    ('71.2% (95% interval 66.0 to 76.0)', '71.2%')
    """
    text = percent(estimate.value)
    if short or not (isfinite(estimate.low) and isfinite(estimate.high)):
        return text
    low, high = max(0.0, 100 * estimate.low), min(100.0, 100 * estimate.high)
    return f"{text} (95% interval {interval(low, high, '{:.1f}'.format)})"


def points_of(estimate: Estimate) -> str:
    """Return a difference of shares in percentage points with its interval.

    >>> points_of(Estimate(0.05, -0.01, 0.11, 100, 20))
    '+5.0 points (-1.0 to +11.0)'
    """
    text = f"{100 * estimate.value:+.1f} points"
    bounds = interval(100 * estimate.low, 100 * estimate.high, "{:+.1f}".format)
    return f"{text} ({bounds})" if bounds else text
