"""``debate inspect RUN``: a run's debates, found by a filter, listed, shown, searched and counted."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commands.errors import Ended, one_line
from commands.inspect_pages import NO_PAGES, Pages, refuse_stray, serve_pages, write_pages
from commands.inspect_views import VIEWS, act_view
from commands.progress import progress_bar
from learner.formatting import counted
from transcripts import FilterError, RunStore, compile_filter

if TYPE_CHECKING:
    from inspector.plain import Printer

ACTIONS = ("ls", "show", "grep", "stats", *VIEWS)
PAGE, WRONG = 50, 2
PIPE_CLOSED = 141
"""What a shell says of a command whose reader went away: 128 and SIGPIPE."""
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for. ``words``: the action and what follows it."""

    run: str
    words: Sequence[str] = ()
    filter: str = ""
    limit: int | None = None
    after: str | None = None
    newest: bool = False
    raw: bool = False
    json: bool = False
    turn: str | None = None
    pages: Pages = NO_PAGES


def run_inspect(asked: Asked) -> None:
    """Look at a run: in the terminal application, or by an action in plain lines."""
    with _quiet_pipe(), _caret():
        action, rest = (asked.words[0], list(asked.words[1:])) if asked.words else ("", [])
        if action and action not in ACTIONS:
            raise ValueError(f"ACTION is one of {', '.join(ACTIONS)}; got {action!r}")
        refuse_stray(asked.pages)
        if asked.pages.asked:
            _as_pages(asked)
        elif not action and not asked.json and sys.stdin.isatty() and sys.stdout.isatty():
            _in_terminal(asked)
        else:
            _plainly(asked, action, rest)


def _as_pages(asked: Asked) -> None:
    if asked.words or asked.json or asked.raw or asked.after is not None or asked.turn is not None:
        raise ValueError("--web and --export take --filter, and --export --limit and --newest; no ACTION")
    if asked.pages.export is None:
        serve_pages(asked.run, asked.pages, asked.filter)
        return
    compile_filter(asked.filter)
    with _opened(_one_run(asked.run)) as store:
        if "text:" in asked.filter.lower():
            _index_text(store)
        write_pages(store, asked.pages.export, asked.filter, limit=asked.limit, newest=asked.newest)


def _in_terminal(asked: Asked) -> None:
    from inspector.terminal import run_terminal

    compile_filter(asked.filter)  # says what is wrong before the screen is taken
    run_terminal(asked.run, asked.filter)


def _plainly(asked: Asked, action: str, rest: list[str]) -> None:
    from inspector.plain import print_runs, printer_for
    from inspector.runs import find_runs

    paper, runs = printer_for(sys.stdout), find_runs(asked.run)
    if len(runs) > 1 and not action:
        print_runs(runs, paper, as_json=asked.json)
        return
    run = _one_run(asked.run)
    _check_options(asked, action or "ls")
    with _opened(run) as store:
        _act(asked, action or "ls", rest, store, paper)


