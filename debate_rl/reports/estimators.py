"""Estimators of judgment figures: logistic regression, slopes, correlations, and orders of solutions.

Intervals are clustered by problem. Those of means are in ``debate_rl.metrics.intervals``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate_rl.metrics.intervals import Codes, Estimate, Numbers, interval, student

BLOCK = 1 << 16
"""Maximum number of rows of a regression in memory as floats."""
STEPS = 30
Scored = Sequence[tuple[float, int]]
"""The score of each solution, and 1 if it is right, else 0."""


class NotEstimable(ValueError):
    """The data do not determine the coefficients. The message says why."""


def logistic(columns: Sequence[NDArray[Any]], y: NDArray[Any], clusters: Codes) -> list[Estimate]:
    """Return the coefficients of logit P(y = 1) on ``columns``, each (n,). An intercept is a column of ones.

    Newton's method (iteratively reweighted least squares) and the sandwich H^-1 (sum_c s_c s_c') H^-1 of the
    scores summed by cluster [Liang and Zeger 1986], times C / (C - 1), with Student's t on C - 1 degrees of
    freedom. NotEstimable with too few clusters, if a column is a linear combination of others, and if a
    combination of columns always predicts the outcome (separation), so that no finite maximum exists [Albert
    and Anderson 1984].
    """
    indices = np.unique(clusters, return_inverse=True)[1]
    count, k = int(indices.max()) + 1 if len(indices) else 0, len(columns)
    if count <= k:
        raise NotEstimable(f"{count} problems are too few for {k} coefficients")
    if len(np.unique(y)) < 2:
        raise NotEstimable("every vote has the same outcome")

    def slopes(beta: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return gradient (k,), information (k, k) and the scores of each cluster (count, k)."""
        gradient, information, sums = np.zeros(k), np.zeros((k, k)), np.zeros((count, k))
        for start in range(0, len(y), BLOCK):
            where = slice(start, start + BLOCK)
            x = np.stack([column[where].astype(float) for column in columns], axis=1)
            p = 1.0 / (1.0 + np.exp(-np.clip(x @ beta, -500, 500)))
            scores = x * (y[where] - p)[:, None]
            for column in range(k):
                sums[:, column] += np.bincount(indices[where], weights=scores[:, column], minlength=count)
            gradient += x.T @ (y[where] - p)
            information += (x * (p * (1 - p))[:, None]).T @ x
        return gradient, information, sums

    beta = np.zeros(k)
    for _ in range(STEPS):
        gradient, hessian, _ = slopes(beta)
        if np.linalg.cond(hessian) > 1e12:
            same = not beta.any()
            raise NotEstimable(
                "a column is a linear combination of others" if same else "the votes are perfectly separated"
            )
        step = np.linalg.solve(hessian, gradient)
        beta = beta + step
        if float(np.abs(step).max()) < 1e-9:
            break
    else:
        raise NotEstimable(
            "the votes are perfectly separated: a linear combination of columns predicts every outcome"
        )
    _, hessian, sums = slopes(beta)
    inverse = np.linalg.inv(hessian)
    covariance = inverse @ (sums.T @ sums) @ inverse * count / (count - 1)
    errors = [sqrt(max(0.0, float(covariance[i, i]))) for i in range(k)]
    return [student(b, e, len(y), count) for b, e in zip(beta.tolist(), errors, strict=True)]


def slope(x: ArrayLike, y: ArrayLike, clusters: Codes) -> Estimate | None:
    """Return the least-squares slope of y on x, or None if x is constant."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not len(across) or np.ptp(across) == 0:
        return None
    centred = across - across.mean()
    total = float(centred @ centred)
    value = float(centred @ up) / total
    rest = up - up.mean() - value * centred
    return interval(value, centred * rest / total, clusters, len(up), signed=True)


def correlation(sums: Numbers, clusters: Codes) -> Estimate | None:
    """Return Pearson's r from sums (6, n) of 1, x, y, xx, yy, xy per row. None if x or y is constant.

    The estimate's n is the number of observations in all rows.
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


def auc(scored: Scored) -> float:
    """Return the chance that a right solution has a higher score than a wrong one; ties count half.

    nan unless there are right and wrong solutions [Hanley and McNeil 1982].
    """
    right, wrong = ([score for score, grade in scored if grade == which] for which in (1, 0))
    pairs = [(r > w) + 0.5 * (r == w) for r in right for w in wrong]
    return sum(pairs) / len(pairs) if pairs else nan


def kendall_tau_b(scored: Scored) -> float:
    """Return Kendall's tau-b of score and truth [Kendall 1945]; nan if either is constant."""
    orders = [((a > b) - (a < b), x - y) for (a, x), (b, y) in combinations(scored, 2)]
    by_score, by_truth = (sum(pair[place] != 0 for pair in orders) for place in (0, 1))
    concordant = sum(order * truth for order, truth in orders)
    return concordant / sqrt(by_score * by_truth) if by_score and by_truth else nan


def circular_triads(edges: Collection[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of circular triples, and the number of triples with all three pairs decided.

    >>> circular_triads({(0, 1), (1, 2), (2, 0)}), circular_triads({(0, 1), (1, 2)})
    ((1, 1), (0, 0))
    """
    triples = combinations(sorted({agent for edge in edges for agent in edge}), 3)
    inside = ([winner for winner, loser in edges if winner in t and loser in t] for t in triples)
    decided = [len(set(winners)) for winners in inside if len(winners) == 3]
    return decided.count(3), len(decided)


def kendall_zeta(edges: Collection[tuple[int, int]], agents: int) -> float:
    """Return 1 - d / d_max for d circular triads: 1 for a full order, 0 for the most circular triads.

    nan unless every pair of at least three agents is decided [Kendall, Smith 1940].

    >>> kendall_zeta({(0, 1), (1, 2), (2, 0)}, 3), kendall_zeta({(0, 1), (1, 2), (0, 2)}, 3)
    (0.0, 1.0)
    """
    if agents < 3 or len(edges) != comb(agents, 2):
        return nan
    most = (agents**3 - agents) / 24 if agents % 2 else (agents**3 - 4 * agents) / 24
    return 1.0 - circular_triads(edges)[0] / most


@lru_cache(maxsize=1 << 14)
def slater_distance(edges: frozenset[tuple[int, int]]) -> int:
    """Return the minimum number of edges to reverse so that no cycle is left [Slater 1961].

    Dynamic programming builds the best order from the top: the cost of a set of agents follows from its
    subsets, in 2^n n steps.

    >>> slater_distance(frozenset({(0, 1), (1, 2), (2, 0)})), slater_distance(frozenset({(0, 1)}))
    (1, 0)
    """
    agents = sorted({agent for edge in edges for agent in edge})
    beaten_by = [sum(1 << agents.index(w) for w, lost in edges if lost == agent) for agent in agents]
    cost = [0]
    for placed in range(1, 1 << len(agents)):
        last = (i for i in range(len(agents)) if placed >> i & 1)
        cost.append(min(cost[placed ^ 1 << i] + (beaten_by[i] & ~placed).bit_count() for i in last))
    return cost[-1]
