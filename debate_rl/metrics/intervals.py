"""Estimates with 95% intervals clustered by problem, because answers to one problem are not independent.

Source: Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), equation for clustered standard errors,
with the small-sample factor C / (C - 1) and Student's t on C - 1 degrees of freedom. Ratios, differences,
correlations and slopes are functions of sums. Their standard error is computed from their influence values,
summed within each cluster [Binder 1983].

Figures of several runs vary with the run and with the problems that the runs share: see ``crossed_mean``.

If all values are equal, they have no spread, and a t interval would be a single point. If their range is
known, they then have the interval of ``alike``, which holds for any values; otherwise they have no interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, hypot, inf, isfinite, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]
Bounded = tuple[float, float, float]
"""A value and the bounds of its interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean in the unit of the values with its 95% interval, from ``n`` values in ``clusters`` problems.

    ``p``: for a difference, the two-sided p-value of the hypothesis that its mean is 0.
    """

    value: float
    low: float
    high: float
    n: int
    clusters: int
    p: float | None = None

    @property
    def excludes_zero(self) -> bool:
        """True if the interval of a difference excludes 0, so that its sign is clear."""
        return self.low > 0 or self.high < 0


class Numbered(dict[Any, int]):
    """Numbers keys from 0 in the order in which they are first looked up.

    >>> numbered = Numbered()
    >>> [numbered[text] for text in ("a", "b", "a")], list(numbered)
    ([0, 1, 0], ['a', 'b'])
    """

    def __missing__(self, key: Hashable) -> int:
        return self.setdefault(key, len(self))


Ordered = TypeVar("Ordered", NDArray[Any], range)


def thirds(values: Ordered) -> tuple[Ordered, Ordered, Ordered]:
    """Return the first, middle and last third of a sequence in order of steps: early, middle, late.

    The middle third includes the remainder. If there are fewer than three values, it is the whole sequence.

    >>> thirds(range(8)), thirds(range(2))
    ((range(0, 2), range(2, 6), range(6, 8)), (range(0, 1), range(0, 2), range(1, 2)))
    """
    third = max(1, len(values) // 3)
    middle = values[third:-third] if len(values) > 2 * third else values
    return values[:third], middle, values[-third:]


def spread(estimate: Estimate, digits: int, within: tuple[float, float] = (0.0, 1.0)) -> str:
    """Return the interval as text: half its width if it is symmetric, otherwise its bounds, or "" without
    one.

    ``within``: the range of possible values, to which the interval is clipped.

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

    ``signed`` values are differences in [-1, 1] and have a p-value; other values are rates in [0, 1]. Values
    without spread have the interval of ``alike`` over the clusters, but no interval if they are outside the
    range or all in one cluster. ValueError if there are no values.

    >>> e = clustered_mean([1, 1, 0, 0], ["a", "a", "b", "b"])
    >>> e.value, e.clusters, round(e.high - e.value, 2)  # SE .5 at 1 degree of freedom
    (0.5, 2, 6.35)
    """
    estimate = mean(values, np.array([*map(Numbered().__getitem__, clusters)]), signed=signed)
    if estimate is None:
        raise ValueError("clustered_mean: no values")
    return estimate


def crossed_mean(
    runs: Sequence[Mapping[Any, tuple[float, float]]], *, signed: bool = False, most: float = 1.0
) -> Estimate | None:
    """Return the mean of the runs' means with a 95% interval that covers new runs and new problems.

    Return None without any values.

    ``runs``: for each run, the sum and the number of the values on each problem. The mean of a run is the
    total sum divided by the total number. Runs may share all problems, some or none. Values lie in [0, most],
    or in [-most, most] if ``signed``. ``n`` and ``clusters`` of the estimate count runs. A single run is an
    exception: they count its values and problems, and its interval does not cover new runs. Runs on a single
    problem have no interval, because they tell nothing about other problems.

    Runs and problems are crossed random effects. The variance is the sum of two terms. The first is the
    variance of the runs' means divided by their number (Student's). The second is the mean covariance of two
    runs' means through the problems that both have; it is at least 0, and large enough that the sum is at
    least the variance between problems alone. If all runs have all problems, this is the estimator of the
    analysis of variance [Searle, Casella, McCulloch 1992]. The degrees of freedom are Satterthwaite's [1946].
    The interval is never narrower than Student's over the runs, since 2 or 3 runs may agree by chance. Runs
    without a common problem have exactly Student's interval.

    >>> runs = [{"a": (0, 1), "b": (1, 1)}, {"a": (1, 1), "b": (1, 1)}]
    >>> e = crossed_mean(runs)  # means .5 and 1; 12.71 times .25
    >>> e.value, round(e.high - e.value, 3), e.clusters
    (0.75, 3.177, 2)
    """
    known = [run for run in runs if run]
    if len(known) < 2:
        return _of_one_run(known[0], signed=signed, most=most) if known else None
    means = np.array([sum(t for t, _ in run.values()) / sum(c for _, c in run.values()) for run in known])
    influences: dict[Hashable, list[float]] = defaultdict(list)
    for run, own in zip(known, means, strict=True):
        values = sum(count for _, count in run.values())
        for problem, (total, count) in run.items():
            influences[problem].append((total - own * count) / values)
    value, number, problems = float(means.mean()), len(known), len(influences)
    sums = np.array([sum(each) for each in influences.values()])
    squares = np.array([sum(one * one for one in each) for each in influences.values()])
    factor = problems / max(problems - 1, 1)
    of_runs = float(means.var(ddof=1)) / number
    of_problems = factor * float(sums @ sums) / number**2
    shared = factor * float((sums * sums - squares).sum()) / (number * (number - 1))
    shared = max(shared, of_problems - of_runs, 0.0)
    if of_runs + shared < (most * NO_SPREAD) ** 2 or problems < 2:
        alone = range(min(number, problems))
        found = _scaled(clustered_mean([value / most] * len(alone), alone, signed=signed), most)
        return replace(found, n=number, clusters=number)
    return _crossed(value, of_runs, shared, number, problems, signed=signed)


def _crossed(
    value: float, of_runs: float, shared: float, number: int, problems: int, *, signed: bool
) -> Estimate:
    """Return the wider of two intervals: from both variances, and Student's interval over the runs."""
    parts = of_runs**2 / (number - 1) + shared**2 / max(problems - 1, 1)
    both = student(value, sqrt(of_runs + shared), number, number, (of_runs + shared) ** 2 / parts)
    alone = student(value, sqrt(of_runs), number, number)
    wider = max(both, alone, key=lambda one: one.high)
    return wider if signed else replace(wider, p=None)


