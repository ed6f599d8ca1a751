"""What debates come to: winners, answers that change, orders among solutions, and signs of collusion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Codes, Estimate, Numbers
from debate_rl.reports.figures.figure import Figure, figure
from debate_rl.reports.figures.study import Rows, Study
from debate_rl.reports.figures.trends import correlation, slope

GRADED = "(winner:right OR winner:wrong)"
LEAST_CORRELATION = 0.3
"""Below this correlation of winner and right the votes say too little about truth to be a reward."""


def winner_rows(study: Study) -> dict[str, Rows]:
    """Return the graded winners as the rows of their accuracy, its differences and the share by lot."""
    table, clusters = study.winners, study.clusters(study.winners)
    right, rights = table["right"].astype(float), table["rights"].astype(float)
    share, every = rights / table["graded"], np.ones(len(right), dtype=bool)
    return {
        "winner/accuracy": Rows(right, every, clusters),
        "winner/lift": Rows(right - share, every, clusters),
        "winner/mixed_accuracy": Rows(right, (share > 0) & (share < 1), clusters),
        "winner/oracle_gap": Rows((rights > 0) - right, every, clusters),
        "winner/minus_majority": Rows(right - table["majority"], every, clusters),
        "winner/drawn": Rows(table["drawn"].astype(float), every, clusters),
    }


def winner_figures(study: Study) -> Iterator[Figure]:
    """Yield the winner's accuracy and its differences, and how scores order the answers by truth."""
    for name, rows in winner_rows(study).items():
        mixed = name == "winner/mixed_accuracy"
        estimate = intervals.ratio(*rows, signed=not name.endswith(("accuracy", "drawn")))
        yield figure(name, estimate, _mixed_filter(study) if mixed else GRADED)
    table, clusters = study.winners, study.clusters(study.winners)
    yield figure("winner/auc", _mean_of_known(table["auc"], clusters), None)
    yield figure("winner/tau_b", _mean_of_known(table["tau"], clusters, signed=True), None)
    right, rights, graded = (table[name].astype(float) for name in ("right", "rights", "graded"))
    ones = np.ones(len(right))
    linked = correlation(np.stack([graded, ones, rights, ones, rights, right]), clusters)
    yield figure("winner/correlation", linked, GRADED, "winners or answers are all alike", flag_of(linked))


def _mean_of_known(values: Numbers, clusters: Codes, *, signed: bool = False) -> Estimate | None:
    """Return the mean of the values that are not nan."""
    return intervals.ratio(values, ~np.isnan(values), clusters, signed=signed)


def flag_of(estimate: Estimate | None) -> str:
    """Return what to be warned of where the correlation is below 0.3 with its interval; "" where it is not.

    >>> flag_of(Estimate(0.1, 0.0, 0.2, 9, 9)), flag_of(Estimate(0.2, 0.1, 0.3, 9, 9))
    ('below 0.3', '')
    """
    return f"below {LEAST_CORRELATION}" if estimate is not None and estimate.high < LEAST_CORRELATION else ""


def _mixed_filter(study: Study) -> str | None:
    """``accuracy.last_round`` is about the last round: the last judged one only with a final ballot."""
    final = bool(study.of_debate("final", study.winners).all())
    return f"{GRADED} accuracy.last_round:>0 accuracy.last_round:<1" if final else None


def cascade_figures(study: Study) -> Iterator[Figure]:
    """Yield the flip matrix as shares of all steps, two conditional ones, and the first agent's excess."""
    table, clusters = study.flips, study.clusters(study.flips)
    counts = {name: table[name].astype(float) for name in ("cc", "cw", "wc", "ww")}
    every = sum(counts.values())
    why = "no agent was graded in two rounds in a row"
    for name, count in counts.items():
        share = intervals.ratio(count, every, clusters)
        yield figure(f"flip/{name.upper()}", share, "(flip:CC OR flip:CW OR flip:WC OR flip:WW)", why)
    vulnerable = intervals.ratio(counts["cw"], counts["cc"] + counts["cw"], clusters)
    yield figure("cascade/vulnerability", vulnerable, "(flip:CC OR flip:CW)", "no agent was right before")
    recovered = intervals.ratio(counts["wc"], counts["wc"] + counts["ww"], clusters)
    yield figure("cascade/recovery", recovered, "(flip:WC OR flip:WW)", "no agent was wrong before")
    adopted = intervals.mean(study.adoptions["excess"], study.clusters(study.adoptions), signed=True)
    yield figure("cascade/first_listed", adopted, None, "nobody took an answer from some of the others")


def graph_figures(study: Study) -> Iterator[Figure]:
    """Yield shares of debates, of triples, and means over judged rounds."""
    table, clusters = study.graphs, study.clusters(study.graphs)
    yield figure("graph/cycles", intervals.mean(table["cycle"], clusters), "votes:>0", "no votes")
    yield figure("graph/condorcet", intervals.mean(table["condorcet"], clusters), "votes:>0", "no votes")
    rounds, clusters = study.rounds, study.clusters(study.rounds)
    triads = intervals.ratio(rounds["circular"], rounds["triads"], clusters)
    yield figure("graph/circular_triads", triads, None, "no three solutions with three majorities")
    zeta, slater = (_mean_of_known(rounds[name], clusters) for name in ("zeta", "slater"))
    yield figure("graph/zeta", zeta, None, "no round of three solutions or more with every pair decided")
    yield figure("graph/slater", slater, None, "no round up to 8 agents")


PER = 100.0
"""The steps that a slope is over."""
ONE_STEP = "all debates are of one step"


def collusion_figures(study: Study) -> Iterator[Figure]:
    """Yield the slopes of the winner's peer reward and truth and their difference, reciprocity, entropy.

    The mean of all peer rewards says nothing, because votes within a debate sum to zero.
    """
    table, clusters = study.winners, study.clusters(study.winners)
    steps = study.of_debate("step", table) / PER
    peer, right = (1.0 + table["score"]) / 2, table["right"].astype(float)
    for name, values in (("peer", peer), ("truth", right), ("gap", peer - right)):
        yield figure(f"collusion/{name}_trend", slope(steps, values, clusters), GRADED, ONE_STEP)
    talk = study.talk
    clusters = study.clusters(talk)
    returned = intervals.ratio(talk["given"], talk["dyads"], clusters, signed=True)
    why = "no two agents voted about each other on pairs equal in truth"
    yield figure("collusion/reciprocity", returned, None, why)
    known = ~np.isnan(talk["entropy"])
    entropy, clusters = talk["entropy"][known], clusters[known]
    yield figure("collusion/entropy", intervals.mean(entropy, clusters), None, "no debate with two answers")
    trend = slope((study.of_debate("step", talk) / PER)[known], entropy, clusters)
    yield figure("collusion/entropy_trend", trend, None, ONE_STEP)
