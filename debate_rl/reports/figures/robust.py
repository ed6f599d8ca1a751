"""Estimates from rows clustered by problem: ratios, differences, correlations and slopes, each linearised.

Each is a function of sums; its error is that of the sums over clusters of its influence values [Miller, arXiv
2411.00640; Binder 1983], with the factor C / (C - 1) and Student's t on C - 1 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from debate_rl.reports.figures.columns import Codes, Numbers
from debate_rl.statistics import Estimate, clustered_mean

SAME = 1e-12


def mean(values: ArrayLike, clusters: Codes, *, signed: bool = False) -> Estimate | None:
    """Return the mean of ``values`` (n,), as ``debate_rl.statistics.clustered_mean``; None of nothing.

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
    found = interval(value, (tops - value * bottoms) / total, clusters, round(total), signed=signed)
    return found if isfinite(found.high) or found.clusters < 2 else _all_alike(found, signed)


def _all_alike(found: Estimate, signed: bool) -> Estimate:
    """Return the estimate with the interval of a mean without spread over as many problems."""
    value = 0.0 if abs(found.value) < SAME else found.value
    return replace(clustered_mean([value] * found.clusters, range(found.clusters), signed=signed), n=found.n)


def difference(values: ArrayLike, first: ArrayLike, clusters: Codes) -> Estimate | None:
    """Return the mean of the values where ``first`` minus the mean of the others; None where either is empty.

    >>> difference([1.0, 0.0, 0.0], [True, True, False], np.array([0, 1, 2])).value
    0.5
    """
    numbers, here = np.asarray(values, dtype=float), np.asarray(first, dtype=bool)
    if here.all() or not here.any():
        return None
    means = (float(numbers[here].mean()), float(numbers[~here].mean()))
    influence = np.where(here, (numbers - means[0]) / here.sum(), -(numbers - means[1]) / (~here).sum())
    return interval(means[0] - means[1], influence, clusters, len(numbers), signed=True)


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
    one, sx, sy, sxx, syy, sxy = sums
    both = (sxy - mx * sy - my * sx + mx * my * one) / sqrt(vx * vy)
    squares = (sxx - 2 * mx * sx + mx * mx * one) / vx + (syy - 2 * my * sy + my * my * one) / vy
    return interval(r, (both - r / 2 * squares) / count, clusters, round(count), signed=True)


def interval(value: float, influence: Numbers, clusters: Codes, n: int, *, signed: bool) -> Estimate:
    """Return the estimate whose rows (n,) have these influence values; they sum to 0.

    Without any spread between clusters, as with one alone, the bounds are infinite.
    """
    sums = cluster_sums(influence, clusters)
    count = len(sums)
    error = sqrt(count / (count - 1) * float(sums @ sums)) if count > 1 else 0.0
    if error < SAME:
        return Estimate(value, -inf, inf, n, count, 1.0 if signed else None)
    reach = float(stats.t.ppf(0.975, count - 1)) * error
    p = 2 * float(stats.t.sf(abs(value) / error, count - 1)) if signed else None
    return Estimate(value, value - reach, value + reach, n, count, p)


def cluster_sums(values: Numbers, clusters: Codes) -> Numbers:
    """Return the sum of the values of each cluster that has a row.

    >>> cluster_sums(np.array([1.0, 2.0, 4.0]), np.array([5, 2, 5]))
    array([2., 5.])
    """
    places = np.unique(clusters, return_inverse=True)[1]
    return np.bincount(places, weights=values).astype(np.float64) if len(values) else np.zeros(0)
