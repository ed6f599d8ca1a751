"""What the peer vote finds: the winner against one answer, the majority, the best; scores against truth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from debate_rl.reports.figures import robust
from debate_rl.reports.figures.figure import Figure, figure
from debate_rl.reports.figures.study import Study
from debate_rl.statistics import Estimate

GRADED = "(winner:right OR winner:wrong)"
LINE = 0.3
"""Below this correlation of winner and right the votes say too little about truth to be a reward."""


def winner_figures(study: Study) -> Iterator[Figure]:
    """Yield the winner's accuracy and its differences, and how scores order the answers by truth."""
    table = study.winners
    clusters = study.clusters(table)
    right = table["right"].astype(float)
    graded, rights = table["graded"].astype(float), table["rights"].astype(float)
    share = rights / graded
    mixed = (share > 0) & (share < 1)
    where = _mixed_filter(study)
    yield figure("winner/correct", robust.mean(right, clusters), GRADED)
    yield figure("winner/lift", robust.mean(right - share, clusters, signed=True), GRADED)
    yield figure("winner/mixed", robust.mean(right[mixed], clusters[mixed]), where)
    gap = robust.mean((rights > 0) - right, clusters, signed=True)
    yield figure("winner/oracle_gap", gap, GRADED)
    majority = robust.mean(right - table["majority"], clusters, signed=True)
    yield figure("winner/minus_majority", majority, GRADED)
    for name in ("auc", "tau"):
        known = ~np.isnan(table[name])
        found = robust.mean(table[name][known], clusters[known], signed=name == "tau")
        yield figure("winner/auc" if name == "auc" else "winner/tau_b", found, None)
    ones = np.ones(len(right))
    found = robust.correlation(np.stack([graded, ones, rights, ones, rights, right]), clusters)
    yield figure("winner/correlation", found, GRADED, "winners or answers are all alike", flag_of(found))


def flag_of(found: Estimate | None) -> str:
    """Return what to be warned of where the correlation is below 0.3; "" where it is not.

    >>> flag_of(Estimate(0.1, 0.0, 0.2, 9, 9)), flag_of(Estimate(0.3, 0.2, 0.4, 9, 9))
    ('below 0.3', '')
    """
    return f"below {LINE}" if found is not None and found.value < LINE else ""


def _mixed_filter(study: Study) -> str | None:
    """``correct.last`` is about the last round, which is the last judged one only with a final ballot."""
    final = bool(study.of_debate("final", study.winners).all())
    return f"{GRADED} correct.last:>0 correct.last:<1" if final else None
