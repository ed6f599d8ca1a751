"""Main figures of several runs side by side, with differences to the first.

Rows of both runs are taken together, and rows of one problem are one cluster whichever run they are of: where
the runs share problems the difference is paired by them, where they do not it is that of independent runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from debate_rl.formatting import number
from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Estimate, Numbered, holm
from debate_rl.reports.cells import Judged, estimate_cell, interval_of
from debate_rl.reports.document import Cell, Section, Table
from debate_rl.reports.figures.bias import equal_in_truth
from debate_rl.reports.figures.judging import pair_rows
from debate_rl.reports.figures.outcomes import winner_rows
from debate_rl.reports.figures.study import Rows, Study
from debate_rl.reports.findings import LEVEL, chance

NAMES = (
    *("judge/accuracy", "judge/strict_accuracy", "judge/coverage", "judge/ties", "bias/position"),
    *("winner/accuracy", "winner/lift", "winner/oracle_gap", "winner/correlation"),
    *("cascade/vulnerability", "cascade/recovery", "graph/cycles"),
)


def rows_of(study: Study) -> dict[str, Rows]:
    """Return the rows of the figures that are plain means, by name."""
    equal, graphs = equal_in_truth(study), study.graphs
    first_won = Rows(study.pairs["outcome"] == 1, equal, study.clusters(study.pairs))
    cycles = Rows(graphs["cycle"], np.ones(len(graphs), dtype=bool), study.clusters(graphs))
    return pair_rows(study) | winner_rows(study) | {"bias/position": first_won, "graph/cycles": cycles}


def difference(study: Study, base: Study, name: str) -> Estimate | None:
    """Return a figure of one run less that of another, clustered by problem over both.

    None for a figure that is not a plain mean, and where either run has no cases.
    """
    runs = (study, rows_of(study).get(name)), (base, rows_of(base).get(name))
    counted = [(study, rows.of(rows.counted)) for study, rows in runs if rows is not None]
    if len(counted) < 2:
        return None
    both = Numbered()  # by the problems' names, so that a problem is one cluster in both runs
    clusters = [
        np.array([both[problem] for problem in study.problems])[rows.clusters] for study, rows in counted
    ]
    values = [rows.values for _, rows in counted]
    first = np.repeat([True, False], [len(values[0]), len(values[1])])
    return intervals.difference(np.concatenate(values), first, np.concatenate(clusters))


def comparison_section(runs: Sequence[Judged]) -> Section:
    """Return one table of the main figures of the runs; the first run is what the others differ from."""
    base = runs[0]
    heads = [base.run, *(head for run in runs[1:] for head in (run.run, "less the first"))]
    by_name = [{figure.name: figure for figure in run.figures} for run in runs]
    less = {
        (name, index): difference(runs[index].study, base.study, name)
        for name in NAMES
        for index in range(1, len(runs))
    }
    known = [place for place, found in less.items() if found is not None and found.p is not None]
    chances = dict(zip(known, holm([chance(less[place]) for place in known]), strict=True))
    rows: list[tuple[Cell, ...]] = []
    for name in NAMES:
        cells = [Cell(name)]
        for index, (run, figures) in enumerate(zip(runs, by_name, strict=True)):
            cells.append(estimate_cell(figures[name], run.behind(figures[name])))
            if index:
                cells.append(_difference_cell(less[name, index], chances.get((name, index), 1.0)))
        rows.append(tuple(cells))
    table = Table("runs", "Runs side by side", ("figure", *heads), tuple(rows), _note(runs))
    return Section(
        "comparison", "Runs side by side", (table,), "main figures, and their differences to the first run"
    )


def _difference_cell(estimate: Estimate | None, p: float) -> Cell:
    if estimate is None:
        return Cell("none")
    text, reach = number(estimate.value, signed=True), interval_of("bias", estimate)
    if reach == "none":  # no problem differs from another
        return Cell(f"{text} (no interval)", estimate.value)
    return Cell(f"{text} ({reach})" + ("" if p <= LEVEL else ", not significant"), estimate.value)


def _note(runs: Sequence[Judged]) -> str:
    base = runs[0].study.problems.keys()
    shared = [len(base & run.study.problems.keys()) for run in runs[1:]]
    counts = ", ".join(f"{count:,}" for count in shared)
    return (
        f"Problems shared with the first run: {counts}. Differences have 95% intervals clustered by problem "
        "over both runs: paired where problems are shared, else of independent runs. Not significant: p is "
        f"over {LEVEL}, adjusted for all differences of this table (Holm 1979). None: not a mean."
    )
