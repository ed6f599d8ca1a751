"""The figures of a filter: all its debates together, and step by step."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.plain.forms import step_json
from inspector.plain.paper import Paper, fitted, fitting, widths_of
from learner.formatting import fixed
from transcripts import RunStore, StepRow

HEADINGS = (
    *("step", "debates", "first", "last", "winner", "judge", "votes", "cycles", "bad", "cut"),
    *("peer", "truth", "judging", "format", "tokens"),
)
"""In the order of weight: a narrow terminal shows the first ones."""
MEANINGS = (
    "first, last: right shares of the first and the last round; winner: right ones; judge: right votes; "
    "bad: things that could not be read; cut: turns at their token limit; then mean rewards"
)


def print_figures(store: RunStore, paper: Paper, filter: str = "", *, as_json: bool = False) -> None:
    """Print a line for each step that has debates of the filter, then one of all together."""
    steps, overall = store.steps(filter), store.overall(filter)
    if as_json:
        figures = {"overall": step_json(overall), "steps": [step_json(row) for row in steps]}
        paper.json({"schema": 1, "filter": filter, **figures})
        return
    lines = [HEADINGS, *map(_cells, steps), _cells(overall)]
    widths = fitting(widths_of(lines), paper.width)
    for place, cells in enumerate(lines):
        shown = zip(cells, widths, strict=False)
        line = "  ".join(fitted(cell, width, right=True) for cell, width in shown)
        paper.line(paper.paint(line, "bold" if place in (0, len(lines) - 1) else None))
    paper.line(paper.paint(MEANINGS, "dim"))


def _cells(row: StepRow) -> Sequence[str]:
    shares = (row.correct_first, row.correct_last, row.winner_right, row.judge)
    rewards = (row.peer, row.truth, row.judging, row.format)
    return (
        "all" if row.step is None else str(row.step),
        str(row.debates),
        *(fixed(share, ".3f", none="-") for share in shares),
        *map(str, (row.votes, row.cycles, row.malformed, row.truncated)),
        *(fixed(reward, "+.3f", none="-") for reward in rewards),
        str(row.tokens),
    )
