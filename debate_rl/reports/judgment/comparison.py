"""Main figures of several runs side by side, with differences to the first.

Rows of both runs are taken together, and rows of one problem are one cluster whichever run they are of: where
the runs share problems the difference is paired by them, where they do not it is that of independent runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from debate_rl import statistics
from debate_rl.formatting import number
from debate_rl.reports.cells import behind_of, estimate_cell, interval_of
from debate_rl.reports.document import Cell, Section, Table
from debate_rl.reports.figures.rows import NO_VOTE, Labels
from debate_rl.reports.figures.study import Study
from debate_rl.reports.judgment.sections import Judged
from debate_rl.statistics import Codes, Estimate

Rows = tuple[NDArray[np.float64], Codes]
"""Values (n,) whose mean is the figure, and the problem of each."""

NAMES = (
    *("judge/accuracy", "judge/strict_accuracy", "judge/coverage", "judge/ties", "bias/position"),
    *("winner/accuracy", "winner/lift", "winner/oracle_gap", "winner/correlation"),
    *("cascade/vulnerability", "cascade/recovery", "graph/cycles"),
)


def rows_of(study: Study, name: str) -> Rows | None:
    """Return the rows whose mean a figure is; None for a figure that is not a plain mean of rows."""
    head = name.partition("/")[0]
    if head == "judge":
        return _votes(study, name)
    if name == "bias/position":
        table = study.pairs
        outcome, first, second = table["outcome"], table["first"], table["second"]
        used = (np.abs(outcome) == 1) & (first == second) & (first >= 0)
        return (outcome[used] == 1) - 0.5, study.clusters(table)[used]
    if head == "winner":
        return _winners(study, name)
    if name == "graph/cycles":
        return study.graphs["cycle"].astype(float), study.clusters(study.graphs)
    return None


def _votes(study: Study, name: str) -> Rows | None:
    table = study.pairs
    better, outcome = table["better"], table["outcome"]
    due = better != 0
    voted = due & (outcome != NO_VOTE)
    right = outcome == better
    used, values = {
        "judge/accuracy": (voted, right),
        "judge/strict_accuracy": (due, right),
        "judge/coverage": (due, voted),
        "judge/ties": (voted, outcome == 0),
    }[name]
    return values[used].astype(float), study.clusters(table)[used]


def _winners(study: Study, name: str) -> Rows | None:
    table = study.winners
    right, rights = table["right"].astype(float), table["rights"].astype(float)
    values = {
        "winner/accuracy": right,
        "winner/lift": right - rights / table["graded"],
        "winner/oracle_gap": (rights > 0) - right,
    }
    return (values[name], study.clusters(table)) if name in values else None


def difference(study: Study, base: Study, name: str) -> Estimate | None:
    """Return a figure of one run less that of another, clustered by problem over both.

    None for a figure that is not a plain mean, and where either run has no cases.
    """
    one, other = rows_of(study, name), rows_of(base, name)
    if one is None or other is None:
        return None
    labels = Labels()
    clusters = [_shared(labels, study, one[1]), _shared(labels, base, other[1])]
    first = np.repeat([True, False], [len(one[0]), len(other[0])])
    return statistics.difference(np.concatenate([one[0], other[0]]), first, np.concatenate(clusters))


def _shared(labels: Labels, study: Study, clusters: Codes) -> Codes:
    """Return the clusters numbered by their problems' names, the same in both runs."""
    codes = [labels.code(text) for text in study.names.problems.texts]
    return np.array(codes, dtype=np.int64)[clusters]


def comparison_section(runs: Sequence[Judged]) -> Section:
    """Return one table of the main figures of the runs; the first run is what the others differ from."""
    base = runs[0]
    heads = [base.run, *(head for run in runs[1:] for head in (run.run, "less the first"))]
    found = [{figure.name: figure for figure in run.figures} for run in runs]
    rows: list[tuple[Cell, ...]] = []
    for name in NAMES:
        cells = [Cell(name)]
        for run, figures in zip(runs, found, strict=True):
            cells.append(estimate_cell(figures[name], behind_of(run.run, run.filter, figures[name])))
            if run is not base:
                cells.append(_difference_cell(difference(run.study, base.study, name)))
        rows.append(tuple(cells))
    table = Table("runs", "Runs side by side", ("figure", *heads), tuple(rows), _note(runs))
    return Section("comparison", "Runs side by side", (table,))


def _difference_cell(found: Estimate | None) -> Cell:
    if found is None:
        return Cell("none")
    told, reach = number(found.value, signed=True), interval_of("bias", found)
    if reach == "none":  # no problem differs from another
        return Cell(f"{told} (no interval)", found.value)
    apart = found.low > 0 or found.high < 0
    return Cell(f"{told} ({reach})" + ("" if apart else ", not told apart"), found.value)


def _note(runs: Sequence[Judged]) -> str:
    base = set(runs[0].study.names.problems.texts)
    shared = [len(base & set(run.study.names.problems.texts)) for run in runs[1:]]
    counts = ", ".join(f"{count:,}" for count in shared)
    return (
        f"Problems shared with the first run: {counts}. Differences have 95% intervals clustered by problem "
        "over both runs: paired where problems are shared, else of independent runs. None: not a mean."
    )