def _one_run(name: str) -> Path:
    """Return the folder of the run at a path; ValueError where there are several."""
    from inspector.runs import find_runs

    runs = find_runs(name)
    if len(runs) > 1:
        named = ", ".join(run.name for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise ValueError(f"{name}: holds {len(runs)} runs, name one of them: {named}")
    return runs[0].path


def _act(asked: Asked, action: str, rest: list[str], store: RunStore, paper: Printer) -> None:
    from inspector.plain import print_debate, print_figures, print_matches
    from inspector.views import open_debate

    if action == "show":
        if not rest:
            raise ValueError("show: name a debate by step and place, as in 12.3; ls lists them")
        for id in rest:
            print_debate(id, open_debate(store, id), paper, raw=asked.raw, as_json=asked.json)
    elif action == "grep":
        if not rest:
            raise ValueError("grep: name the words to look for; a FILTER may follow")
        _index_text(store)
        filter = _both(asked.filter, rest[1:])
        found = print_matches(store, paper, rest[0], filter, limit=asked.limit, as_json=asked.json)
        paper.stream.flush()
        print(f"found {counted(found, 'time')}", file=sys.stderr)
    elif action == "stats":
        print_figures(store, paper, _both(asked.filter, rest), as_json=asked.json)
    elif action in VIEWS:
        limit = PAGE if asked.limit is None else asked.limit
        turn = asked.turn or "0.0"
        act_view(action, rest, store, paper, turn=turn, limit=limit, as_json=asked.json)
    else:
        _list(asked, _both(asked.filter, rest), store, paper)


def _list(asked: Asked, filter: str, store: RunStore, paper: Printer) -> None:
    from inspector.plain import print_list

    if "text:" in filter.lower():
        _index_text(store)
    total, last = print_list(
        store,
        paper,
        filter,
        limit=PAGE if asked.limit is None else asked.limit,
        after=asked.after,
        newest=asked.newest,
        as_json=asked.json,
    )
    paper.stream.flush()
    found = counted(total, "debate") + (f" of {filter}" if filter else "")
    more = f"; next page: {_next(asked, filter, last)}" if last else ""
    print(one_line(found + more), file=sys.stderr)


def _next(asked: Asked, filter: str, last: str) -> str:
    """Return the command of the next page."""
    words = ["debate", "inspect", asked.run, "ls", *([f"--filter={filter}"] if filter else [])]
    words += ["--newest"] * asked.newest + ["--json"] * asked.json
    words += [] if asked.limit is None else ["--limit", str(asked.limit)]
    return shlex.join([*words, "--after", last])


def _both(filter: str, words: Sequence[str]) -> str:
    """Return the filter of --filter and the one behind the action, each of which may be empty; checked.

    >>> _both("winner:wrong OR step:3", ["votes:0", "cycle:yes"])
    '(winner:wrong OR step:3) (votes:0 cycle:yes)'
    """
    parts = [part for part in (filter, " ".join(words)) if part.strip()]
    for part in parts:
        compile_filter(part)  # points into what was typed
    return parts[0] if len(parts) == 1 else " ".join(f"({part})" for part in parts)


def _check_options(asked: Asked, action: str) -> None:
    """Raise ValueError for an option that the action has no use for."""
    given = {
        "--limit": asked.limit is not None and action not in ("ls", "grep", "same"),
        "--after": asked.after is not None and action != "ls",
        "--newest": asked.newest and action != "ls",
        "--raw": asked.raw and action != "show",
        "--filter": bool(asked.filter) and action in ("show", *VIEWS),
        "--turn": asked.turn is not None and action != "why",
    }
    for name in (name for name, wrong in given.items() if wrong):
        raise ValueError(f"{name}: {action} has no use for it")


@contextmanager
def _opened(run: Path) -> Iterator[RunStore]:
    """Open a run, with a bar while its index is built, and tell what could not be read."""
    with _bar("index") as tell:
        store = RunStore.open(run, tell=tell)
    with store:
        if damage := store.damage:
            first = one_line(damage[0])
            print(f"debate: note: {run}: {len(damage)} cannot be read: {first}", file=sys.stderr)
        yield store


def _index_text(store: RunStore) -> None:
    with _bar("full text") as tell:
        store.index_text(tell=tell)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that is told what is done and what there is: a bar on stderr, if that is a terminal."""
    progress = progress_bar()
    task = progress.add_task(name, total=None)

    def tell(done: int, total: int) -> None:
        progress.start()  # a second call does nothing
        progress.update(task, completed=done, total=total)

    try:
        yield tell
    finally:
        progress.stop()


@contextmanager
def _caret() -> Iterator[None]:
    """End the command where a filter cannot be read, with a caret under the character, or at Ctrl-C."""
    try:
        yield
    except FilterError as error:
        raise Ended(str(error), WRONG) from error
    except KeyboardInterrupt:
        raise Ended("stopped", INTERRUPTED) from None


@contextmanager
def _quiet_pipe() -> Iterator[None]:
    """End the command without a word where the reader of its output went away, as `| head` does."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(PIPE_CLOSED) from None
