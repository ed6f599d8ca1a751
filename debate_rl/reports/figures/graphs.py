"""Whether the votes of a debate make an order: cycles, Condorcet winners, and the distance from an order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from debate_rl.reports.figures import robust
from debate_rl.reports.figures.figure import Figure, figure
from debate_rl.reports.figures.study import Study


def graph_figures(study: Study) -> Iterator[Figure]:
    """Yield shares of debates, of triples, and means over judged rounds."""
    table, clusters = study.graphs, study.clusters(study.graphs)
    yield figure("graph/cycles", robust.mean(table["cycle"], clusters), "votes:>0", "no votes")
    yield figure("graph/condorcet", robust.mean(table["condorcet"], clusters), "votes:>0", "no votes")
    rounds, clusters = study.rounds, study.clusters(study.rounds)
    triads = robust.ratio(rounds["circular"], rounds["triads"], clusters)
    yield figure("graph/circular_triads", triads, None, "no three solutions with three majorities")
    zeta = rounds["zeta"]
    known = ~np.isnan(zeta)
    found = robust.mean(zeta[known], clusters[known])
    yield figure("graph/zeta", found, None, "no round of three solutions or more with every pair decided")
    slater = rounds["slater"]
    known = ~np.isnan(slater)
    yield figure("graph/slater", robust.mean(slater[known], clusters[known]), None, "no round up to 8 agents")
