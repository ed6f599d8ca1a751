"""Slopes and correlations with intervals clustered by problem."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from debate_rl.metrics.intervals import Codes, Estimate, Numbers, interval


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
