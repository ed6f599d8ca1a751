"""Estimates with 95% intervals clustered by problem, because answers to one problem are not independent.

Source: Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), equation for clustered standard errors,
with the small-sample factor C / (C - 1) and Student's t on C - 1 degrees of freedom. Ratios, differences,
correlations and slopes are functions of sums: their error is that of the sums over clusters of their
influence values [Binder 1983].
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import comb, hypot, inf, isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]


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


class Numbered(dict[Any, int]):
    """Whole numbers from 0 for keys, in the order in which they are first looked up.

    >>> numbered = Numbered()
    >>> [numbered[text] for text in ("a", "b", "a")], list(numbered)
    ([0, 1, 0], ['a', 'b'])
    """

    def __missing__(self, key: Hashable) -> int:
        return self.setdefault(key, len(self))


def spread(estimate: Estimate, digits: int, within: tuple[float, float] = (0.0, 1.0)) -> str:
    """Return the interval as text: half its width where it is even, else its bounds; "" where it has none.

    ``within``: what the figure can be; the interval goes no further.

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
    estimate = mean(values, np.array([*map(Numbered().__getitem__, clusters)]), signed=signed)
    if estimate is None:
        raise ValueError("clustered_mean: no values")
    return estimate


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


NO_SPREAD = 1e-12


def mean(values: ArrayLike, clusters: Codes, *, signed: bool = False) -> Estimate | None:
    """Return the mean of ``values`` (n,), as ``clustered_mean``; None of nothing.

    >>> e = mean([1, 1, 0, 0], np.array([7, 7, 9, 9]))
    >>> e.value, e.clusters, round(e.high - e.value, 2)
    (0.5, 2, 6.35)
    """
    numbers = np.asarray(values, dtype=float)
    return ratio(numbers, np.ones(len(numbers)), clusters, signed=signed)


def ratio(top: ArrayLike, bottom: ArrayLike, clusters: Codes, *, signed: bool = False) -> Estimate | None:
    """Return sum(top) / sum(bottom) of rows (n,); n of the estimate is the sum of ``bottom``; None where 0.

    ``signed``: a difference, with its p; otherwise a rate, whose interval where all are alike is Wilson's.
    """
    tops, bottoms = np.asarray(top, dtype=float), np.asarray(bottom, dtype=float)
    counted = bottoms != 0
    tops, bottoms, clusters = tops[counted], bottoms[counted], clusters[counted]
    total = float(bottoms.sum())
    if not total:
        return None
    value = float(tops.sum()) / total
    estimate = interval(value, (tops - value * bottoms) / total, clusters, round(total), signed=signed)
    return estimate if isfinite(estimate.high) or estimate.clusters < 2 else _all_alike(estimate, signed)


def _all_alike(estimate: Estimate, signed: bool) -> Estimate:
    """Return the estimate with the interval of a mean without spread; a difference of 0 might be either."""
    value = 0.0 if abs(estimate.value) < NO_SPREAD else estimate.value
    if not (-1.0 if signed else 0.0) <= value <= 1.0:
        return replace(estimate, low=value, high=value, p=0.0 if signed else None)
    low, high = wilson(abs(value), estimate.clusters)
    if signed and value == 0:
        low = -high
    elif value < 0:
        low, high = -high, -low
    p = min(1.0, 2 * 0.5**estimate.clusters) if value else 1.0
    return replace(estimate, value=value, low=low, high=high, p=p if signed else None)


def difference(values: ArrayLike, first: ArrayLike, clusters: Codes) -> Estimate | None:
    """Return the mean of the values where ``first`` minus the mean of the others; None where either is empty.

    Clusters may have rows on both sides, which are then compared within them. Each side has the small-sample
    factor of its own clusters and Student's t Welch's degrees of freedom, so that rows of their own clusters
    give Welch's interval. A side whose values are all alike is as unsure as its mean is: the intervals of
    the means are put together [Newcombe 1998]. There is no interval with fewer than two clusters on a side.

    >>> difference([1.0, 0.0, 0.0], [True, True, False], np.array([0, 1, 2])).value
    0.5
    """
    numbers, here = np.asarray(values, dtype=float), np.asarray(first, dtype=bool)
    signed = bool(len(numbers)) and float(numbers.min()) < 0
    ones, others = (mean(numbers[side], clusters[side], signed=signed) for side in (here, ~here))
    if ones is None or others is None:
        return None
    means, count = (ones, others), len(np.unique(clusters))
    unknown = Estimate(ones.value - others.value, -inf, inf, len(numbers), count, 1.0)
    if min(one.clusters for one in means) < 2:
        return unknown
    up, down = (_influence(numbers, side, one) for side, one in zip((here, ~here), means, strict=True))
    variances = [float(np.square(cluster_sums(part, clusters)).sum()) for part in (up, down)]
    if min(variances) < NO_SPREAD**2:
        rates = float(numbers.max()) <= 1 and float(numbers.min()) >= -1
        return _newcombe(ones, others, count, alike=max(variances) < NO_SPREAD**2) if rates else unknown
    error = float(np.linalg.norm(cluster_sums(up - down, clusters)))
    if error < NO_SPREAD:
        return unknown
    parts = sum(variance**2 / (one.clusters - 1) for variance, one in zip(variances, means, strict=True))
    freedom = min(sum(variances) ** 2 / parts, count - 1)
    return student(unknown.value, error, len(numbers), count, freedom)


