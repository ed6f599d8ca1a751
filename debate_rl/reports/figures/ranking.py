"""How well scores order solutions by truth, within one debate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import nan, sqrt


def auc(scored: Sequence[tuple[float, int]]) -> float:
    """Return the chance that a right solution has the higher score than a wrong one, equal ones count half.

    ``scored``: (score, 1 right or 0 wrong). nan without both. Mann and Whitney's U / (n m)
    [Hanley and McNeil 1982].

    >>> auc([(0.5, 1), (0.5, 0), (-1.0, 0)]), auc([(0.5, 1)])
    (0.75, nan)
    """
    right = [score for score, grade in scored if grade]
    wrong = [score for score, grade in scored if not grade]
    pairs = [(r > w) + 0.5 * (r == w) for r in right for w in wrong]
    return sum(pairs) / len(pairs) if pairs else nan


def kendall_tau_b(scored: Sequence[tuple[float, int]]) -> float:
    """Return Kendall's tau-b of score and truth [Kendall 1945]; nan where either is all alike.

    >>> kendall_tau_b([(1.0, 1), (0.0, 0), (-1.0, 0)]) == 2 / 6**0.5
    True
    """
    concordant = by_score = by_truth = 0
    for (a, x), (b, y) in combinations(scored, 2):
        order, truth = (a > b) - (a < b), x - y
        concordant += order * truth
        by_score += order != 0
        by_truth += truth != 0
    return concordant / sqrt(by_score * by_truth) if by_score and by_truth else nan
