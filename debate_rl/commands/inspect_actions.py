"""The actions of ``debate inspect``: those that only read, those that write, and how they are performed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import to_builtins

from debate_rl.commands.console import one_line, progress_bar
from debate_rl.formatting import safe
from debate_rl.inspector.actions import READING, Action, LineOptions, turn_of
from debate_rl.inspector.plain import Printer, print_runs, print_view, printer_for
from debate_rl.inspector.runs import find_runs, run_at
from debate_rl.inspector.views.branches import branch_blocks
from transcripts import RunStore, compile_filter
from transcripts.annotations import Kind


def print_lines(name: str, rest: Sequence[str], options: LineOptions) -> None:
    """Perform an action, by default ls. For a folder of runs without an action or options, list the runs."""
    printer = replace(printer_for(sys.stdout), as_json=options.json, note=_remark, index=index_text)
    runs = find_runs(options.run)
    given = [option for option in SOME if getattr(options, option) not in (None, False, "")]
    if not name and not given and run_at(options.run, runs) is None:
        from debate_rl.inspector.runs import overviews  # loads scipy

        print_runs(overviews(runs), printer)
        return
    action = ACTIONS[name or "ls"]
    for option in given:
        if option not in action.options:
            raise ValueError(f"--{option}: {name or 'ls'} does not use this option")
    with opened(one_run(options.run)) as store:
        action.do(rest, options, store, printer)


def one_run(name: str) -> Path:
    """Return the folder of the run at a path. Raise ValueError if there are several runs."""
    runs = find_runs(name)
    if len(runs) > 1:
        named = ", ".join(run.name for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise ValueError(f"{name}: contains {len(runs)} runs; name one of them: {named}")
    return runs[0].path


@contextmanager
def opened(run: Path) -> Iterator[RunStore]:
    """Open a run with a progress bar for its index, and print a note on unreadable data."""
    with _bar("index") as tell:
        store = RunStore.open(run, tell=tell)
    with store:
        if damage := store.damage:
            first = one_line(damage[0])
            print(
                one_line(f"debate: note: {run}: {len(damage)} parts cannot be read: {first}"), file=sys.stderr
            )
        yield store


def index_text(store: RunStore, filter: str) -> None:
    """Build the full text of a run with a progress bar, if the filter searches text."""
    if not compile_filter(filter).words:
        return
    with _bar("full text") as tell:
        store.index_text(tell=tell)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows the work done and the total as a bar on stderr, only in a terminal."""
    progress = progress_bar()
    task = progress.add_task(name, total=None)

    def tell(done: int, total: int) -> None:
        progress.start()  # a second call does nothing
        progress.update(task, completed=done, total=total)

    try:
        yield tell
    finally:
        progress.stop()


def _remark(text: str) -> None:
    sys.stdout.flush()
    print(one_line(text), file=sys.stderr)


WANTED: Mapping[Kind, str] = {
    "star": "name a debate, turn or pair: star 12.3; star 12.3 off removes it",
    "note": 'name a debate, turn or pair and quote the text: note 12.3 "hedges"; "" removes it',
    "label": 'name a debate, turn or pair and its label: label 12.3/1.0 wrong; "" removes it',
}


def _annotate(
    kind: Kind, rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer
) -> None:
    id, *words = rest or [""]
    if kind == "star":
        words = {(): ["yes"], ("off",): [""]}.get(tuple(words), [])
    if not id or len(words) != 1:
        raise ValueError(f"{kind}: {WANTED[kind]}")
    done = store.annotate(kind, id, words[0])
    if printer.as_json:
        printer.json({"schema": 1, **to_builtins(done)})
    else:
        printer.line(
            safe(
                f"{id}: {kind} "
                + ("removed" if not done.value else "set" if kind == "star" else repr(done.value))
            )
        )


def _branch(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if len(rest) != 1 or options.turn is None:
        raise ValueError("branch: name one debate and a turn, as in branch 12.3 --turn 1.0 --vote 'K7>M4'")
    from debate_rl.commands.branch import branch  # loads the evaluation

    asked = {name: getattr(options, name) for name in ("text", "vote", "persona", "weights")}
    found = branch(store, rest[0], turn_of(options.turn), **asked)
    print_view(found, printer, lambda: branch_blocks(found))


ACTIONS: Mapping[str, Action] = {
    **READING,
    "branch": Action(
        _branch,
        "ID",
        "Change one text, vote or persona of a debate, regenerate later turns with the same seeds, and show "
        "what it changes. The branch is stored in RUN/branches.",
        ("turn", "text", "vote", "persona", "weights"),
        (
            "inspect runs/mine branch 12.3 --turn 1.1 --vote 'K7>M4'",
            "inspect runs/mine branch 12.3 --turn 1.0 --text reply.txt --weights best",
        ),
    ),
    "star": Action(
        partial(_annotate, "star"),
        "ID [off]",
        "Star a debate (12.3), a turn (12.3/1.0, AGENT.ROUND) or a pair of solutions (12.3/0.0-1.0).",
        (),
        ("inspect runs/mine star 12.3", "inspect runs/mine ls star:yes"),
    ),
    "note": Action(
        partial(_annotate, "note"),
        "ID TEXT",
        "Write a note on a debate, turn or pair; it replaces an earlier one, and an empty text removes it.",
        (),
        ('inspect runs/mine note 12.3/1.0 "hedges, then guesses"',),
    ),
    "label": Action(
        partial(_annotate, "label"),
        "ID LABEL",
        "Label a turn's solution (right, wrong), a pair by its better solution (left, right, tie), or a "
        "debate (your own words). An empty label removes it.",
        (),
        ("inspect runs/mine label 12.3/1.0 wrong", "inspect runs/mine label 12.3/0.0-1.0 left"),
    ),
}
SOME = {option for action in ACTIONS.values() for option in action.options}
"""Options that only some actions use."""
