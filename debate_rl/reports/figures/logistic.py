"""Logistic regression with cluster-robust intervals, for rows that need not fit in memory as floats.

Newton's method (iteratively reweighted least squares) and the sandwich H^-1 (sum_c s_c s_c') H^-1 of the
scores summed by cluster [Liang and Zeger 1986], times C / (C - 1), with Student's t on C - 1
degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.metrics.intervals import Codes, Estimate, Numbers, student

BLOCK = 1 << 16
STEPS = 30


class NotEstimable(ValueError):
    """The data do not decide the coefficients; the message says why."""


def logistic(columns: Sequence[NDArray[Any]], y: NDArray[Any], clusters: Codes) -> list[Estimate]:
    """Return the coefficients of logit P(y = 1) on ``columns``, each (n,); an intercept is a column of ones.

    NotEstimable where there are too few clusters, where a column is a combination of others, and where the
    outcome is separated: some combination of the columns always predicts it, so no finite maximum exists
    [Albert and Anderson 1984].
    """
    indices = np.unique(clusters, return_inverse=True)[1]
    count = int(indices.max()) + 1 if len(indices) else 0
    if count <= len(columns):
        raise NotEstimable(f"{count} problems are too few for {len(columns)} coefficients")
    if len(np.unique(y)) < 2:
        raise NotEstimable("every vote has the same outcome")
    beta = _maximum(columns, y)
    inverse = np.linalg.inv(_slopes(columns, y, beta)[1])
    sums = _scores(columns, y, beta, indices, count)
    covariance = inverse @ (sums.T @ sums) @ inverse * count / (count - 1)
    errors = [sqrt(max(0.0, float(covariance[i, i]))) for i in range(len(columns))]
    return [student(b, e, len(y), count) for b, e in zip(beta.tolist(), errors, strict=True)]


def _maximum(columns: Sequence[NDArray[Any]], y: NDArray[Any]) -> Numbers:
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


def _blocks(
    columns: Sequence[NDArray[Any]], y: NDArray[Any], beta: Numbers
) -> Iterator[tuple[slice, Numbers, Numbers]]:
    """Yield (where, X, P(y = 1)) of some rows at a time."""
    for start in range(0, len(y), BLOCK):
        where = slice(start, start + BLOCK)
        x = np.stack([column[where].astype(float) for column in columns], axis=1)
        yield where, x, 1.0 / (1.0 + np.exp(-np.clip(x @ beta, -500, 500)))


def _slopes(columns: Sequence[NDArray[Any]], y: NDArray[Any], beta: Numbers) -> tuple[Numbers, Numbers]:
    """Return gradient (k,) and information (k, k) of the log-likelihood."""
    gradient, information = np.zeros(len(columns)), np.zeros((len(columns), len(columns)))
    for where, x, p in _blocks(columns, y, beta):
        gradient += x.T @ (y[where] - p)
        information += (x * (p * (1 - p))[:, None]).T @ x
    return gradient, information


def _scores(
    columns: Sequence[NDArray[Any]], y: NDArray[Any], beta: Numbers, indices: Codes, count: int
) -> Numbers:
    """Return the sum (C, k) of the rows' scores by cluster."""
    sums = np.zeros((count, len(columns)))
    for where, x, p in _blocks(columns, y, beta):
        scores = x * (y[where] - p)[:, None]
        for column in range(len(columns)):
            sums[:, column] += np.bincount(indices[where], weights=scores[:, column], minlength=count)
    return sums
