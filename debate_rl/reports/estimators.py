"""Estimators of judgment figures: logistic regression, slopes, correlations, and orders of solutions.

Intervals are clustered by problem; those of means are in ``debate_rl.metrics.intervals``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate_rl.metrics.intervals import Codes, Estimate, Numbers, interval, student

BLOCK = 1 << 16
"""Rows that a regression has in memory as floats at a time."""
STEPS = 30
Columns = Sequence[NDArray[Any]]


class NotEstimable(ValueError):
    """The data do not decide the coefficients; the message says why."""


def logistic(columns: Columns, y: NDArray[Any], clusters: Codes) -> list[Estimate]:
    """Return the coefficients of logit P(y = 1) on ``columns``, each (n,); an intercept is a column of ones.

    Newton's method (iteratively reweighted least squares) and the sandwich H^-1 (sum_c s_c s_c') H^-1 of the
    scores summed by cluster [Liang and Zeger 1986], times C / (C - 1), with Student's t on C - 1 degrees of
    freedom. NotEstimable where there are too few clusters, where a column is a combination of others, and
    where the outcome is separated: some combination of the columns always predicts it, so no finite maximum
    exists [Albert and Anderson 1984].
    """
    indices = np.unique(clusters, return_inverse=True)[1]
    count = int(indices.max()) + 1 if len(indices) else 0
    if count <= len(columns):
        raise NotEstimable(f"{count} problems are too few for {len(columns)} coefficients")
    if len(np.unique(y)) < 2:
        raise NotEstimable("every vote has the same outcome")
    beta = _maximum(columns, y)
    inverse = np.linalg.inv(_slopes(columns, y, beta)[1])
    sums = np.zeros((count, len(columns)))
    for where, x, p in _blocks(columns, y, beta):
        scores = x * (y[where] - p)[:, None]
        for column in range(len(columns)):
            sums[:, column] += np.bincount(indices[where], weights=scores[:, column], minlength=count)
    covariance = inverse @ (sums.T @ sums) @ inverse * count / (count - 1)
    errors = [sqrt(max(0.0, float(covariance[i, i]))) for i in range(len(columns))]
    return [student(b, e, len(y), count) for b, e in zip(beta.tolist(), errors, strict=True)]


def _maximum(columns: Columns, y: NDArray[Any]) -> Numbers:
    beta = np.zeros(len(columns))
    for _ in range(STEPS):
        gradient, hessian = _slopes(columns, y, beta)
        if np.linalg.cond(hessian) > 1e12:
            same = not beta.any()
            raise NotEstimable("a column is a combination of others" if same else "the votes are separated")
        step = np.linalg.solve(hessian, gradient)
        beta = beta + step
        if float(np.abs(step).max()) < 1e-9:
            return beta
    raise NotEstimable("the votes are separated: some combination of the columns predicts every outcome")


def _blocks(columns: Columns, y: NDArray[Any], beta: Numbers) -> Iterator[tuple[slice, Numbers, Numbers]]:
    """Yield (where, X, P(y = 1)) of some rows at a time."""
    for start in range(0, len(y), BLOCK):
        where = slice(start, start + BLOCK)
        x = np.stack([column[where].astype(float) for column in columns], axis=1)
        yield where, x, 1.0 / (1.0 + np.exp(-np.clip(x @ beta, -500, 500)))


def _slopes(columns: Columns, y: NDArray[Any], beta: Numbers) -> tuple[Numbers, Numbers]:
    """Return gradient (k,) and information (k, k) of the log-likelihood."""
    gradient, information = np.zeros(len(columns)), np.zeros((len(columns), len(columns)))
    for where, x, p in _blocks(columns, y, beta):
        gradient += x.T @ (y[where] - p)
        information += (x * (p * (1 - p))[:, None]).T @ x
    return gradient, information


def slope(x: ArrayLike, y: ArrayLike, clusters: Codes) -> Estimate | None:
    """Return the least-squares slope of y on x; None where x does not vary."""
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


def auc(scored: Sequence[tuple[float, int]]) -> float:
    """Return the chance that a right solution has the higher score than a wrong one, equal ones count half.

    ``scored``: (score, 1 right or 0 wrong). nan without both [Hanley and McNeil 1982].
    """
    right = [score for score, grade in scored if grade]
    wrong = [score for score, grade in scored if not grade]
    pairs = [(r > w) + 0.5 * (r == w) for r in right for w in wrong]
    return sum(pairs) / len(pairs) if pairs else nan


def kendall_tau_b(scored: Sequence[tuple[float, int]]) -> float:
    """Return Kendall's tau-b of score and truth [Kendall 1945]; nan where either is all alike."""
    concordant = by_score = by_truth = 0
    for (a, x), (b, y) in combinations(scored, 2):
        order, truth = (a > b) - (a < b), x - y
        concordant += order * truth
        by_score += order != 0
        by_truth += truth != 0
    return concordant / sqrt(by_score * by_truth) if by_score and by_truth else nan


def circular_triads(edges: Collection[tuple[int, int]]) -> tuple[int, int]:
    """Return how many triples beat each other in a circle, and how many have all three pairs decided.

    >>> circular_triads({(0, 1), (1, 2), (2, 0)}), circular_triads({(0, 1), (1, 2)})
    ((1, 1), (0, 0))
    """
    circular = decided = 0
    for triple in combinations(sorted({agent for edge in edges for agent in edge}), 3):
        inside = [edge for edge in edges if edge[0] in triple and edge[1] in triple]
        if len(inside) == 3:
            decided += 1
            circular += len({winner for winner, _ in inside}) == 3
    return circular, decided


def kendall_zeta(edges: Collection[tuple[int, int]], agents: int) -> float:
    """Return 1 - d / d_max with d circular triads: 1 an order, 0 as circular as can be [Kendall, Smith 1940].

    nan unless every pair of at least three agents is decided.

    >>> kendall_zeta({(0, 1), (1, 2), (2, 0)}, 3), kendall_zeta({(0, 1), (1, 2), (0, 2)}, 3)
    (0.0, 1.0)
    """
    if agents < 3 or len(edges) != comb(agents, 2):
        return nan
    most = (agents**3 - agents) / 24 if agents % 2 else (agents**3 - 4 * agents) / 24
    return 1.0 - circular_triads(edges)[0] / most


@lru_cache(maxsize=1 << 14)
def slater_distance(edges: frozenset[tuple[int, int]]) -> int:
    """Return the fewest edges to turn round so that no cycle is left [Slater 1961].

    The best order is built from the top: what a set of agents costs is known from its subsets, 2^n n steps.

    >>> slater_distance(frozenset({(0, 1), (1, 2), (2, 0)})), slater_distance(frozenset({(0, 1)}))
    (1, 0)
    """
    agents = sorted({agent for edge in edges for agent in edge})
    beaten_by = [sum(1 << agents.index(w) for w, lost in edges if lost == agent) for agent in agents]
    everyone = (1 << len(agents)) - 1
    cost = [0] + [len(edges)] * everyone
    for placed in range(1, everyone + 1):
        cost[placed] = min(
            cost[placed ^ 1 << last] + (beaten_by[last] & ~placed).bit_count()
            for last in range(len(agents))
            if placed >> last & 1
        )
    return cost[everyone]
