"""Orders of solutions: how well scores agree with truth, and how far a majority graph is from an order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb, nan, sqrt


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
