"""Signs that votes are traded or that all agree: praise without truth, favours returned, answers alike.

The mean of all peer rewards says nothing, because votes within a debate sum to zero: the winner's is
followed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from debate_rl.reports.figures import robust
from debate_rl.reports.figures.figure import Figure, figure
from debate_rl.reports.figures.study import Study
from debate_rl.reports.figures.winners import GRADED

PER = 100.0
"""Steps to which a slope is told."""
ONE_STEP = "all debates are of one step"


def collusion_figures(study: Study) -> Iterator[Figure]:
    """Yield the slopes of the winner's peer reward and truth and their difference, reciprocity, entropy."""
    table, clusters = study.winners, study.clusters(study.winners)
    steps = study.of_debate("step", table) / PER
    peer, right = (1.0 + table["score"]) / 2, table["right"].astype(float)
    for name, values in (("peer", peer), ("truth", right), ("gap", peer - right)):
        found = robust.slope(steps, values, clusters)
        yield figure(f"collusion/{name}_trend", found, GRADED, ONE_STEP)
    talk = study.talk
    clusters = study.clusters(talk)
    returned = robust.ratio(talk["given"], talk["dyads"], clusters, signed=True)
    why = "no two agents voted about each other on pairs equal in truth"
    yield figure("collusion/reciprocity", returned, None, why)
    known = ~np.isnan(talk["entropy"])
    entropy, clusters = talk["entropy"][known], clusters[known]
    yield figure("collusion/entropy", robust.mean(entropy, clusters), None, "no debate with two answers")
    trend = robust.slope((study.of_debate("step", talk) / PER)[known], entropy, clusters)
    yield figure("collusion/entropy_trend", trend, None, ONE_STEP)
