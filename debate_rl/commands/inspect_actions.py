"""Print the actions of ``debate inspect``, with a progress bar for the index and notes on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from debate_rl.commands.console import one_line, progress_bar
from debate_rl.inspector.actions import ACTIONS, LineOptions
from debate_rl.inspector.plain import print_runs, printer_for
from debate_rl.inspector.runs import find_runs, run_at
from transcripts import RunStore, compile_filter


def print_lines(name: str, rest: Sequence[str], options: LineOptions) -> None:
    """Perform an action, by default ls. For a folder of runs without an action or options, list the runs."""
    printer = replace(printer_for(sys.stdout), note=_note, index=index_text)
    runs = find_runs(options.run)
    if not name and not options.given() and run_at(options.run, runs) is None:
        from debate_rl.inspector.runs import overviews  # loads scipy

        print_runs(overviews(runs), printer, as_json=options.json)
        return
    action = ACTIONS[name or "ls"]
    for option in options.given():
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


def _note(text: str) -> None:
    sys.stdout.flush()
    print(one_line(text), file=sys.stderr)
