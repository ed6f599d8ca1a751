"""A line for each debate of a filter, for each step with its figures, and for each run of a folder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from debate_rl.formatting import counted, fixed, safe
from debate_rl.inspector.meanings import flags_of
from debate_rl.inspector.plain.forms import row_json, run_json, step_json
from debate_rl.inspector.plain.printer import GRADES, Printer, fitting, left_out, padded_cells, widths_of
from transcripts import DebateRow, RunStore, StepRow

if TYPE_CHECKING:
    from debate_rl.inspector.overview import Overview  # loads scipy, which a list of debates does without
    from debate_rl.inspector.views.evaluated import Evaluation, EvaluationPart

Listed: TypeAlias = "tuple[Evaluation, Sequence[EvaluationPart]]"
COLUMNS = ("id", "step", "problem", "winner", "accuracy", "judge", "votes", "malformed", "flags")
LEFT = frozenset(map(COLUMNS.index, ("id", "problem", "winner", "accuracy", "flags")))
PROBLEM, WINNER = COLUMNS.index("problem"), COLUMNS.index("winner")
LEAST = 8
"""Columns that the problem has at least."""


def print_list(
    store: RunStore,
    printer: Printer,
    filter: str = "",
    *,
    limit: int = 50,
    after: str | None = None,
    newest: bool = False,
    as_json: bool = False,
) -> tuple[int, str | None]:
    """Print a page; return how many debates match, and the id after which the next page begins.

    The id is None on the last page. Above the lines are headings; on a terminal the lines fit.
    """
    page = store.debates(filter, newest=newest, after=after, limit=limit + 1)
    rows, more = page[:limit], len(page) > limit
    if as_json:
        for row in rows:
            printer.json(row_json(row))
    elif rows:
        _print_rows(printer, rows)
    return store.count(filter), rows[-1].id if more and rows else None


def _print_rows(printer: Printer, rows: Sequence[DebateRow]) -> None:
    lines = [cells_of(row) for row in rows]
    widths = widths_of([COLUMNS, *lines])
    if printer.width is not None:
        others = sum(widths) - widths[PROBLEM] + 2 * (len(widths) - 1)
        widths[PROBLEM] = max(LEAST, min(widths[PROBLEM], printer.width - others))
        widths = fitting(widths, printer.width)
    printer.line(_line(printer, COLUMNS, widths, bold=True))
    for cells in lines:
        printer.line(_line(printer, cells, widths))
    printer.lines(left_out(printer, COLUMNS, widths))


def _line(printer: Printer, cells: Sequence[str], widths: Sequence[int], *, bold: bool = False) -> str:
    shown = padded_cells(cells, widths, left=LEFT)
    shown[-1] = shown[-1].rstrip()
    if bold:
        return printer.paint("  ".join(shown), "bold")
    if len(shown) > WINNER:
        shown[WINNER] = printer.paint(shown[WINNER], GRADES.get(cells[WINNER]))
    return "  ".join(shown).rstrip()


def cells_of(row: DebateRow) -> tuple[str, ...]:
    """Return the cells of one line: accuracy goes from round 0 to the last round."""
    facts = row.facts
    first, last = (fixed(x, ".2f", none="-") for x in (facts.accuracy_round_0, facts.accuracy_last_round))
    return (
        row.id,
        str(row.step),
        safe(row.problem.id),
        row.winner,
        f"{first}->{last}",
        fixed(facts.judge_accuracy, ".2f", none="-"),
        str(facts.votes),
        str(facts.malformed),
        " ".join(flag for flag, _ in flags_of(row)),
    )


HEADINGS = (
    *("step", "debates", "accuracy, round 0", "accuracy, last round", "winner", "judge", "votes", "cycles"),
    *("malformed", "truncated", "peer", "truth", "judge reward", "format", "tokens"),
)
"""In the order of weight: a narrow terminal shows the first ones."""
MEANINGS = (("accuracy", ("winner", "judge")), ("rewards", ("peer", "truth", "judge reward", "format")))
"""What headings stand for."""


def print_figures(store: RunStore, printer: Printer, filter: str = "", *, as_json: bool = False) -> None:
    """Print a line for each step that has debates of the filter, then one of all together."""
    steps, overall = store.steps(filter), store.overall(filter)
    if as_json:
        figures = {"overall": step_json(overall), "steps": [step_json(row) for row in steps]}
        printer.json({"schema": 1, "filter": filter, **figures})
        return
    lines = [HEADINGS, *map(_figure_cells, steps), _figure_cells(overall)]
    widths = fitting(widths_of(lines), printer.width)
    for index, cells in enumerate(lines):
        line = "  ".join(padded_cells(cells, widths, left=()))
        printer.line(printer.paint(line, "bold" if index in (0, len(lines) - 1) else None))
    printer.line(printer.paint(_meanings(HEADINGS[: len(widths)]), "dim"))
    printer.lines(left_out(printer, HEADINGS, widths))


def _meanings(shown: Sequence[str]) -> str:
    """Return what the headings that are shown stand for.

    >>> _meanings(HEADINGS[:5])
    'winner: accuracy; as in metrics.jsonl'
    """
    of_each = [(what, [name for name in names if name in shown]) for what, names in MEANINGS]
    told = [f"{', '.join(names)}: {what}" for what, names in of_each if names]
    return "; ".join([*told, "as in metrics.jsonl"])


def _figure_cells(row: StepRow) -> Sequence[str]:
    shares = (row.accuracy_round_0, row.accuracy_last_round, row.winner_accuracy, row.judge_accuracy)
    rewards = (row.reward_peer, row.reward_truth, row.reward_judge, row.reward_format)
    return (
        "all" if row.step is None else str(row.step),
        str(row.debates),
        *(fixed(share, ".3f", none="-") for share in shares),
        *map(str, (row.votes, row.cycles, row.malformed, row.truncated)),
        *(fixed(reward, "+.3f", none="-") for reward in rewards),
        str(row.tokens),
    )


RUN_HEADINGS = ("run", "steps", "held-out", "judge", "alarms", "")


def print_runs(runs: Sequence[Overview], printer: Printer, *, as_json: bool = False) -> None:
    """Print the runs: steps done and planned, held-out accuracy before and after, judge accuracy, alarms.

    In a pipe there are paths and no headings; on a terminal names, which give way where lines must fit.
    """
    if as_json:
        for run in runs:
            printer.json(run_json(run))
        return
    names = [run.run.path if printer.width is None else run.run.name for run in runs]
    rows = [(safe(str(name)), *_run_cells(run)) for name, run in zip(names, runs, strict=True)]
    heads = [RUN_HEADINGS] if printer.width is not None else []
    widths = widths_of([*heads, *rows])
    if printer.width is not None:
        widths[0] = max(LEAST, min(widths[0], printer.width - sum(widths[1:]) - 2 * (len(widths) - 1)))
    widths = fitting(widths, printer.width)
    for cells in [*heads, *rows]:
        line = "  ".join(padded_cells(cells, widths, left=(0, 2, 5))).rstrip()
        printer.line(printer.paint(line, "bold" if cells is RUN_HEADINGS else None))
    printer.lines(left_out(printer, RUN_HEADINGS, widths))


def _run_cells(run: Overview) -> tuple[str, ...]:
    before, after, judge = (fixed(value, ".2f", none="-") for value in (run.before, run.after, run.judge))
    held_out = "-" if run.before is None else f"{before}->{after}"
    alarms = "-" if run.alarms is None else str(run.alarms)
    return run.progress, held_out, judge, alarms, f"{run.state}: {run.why}" if run.why else run.state


def print_evaluations(run: str, found: Sequence[Listed], printer: Printer, *, as_json: bool = False) -> None:
    """Print the evaluations of a run, each with the command that opens each of its parts."""
    for evaluation, parts in found:
        if as_json:
            listed = [{"name": p.name, "debates": p.debates, "folder": str(p.folder)} for p in parts]
            printer.json({"schema": 1, "name": evaluation.name, "step": evaluation.step, "parts": listed})
            continue
        printer.line(safe(f"{evaluation.name}, after {counted(evaluation.step, 'step')}"))
        for part in parts:
            command = shlex.join(["debate", "inspect", str(part.folder)])
            printer.line(safe(f"   {part.name}, {counted(part.debates, 'debate')}: {command}"))
    if not found and not as_json:
        printer.line(safe(f"no evaluations; debate eval {shlex.quote(run)} makes one"))
