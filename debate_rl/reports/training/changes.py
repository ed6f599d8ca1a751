"""How a figure changed from the beginning of a run to its end, with an interval from blocks of steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt

import numpy as np
from scipy import stats

from debate_rl.reports.training.curves import Numbers

LEAST = 12
"""Values below which a change is not judged: four in each third."""
BLOCKS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """Means of the first, middle and last third, and last less first with its 95% interval.

    With fewer than 12 values the bounds are infinite.
    """

    early: float
    middle: float
    late: float
    low: float
    high: float
    n: int

    @property
    def value(self) -> float:
        """The last third less the first."""
        return self.late - self.early

    @property
    def direction(self) -> str:
        """One of "up", "down", "flat", "too few steps"."""
        if self.n < LEAST:
            return "too few steps"
        return "up" if self.low > 0 else "down" if self.high < 0 else "flat"


def change(values: Numbers) -> Change | None:
    """Return the change over values in the order of the steps; None of nothing.

    The interval is Welch's on means of up to 6 blocks of neighbouring steps in each third.

    >>> found = change(np.array([0.0, 1.0, 0.0, 1.0, 5.0, 5.0, 5.0, 5.0, 10.0, 11.0, 10.0, 11.0]))
    >>> found.early, found.late, found.value, found.direction
    (0.5, 10.5, 10.0, 'up')
    """
    if not len(values):
        return None
    third = max(1, len(values) // 3)
    early, late = values[:third], values[-third:]
    middle = values[third:-third] if len(values) > 2 * third else values
    enough = len(values) >= LEAST
    low, high = _welch(_blocks(early), _blocks(late)) if enough else (-inf, inf)
    return Change(float(early.mean()), float(middle.mean()), float(late.mean()), low, high, len(values))


def _blocks(values: Numbers) -> Numbers:
    return np.array([part.mean() for part in np.array_split(values, min(BLOCKS, len(values)))])


def _welch(one: Numbers, other: Numbers) -> tuple[float, float]:
    """Return the 95% interval of the mean of ``other`` less that of ``one``."""
    difference = float(other.mean() - one.mean())
    if min(len(one), len(other)) < 2:
        return -inf, inf
    with np.errstate(over="ignore", invalid="ignore"):
        shares = float(one.var(ddof=1)) / len(one), float(other.var(ddof=1)) / len(other)
    total = sum(shares)
    if not isfinite(total):
        return -inf, inf
    if total <= 0:
        return difference, difference
    freedom = 1 / sum(  # of parts of the sum: squares of the shares themselves can overflow
        (share / total) ** 2 / (len(found) - 1) for share, found in zip(shares, (one, other), strict=True)
    )
    reach = float(stats.t.ppf(0.975, freedom)) * sqrt(total)
    return difference - reach, difference + reach
