"""One line for each debate of a filter."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.plain.forms import row_json
from inspector.plain.paper import GRADES, Paper, fitted, fitting, widths_of
from learner.formatting import fixed, safe
from transcripts import DebateRow, RunStore

COLUMNS = ("id", "step", "problem", "winner", "right", "judge", "votes", "bad", "flags")
RIGHT_SIDE = (False, True, False, False, False, True, True, True, False)
PROBLEM, WINNER = COLUMNS.index("problem"), COLUMNS.index("winner")
LEAST = 8
"""Columns that the problem has at least."""


def print_list(
    store: RunStore,
    paper: Paper,
    filter: str = "",
    *,
    limit: int = 50,
    after: str | None = None,
    newest: bool = False,
    as_json: bool = False,
) -> tuple[int, str | None]:
    """Print a page; return how many debates the filter finds, and the id after which the next page begins.

    The id is None on the last page. On a terminal there is a line of headings, and the lines fit.
    """
    page = store.debates(filter, newest=newest, after=after, limit=limit + 1)
    rows, more = page[:limit], len(page) > limit
    if as_json:
        for row in rows:
            paper.json(row_json(row))
    elif rows:
        _print_rows(paper, rows)
    return store.count(filter), rows[-1].id if more and rows else None


def _print_rows(paper: Paper, rows: Sequence[DebateRow]) -> None:
    lines = [cells_of(row) for row in rows]
    widths = widths_of([COLUMNS, *lines] if paper.width is not None else lines)
    if paper.width is not None:
        others = sum(widths) - widths[PROBLEM] + 2 * (len(widths) - 1)
        widths[PROBLEM] = max(LEAST, min(widths[PROBLEM], paper.width - others))
        widths = fitting(widths, paper.width)
        paper.line(_line(paper, COLUMNS, widths, bold=True))
    for cells in lines:
        paper.line(_line(paper, cells, widths))


def _line(paper: Paper, cells: Sequence[str], widths: Sequence[int], *, bold: bool = False) -> str:
    columns = zip(cells, widths, RIGHT_SIDE, strict=False)
    padded = [fitted(cell, width, right=right) for cell, width, right in columns]
    padded[-1] = padded[-1].rstrip()
    if bold:
        return paper.paint("  ".join(padded), "bold")
    if len(padded) > WINNER:
        padded[WINNER] = paper.paint(padded[WINNER], GRADES.get(cells[WINNER]))
    return "  ".join(padded).rstrip()


def cells_of(row: DebateRow) -> tuple[str, ...]:
    """Return the cells of one line: right shares go from the first round to the last."""
    facts = row.facts
    shares = f"{fixed(facts.correct_first, '.2f', none='-')}->{fixed(facts.correct_last, '.2f', none='-')}"
    flags = {
        "cycle": facts.cycle,
        "CW": facts.cw,
        "WC": facts.wc,
        "missing": facts.missing,
        "ungraded": facts.ungraded,
        "truncated": facts.truncated,
    }
    return (
        row.id,
        str(row.step),
        safe(row.problem.id),
        row.winner,
        shares,
        fixed(facts.judge, ".2f", none="-"),
        str(facts.votes),
        str(facts.malformed),
        " ".join(name if count == 1 else f"{name}:{count}" for name, count in flags.items() if count),
    )
