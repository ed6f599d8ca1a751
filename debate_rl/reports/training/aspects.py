"""What a solution is made of: its form, an answer, an approach, parts that are right, a judgment of it."""

from __future__ import annotations

from typing import NamedTuple

from debate_rl.reports.cells import interval_cell, number_cell
from debate_rl.reports.document import Cell, Table
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.measures import change


class Aspect(NamedTuple):
    """One aspect: the figure that measures it, "" for none, and why a run may not have it."""

    name: str
    figure: str
    why: str


ASPECTS = (
    Aspect("form", "format/valid", "not in metrics.jsonl"),
    Aspect("no final answer", "missing", "not in metrics.jsonl"),
    Aspect("final answer right", "accuracy", "no solution was graded"),
    Aspect(
        "approach", "", "no rule can tell whether it is valid; debate eval asks a model (verifier.diagnose)"
    ),
    Aspect("partial credit", "score", "no problem has parts that are right by themselves"),
    Aspect("judgment", "judge/accuracy", "no vote on a pair of which exactly one side is right"),
)


def aspects_table(run: Run, index: int) -> Table:
    """Return the table of all aspects, early and late; of one without a figure it says why."""
    columns = ("aspect", "figure", "early", "late", "late less early", "why there is none")
    note = "A gain in form is not a gain in content: read these together."
    rows = tuple(_row(run, aspect) for aspect in ASPECTS)
    return Table(f"phases/{index + 1}/aspects", f"Aspects of a solution: {run.name}", columns, rows, note)


def _row(run: Run, aspect: Aspect) -> tuple[Cell, ...]:
    moved = change(run.curves.of(aspect.figure)[1]) if aspect.figure else None
    name, figure = Cell(aspect.name), Cell(aspect.figure or "-")
    if moved is None:
        return name, figure, *(number_cell(None),) * 3, Cell(aspect.why)
    gained = interval_cell(moved.value, moved.low, moved.high)
    return name, figure, number_cell(moved.early), number_cell(moved.late), gained, Cell("")