def _influence(numbers: Numbers, side: NDArray[np.bool_], of: Estimate) -> Numbers:
    """Return what each row (n,) adds to its side's mean, by a small-sample factor; 0 for the other side."""
    factor = sqrt(of.clusters / (of.clusters - 1)) / of.n
    return np.where(side, factor * (numbers - of.value), 0.0)


def _newcombe(ones: Estimate, others: Estimate, clusters: int, *, alike: bool) -> Estimate:
    """Return a difference of two means with their intervals put together.

    p is that of the bound nearer to 0; where both sides are ``alike`` and apart, the chance that so many
    clusters fall apart by side, as in Fisher's exact test.
    """
    value = ones.value - others.value
    below = hypot(ones.value - ones.low, others.high - others.value)
    above = hypot(ones.high - ones.value, others.value - others.low)
    z = float(stats.norm.ppf(0.975)) * abs(value) / (below if value > 0 else above)
    p = 2 * float(stats.norm.sf(z))
    if alike:
        split = comb(ones.clusters + others.clusters, ones.clusters)
        p = min(1.0, (2 if ones.clusters == others.clusters else 1) / split) if value else 1.0
    return Estimate(value, value - below, value + above, ones.n + others.n, clusters, p)


def slope(x: ArrayLike, y: ArrayLike, clusters: Codes) -> Estimate | None:
    """Return the least-squares slope of y on x; None where x does not vary.

    >>> slope([0, 1, 2], [1, 3, 5], np.array([0, 1, 2])).value
    2.0
    """
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not len(across) or np.ptp(across) == 0:
        return None
    centred = across - across.mean()
    total = float(centred @ centred)
    value = float(centred @ up) / total
    rest = up - up.mean() - value * centred
    return interval(value, centred * rest / total, clusters, len(up), signed=True)


def correlation(sums: Numbers, clusters: Codes) -> Estimate | None:
    """Return Pearson's r of the sums (6, n) of a row's 1, x, y, x x, y y, x y; None where one does not vary.

    n of the estimate counts the observations behind the rows.
    """
    count, x, y, xx, yy, xy = sums.sum(axis=1)
    if not count:
        return None
    mx, my = x / count, y / count
    vx, vy, cov = xx / count - mx * mx, yy / count - my * my, xy / count - mx * my
    if vx <= 1e-12 or vy <= 1e-12:
        return None
    r = float(cov / sqrt(vx * vy))
    ones, sx, sy, sxx, syy, sxy = sums
    both = (sxy - mx * sy - my * sx + mx * my * ones) / sqrt(vx * vy)
    squares = (sxx - 2 * mx * sx + mx * mx * ones) / vx + (syy - 2 * my * sy + my * my * ones) / vy
    return interval(r, (both - r / 2 * squares) / count, clusters, round(count), signed=True)


def interval(value: float, influence: Numbers, clusters: Codes, n: int, *, signed: bool) -> Estimate:
    """Return the estimate whose rows (n,) have these influence values; they sum to 0.

    Without any spread between clusters, as with one alone, the bounds are infinite.
    """
    sums = cluster_sums(influence, clusters)
    count = len(sums)
    error = sqrt(count / (count - 1) * float(sums @ sums)) if count > 1 else 0.0
    if error < NO_SPREAD:
        return Estimate(value, -inf, inf, n, count, 1.0 if signed else None)
    estimate = student(value, error, n, count)
    return estimate if signed else replace(estimate, p=None)


def student(value: float, error: float, n: int, count: int, freedom: float | None = None) -> Estimate:
    """Return an estimate with its standard error, by Student's t on ``freedom`` or ``count`` - 1 degrees."""
    degrees = count - 1 if freedom is None else freedom
    reach = float(stats.t.ppf(0.975, degrees)) * error
    p = 2 * float(stats.t.sf(abs(value) / error, degrees)) if error else None
    return Estimate(value, value - reach, value + reach, n, count, p)


def cluster_sums(values: Numbers, clusters: Codes) -> Numbers:
    """Return the sum of the values of each cluster that has a row.

    >>> cluster_sums(np.array([1.0, 2.0, 4.0]), np.array([5, 2, 5]))
    array([2., 5.])
    """
    indices = np.unique(clusters, return_inverse=True)[1]
    return np.bincount(indices, weights=values).astype(np.float64) if len(values) else np.zeros(0)
