"""Means with honest intervals: clustered by problem, because answers to one problem are not independent.

Source: Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), equation for clustered standard errors,
with the small-sample factor C / (C - 1) and Student's t on C - 1 degrees of freedom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt

from scipy import stats


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean in the values' unit with its 95% interval; ``n`` values in ``clusters`` problems.

    ``p``: of a difference, two-sided, that its mean is 0.
    """

    value: float
    low: float
    high: float
    n: int
    clusters: int
    p: float | None = None


def spread(estimate: Estimate, digits: int, within: tuple[float, float] = (0.0, 1.0)) -> str:
    """Return the interval as text: half its width where it is even, else its bounds; "" where it has none.

    ``within``: what the figure can be; the interval is told no further.

    >>> spread(Estimate(0.5, 0.4, 0.6, 9, 9), 2), spread(Estimate(0.25, -0.2, 0.7, 4, 4), 2)
    (' ± 0.10', ' [0.00, 0.70]')
    """
    if not isfinite(estimate.low) or not isfinite(estimate.high):
        return ""
    low, high = max(estimate.low, within[0]), min(estimate.high, within[1])
    if abs(low + high - 2 * estimate.value) < 1e-9:
        return f" ± {(high - low) / 2:.{digits}f}"
    return f" [{low:.{digits}f}, {high:.{digits}f}]"


def clustered_mean(
    values: Sequence[float], clusters: Sequence[Hashable], *, signed: bool = False
) -> Estimate:
    """Return the mean of ``values`` (n,) with a cluster-robust 95% interval.

    Where the standard error is 0 (all alike) and the values are rates in [0, 1], the interval is Wilson's
    with n = number of clusters; ``signed`` values are differences in [-1, 1], and it holds for their size.
    Their p is that of the same t, and where all are alike of the sign test. One cluster alone gives the whole
    range. ValueError on no values.

    >>> e = clustered_mean([1, 1, 0, 0], ["a", "a", "b", "b"])
    >>> e.value, e.clusters, round(e.high - e.value, 2)  # SE .5 at 1 degree of freedom
    (0.5, 2, 6.35)
    """
    if not values:
        raise ValueError("clustered_mean: no values")
    sums: dict[Hashable, list[float]] = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster].append(float(value))
    mean = sum(map(float, values)) / len(values)
    count = len(sums)
    if count < 2:
        return Estimate(mean, float("-inf"), float("inf"), len(values), count, 1.0 if signed else None)
    residuals = sum(sum(v - mean for v in members) ** 2 for members in sums.values())
    error = sqrt(count / (count - 1) * residuals) / len(values)
    if error < 1e-12 and (-1.0 if signed else 0.0) <= mean <= 1.0:
        low, high = _all_alike(mean, count, signed)
        p = min(1.0, 2 * 0.5**count) if mean else 1.0
    else:
        reach = float(stats.t.ppf(0.975, count - 1)) * error
        low, high = mean - reach, mean + reach
        p = 2 * float(stats.t.sf(abs(mean) / error, count - 1)) if error else 0.0
    return Estimate(mean, low, high, len(values), count, p if signed else None)


def _all_alike(mean: float, count: int, signed: bool) -> tuple[float, float]:
    """Return the interval of a mean without spread; a difference of 0 might be one either way."""
    low, high = wilson(abs(mean), count)
    if signed and mean == 0:
        return -high, high
    return (-high, -low) if mean < 0 else (low, high)


def wilson(rate: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a rate over n independent trials [Wilson 1927].

    >>> tuple(round(x, 3) for x in wilson(1.0, 10))
    (0.722, 1.0)
    """
    z = float(stats.norm.ppf(0.975))
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate == 0 else max(0.0, centre - reach)  # exactly, whatever rounding leaves
    return low, 1.0 if rate == 1 else min(1.0, centre + reach)