def _of_one_run(run: Mapping[Any, tuple[float, float]], *, signed: bool, most: float) -> Estimate | None:
    """Return the estimate of one run, clustered by problem. It does not cover the variation between runs."""
    totals, counts = (np.array([pair[place] for pair in run.values()], dtype=float) for place in (0, 1))
    found = ratio(totals / most, counts, np.arange(len(run)), signed=signed)
    return None if found is None else _scaled(found, most)


def _scaled(estimate: Estimate, by: float) -> Estimate:
    return replace(estimate, value=by * estimate.value, low=by * estimate.low, high=by * estimate.high)


def wilson(rate: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval for a rate over n independent trials [Wilson 1927].

    >>> tuple(round(x, 3) for x in wilson(1.0, 10))
    (0.722, 1.0)
    """
    from scipy import stats  # this import takes half a second; listing debates does not need it

    z = float(stats.norm.ppf(0.975))
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate == 0 else max(0.0, centre - reach)  # exactly 0, without a rounding error
    return low, 1.0 if rate == 1 else min(1.0, centre + reach)


NO_SPREAD = 1e-12


def mean(values: ArrayLike, clusters: Codes, *, signed: bool = False) -> Estimate | None:
    """Return the mean of ``values`` (n,) as ``clustered_mean`` does, or None without values.

    >>> e = mean([1, 1, 0, 0], np.array([7, 7, 9, 9]))
    >>> e.value, e.clusters, round(e.high - e.value, 2)
    (0.5, 2, 6.35)
    """
    numbers = np.asarray(values, dtype=float)
    return ratio(numbers, np.ones(len(numbers)), clusters, signed=signed)


def ratio(top: ArrayLike, bottom: ArrayLike, clusters: Codes, *, signed: bool = False) -> Estimate | None:
    """Return sum(top) / sum(bottom) over rows (n,), or None if sum(bottom) is 0.

    ``n`` of the estimate is the sum of ``bottom``. ``signed``: whether the ratio is a difference, which has a
    p-value, and not a rate.
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


def alike(value: float, clusters: int, lowest: float, highest: float) -> tuple[float, float]:
    """Return a 95% interval for a mean of values in [lowest, highest] if every observed cluster has
    ``value``.

    With 97.5% confidence, at least a fraction 0.025^(1/clusters) of all clusters has this value [Clopper,
    Pearson 1934]. For each bound, all other clusters are assumed to lie at that end of the range.

    >>> tuple(round(x, 3) for x in alike(1.0, 3, -1.0, 1.0))  # three gains of 1 may be one in three of -1
    (-0.415, 1.0)
    """
    share = 0.025 ** (1 / clusters)
    return share * value + (1 - share) * lowest, share * value + (1 - share) * highest


def _all_alike(estimate: Estimate, signed: bool) -> Estimate:
    """Return the estimate with the interval of ``alike``; p is the level at which that interval touches 0."""
    lowest = -1.0 if signed else 0.0
    if not lowest <= estimate.value <= 1.0:
        return estimate
    low, high = alike(estimate.value, estimate.clusters, lowest, 1.0)
    p = min(1.0, 2 / (1 + abs(estimate.value)) ** estimate.clusters) if signed else None
    return replace(estimate, low=low, high=high, p=p)


def difference(values: ArrayLike, first: ArrayLike, clusters: Codes) -> Estimate | None:
    """Return the mean of the values where ``first`` is true minus the mean of the others.

    Return None if a side has no rows. If a cluster has rows on both sides, its influence values on both means
    are summed, as in a paired comparison. Each side has the small-sample factor of its own clusters. The
    degrees of freedom are Welch's; if each row is a cluster, the interval is Welch's. If all values of a side
    are equal, the interval is combined from the intervals of the two means (``apart``). With fewer than two
    clusters on a side, the bounds are infinite.

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
    least = NO_SPREAD * min(1.0, float(np.abs(numbers).max()))
    if min(variances) <= least**2:
        return _of_alike(unknown, ones, others, both=max(variances) <= least**2)
    error = float(np.linalg.norm(cluster_sums(up - down, clusters)))
    if error <= least:  # every cluster has rows on both sides, and all have the same difference
        return unknown if signed or float(numbers.max()) > 1 else _all_alike(unknown, signed=True)
    if not isfinite(total := sum(variances)):
        return unknown
    parts = sum(
        (variance / total) ** 2 / (one.clusters - 1) for variance, one in zip(variances, means, strict=True)
    )
    return student(unknown.value, error, len(numbers), count, min(1 / parts, count - 1))


def _influence(numbers: Numbers, side: NDArray[np.bool_], of: Estimate) -> Numbers:
    """Return the influence of each row (n,) on the mean of its side; 0 for rows of the other side."""
    factor = sqrt(of.clusters / (of.clusters - 1)) / of.n
    return np.where(side, factor * (numbers - of.value), 0.0)


def _of_alike(unknown: Estimate, ones: Estimate, others: Estimate, *, both: bool) -> Estimate:
    """Return the difference of two means of which at least one has no spread, or ``unknown`` without an
    interval.

    p follows from the bound nearer to 0. If ``both`` means have no spread, p is at least the chance that
    these clusters separate by side, as in Fisher's exact test.
    """
    from scipy import stats

    value, low, high = apart(*((one.value, one.low, one.high) for one in (ones, others)))
    if not isfinite(low) or not value:
        return replace(unknown, low=low, high=high)
    z = float(stats.norm.ppf(0.975)) * abs(value) / (value - low if value > 0 else high - value)
    p = 2 * float(stats.norm.sf(z))
    if both:
        split = comb(ones.clusters + others.clusters, ones.clusters)
        p = min(1.0, max(p, (2 if ones.clusters == others.clusters else 1) / split))
    return replace(unknown, low=low, high=high, p=p)


def apart(one: Bounded, other: Bounded) -> Bounded:
    """Return the difference of two independent figures with its interval, from their intervals [Newcombe
    1998].

    This interval is too wide for two figures of the same problems: use a paired interval for these.

    >>> apart((0.5, 0.4, 0.6), (0.3, 0.2, 0.4))[0], round(apart((0.5, 0.4, 0.6), (0.3, 0.2, 0.4))[2], 3)
    (0.2, 0.341)
    """
    value = one[0] - other[0]
    return (
        value,
        value - hypot(one[0] - one[1], other[2] - other[0]),
        value + hypot(one[2] - one[0], other[0] - other[1]),
    )


def holm(chances: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple tests by Holm's method [Holm 1979].

    The chance of at least one false rejection at .05 is at most 5%.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    ranked = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted, largest = [0.0] * len(chances), 0.0
    for place, index in enumerate(ranked):
        largest = max(largest, min(1.0, (len(chances) - place) * chances[index]))
        adjusted[index] = largest
    return adjusted


def interval(value: float, influence: Numbers, clusters: Codes, n: int, *, signed: bool) -> Estimate:
    """Return the estimate whose rows have the influence values ``influence`` (n,), which sum to 0.

    The bounds are infinite if there is no spread between clusters, as with a single cluster.
    """
    sums = cluster_sums(influence, clusters)
    count = len(sums)
    error = sqrt(count / (count - 1) * float(sums @ sums)) if count > 1 else 0.0
    if error < NO_SPREAD:
        return Estimate(value, -inf, inf, n, count, 1.0 if signed else None)
    estimate = student(value, error, n, count)
    return estimate if signed else replace(estimate, p=None)


def student(value: float, error: float, n: int, count: int, freedom: float | None = None) -> Estimate:
    """Return an estimate whose interval and p-value follow from the standard error ``error``, by Student's t.

    The degrees of freedom are ``freedom``, or ``count`` - 1 if it is None.
    """
    from scipy import stats

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
