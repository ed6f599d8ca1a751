"""The runs of a folder, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.plain.forms import as_json as json_of
from inspector.plain.paper import Paper, fitted, widths_of
from inspector.runs import FoundRun
from learner.formatting import safe


def print_runs(runs: Sequence[FoundRun], paper: Paper, *, as_json: bool = False) -> None:
    """Print the runs: name, steps with debates, debates as of the last look, and whether more may come."""
    if as_json:
        for run in runs:
            paper.json(json_of(run) | {"path": str(run.path)})
        return
    lines = [_cells(run) for run in runs]
    widths = widths_of(lines)
    for cells in lines:
        padded = (fitted(cell, width) for cell, width in zip(cells, widths, strict=True))
        paper.line("  ".join(padded).rstrip())


def _cells(run: FoundRun) -> tuple[str, ...]:
    debates = "not counted yet" if run.debates is None else f"{run.debates} debates"
    return safe(str(run.path)), f"{run.steps} steps", debates, "being written" if run.writing else ""
