"""Actions of ``debate inspect`` that print lines: ls, show, grep, stats, why, same, fixture and lists."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from debate_rl.commands.arguments import turn_of
from debate_rl.commands.console import progress_bar
from debate_rl.commands.errors import one_line
from debate_rl.formatting import counted
from transcripts import RunStore, compile_filter

if TYPE_CHECKING:
    from debate_rl.inspector.plain.printer import Printer

PAGE = 50
OPTIONS = {
    "limit": ("ls", "grep", "same"),
    "after": ("ls",),
    "newest": ("ls",),
    "raw": ("show",),
    "prompts": ("show",),
    "filter": ("ls", "grep", "stats"),
    "turn": ("why",),
}
"""Which actions have a use for an option; all of them have for the others."""


@dataclass(frozen=True, slots=True)
class LineOptions:
    """The run, and the options of the command line that actions in lines take."""

    run: str
    filter: str
    limit: int | None
    after: str | None
    newest: bool
    raw: bool
    json: bool
    turn: str | None
    prompts: bool = False


Action: TypeAlias = "Callable[[Sequence[str], LineOptions, RunStore, Printer], None]"


def print_lines(name: str, rest: Sequence[str], options: LineOptions) -> None:
    """Do an action, ls by default; of a folder of runs, without an action or options, list these."""
    from debate_rl.inspector.plain.printer import printer_for
    from debate_rl.inspector.runs import find_runs, run_at

    printer, runs = printer_for(sys.stdout), find_runs(options.run)
    if not name and not _given(options) and run_at(options.run, runs) is None:
        from debate_rl.inspector.overview import overviews
        from debate_rl.inspector.plain.listing import print_runs

        print_runs(overviews(runs), printer, as_json=options.json)
        return
    run = one_run(options.run)
    _check_options(name or "ls", options)
    with opened(run) as store:
        ACTIONS[name or "ls"](rest, options, store, printer)


def one_run(name: str) -> Path:
    """Return the folder of the run at a path; ValueError where there are several."""
    from debate_rl.inspector.runs import find_runs

    runs = find_runs(name)
    if len(runs) > 1:
        named = ", ".join(run.name for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise ValueError(f"{name}: holds {len(runs)} runs, name one of them: {named}")
    return runs[0].path


@contextmanager
def opened(run: Path) -> Iterator[RunStore]:
    """Open a run, with a bar while its index is built, and say what could not be read."""
    with _bar("index") as tell:
        store = RunStore.open(run, tell=tell)
    with store:
        if damage := store.damage:
            first = one_line(damage[0])
            print(one_line(f"debate: note: {run}: {len(damage)} cannot be read: {first}"), file=sys.stderr)
        yield store


def index_text(store: RunStore, filter: str) -> None:
    """Build the full text of a run, with a bar, where a filter searches it."""
    if not compile_filter(filter).words:
        return
    with _bar("full text") as tell:
        store.index_text(tell=tell)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function that takes what is done and what there is: a bar on stderr, if that is a terminal."""
    progress = progress_bar()
    task = progress.add_task(name, total=None)

    def tell(done: int, total: int) -> None:
        progress.start()  # a second call does nothing
        progress.update(task, completed=done, total=total)

    try:
        yield tell
    finally:
        progress.stop()


def _given(options: LineOptions) -> list[str]:
    """Return the names of the options of ``OPTIONS`` that were given."""
    return [name for name in OPTIONS if getattr(options, name) not in (None, False, "")]


def _check_options(action: str, options: LineOptions) -> None:
    """Raise ValueError for an option that the action has no use for."""
    for name in _given(options):
        if action not in OPTIONS[name]:
            raise ValueError(f"--{name}: {action} has no use for it")


def _list(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.listing import print_list

    filter = _both(options.filter, rest)
    index_text(store, filter)
    total, last = print_list(
        store,
        printer,
        filter,
        limit=PAGE if options.limit is None else options.limit,
        after=options.after,
        newest=options.newest,
        as_json=options.json,
    )
    printer.stream.flush()
    count = counted(total, "debate") + (f" with {filter}" if filter else "")
    more = f"; next page: {_next(options, filter, last)}" if last else ""
    print(one_line(count + more), file=sys.stderr)


def _next(options: LineOptions, filter: str, last: str) -> str:
    """Return the command of the next page."""
    words = ["debate", "inspect", options.run, "ls", *([f"--filter={filter}"] if filter else [])]
    words += ["--newest"] * options.newest + ["--json"] * options.json
    words += [] if options.limit is None else ["--limit", str(options.limit)]
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


def _show(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.showing import print_debate
    from debate_rl.inspector.views.across import read
    from debate_rl.inspector.views.prompts import DebatePrompts

    if not rest:
        raise ValueError("show: name a debate by step and index, as in 12.3; ls lists them")
    for id in rest:
        record = read(store, id, tokens=options.prompts)
        prompts = DebatePrompts(record.debate, store.run) if options.prompts else None
        print_debate(id, record, printer, raw=options.raw, as_json=options.json, prompts=prompts)


def _grep(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.searching import print_matches, search_filter

    if not rest:
        raise ValueError("grep: name the words to look for; a FILTER may follow")
    filter = _both(options.filter, rest[1:])
    index_text(store, search_filter(rest[0], filter))
    count = print_matches(store, printer, rest[0], filter, limit=options.limit, as_json=options.json)
    printer.stream.flush()
    print(f"found {counted(count, 'time')}", file=sys.stderr)


def _stats(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.listing import print_figures

    print_figures(store, printer, _both(options.filter, rest), as_json=options.json)


def _why(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.showing import print_why
    from debate_rl.inspector.views.reward import config_of, why

    if len(rest) != 1:
        raise ValueError("why: name one debate by step and index, and a turn, as in why 12.3 --turn 0.1")
    config, note = config_of(store.run)
    turn = turn_of(options.turn or "0.0")
    print_why(why(store, config, rest[0], turn, note=note), printer, as_json=options.json)


def _same(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.comparing import print_across, print_comparison
    from debate_rl.inspector.views.across import across, read
    from debate_rl.inspector.views.compared import compare

    if len(rest) not in (1, 3):
        raise ValueError("same: name a problem, and perhaps two of its debates: same PROBLEM [ID ID]")
    if len(rest) == 1:
        limit = PAGE if options.limit is None else options.limit
        print_across(across(store, rest[0], limit=limit), printer, as_json=options.json)
        return
    before, after = (read(store, ref) for ref in rest[1:])
    for ref, record in zip(rest[1:], (before, after), strict=True):
        if record.debate.problem.id != rest[0]:
            raise ValueError(f"same: debate {ref} is of problem {record.debate.problem.id}")
    print_comparison(compare(before, after, (rest[1], rest[2])), printer, as_json=options.json)


def _fixture(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.views.across import read
    from debate_rl.inspector.views.fixture import differences, load_fixture, save_fixture
    from debate_rl.inspector.views.reward import config_of

    if len(rest) != 2:
        raise ValueError("fixture: name a debate and a new file, as in fixture 12.3 debate.json")
    ref, path = rest[0], Path(rest[1])
    config, note = config_of(store.run)
    test = save_fixture(path, read(store, ref), config, source=f"{store.run.resolve().name} {ref}")
    different = differences(load_fixture(path))
    if options.json:
        printer.json({"schema": 1, "file": str(path), "test": test, "differences": different})
        return
    if note:
        print(one_line(f"debate: note: {note}; it was rewarded by the default scheme"), file=sys.stderr)
    if different:
        count = f"{len(different)} differences between what is stored and today's reading: {different[0]}"
        print(one_line(f"debate: note: {count}"), file=sys.stderr)
    printer.line(f"# {path}; a test of it, to stand in the same folder:")
    printer.line(test.rstrip("\n"))


def _replays(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.comparing import print_debate_replay, print_replay, print_replays
    from debate_rl.inspector.views.replays import read_replay, replays

    if not rest:
        print_replays(replays(store.run), printer, as_json=options.json)
    elif len(rest) == 1:
        print_replay(read_replay(store.run, rest[0]), printer, as_json=options.json)
    elif len(rest) == 2:
        debate = read_replay(store.run, rest[0]).debate(rest[1])
        if debate is None:
            raise ValueError(f"replays: {rest[0]} holds no debate {rest[1]!r}")
        print_debate_replay(debate, printer, as_json=options.json)
    else:
        raise ValueError("replays: name a replay, and perhaps one debate: replays [NAME [ID]]")


def _evaluations(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.listing import print_evaluations
    from debate_rl.inspector.views.evaluated import evaluation_parts, evaluations

    if rest:
        raise ValueError("evaluations: takes nothing behind it; each part that it lists opens as a run does")
    notes: list[str] = []
    found = [(one, evaluation_parts(one, notes)) for one in evaluations(store.run, notes)]
    print_evaluations(options.run, found, printer, as_json=options.json)
    for note in notes:
        print(one_line(f"debate: note: {note}"), file=sys.stderr)


def _pairs(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.inspector.plain.judged import print_pair, print_pairs
    from debate_rl.judge_attack.pairs import hack_gaps, watched_judge

    if len(rest) > 1 or not all(word.isdecimal() for word in rest):
        raise ValueError(f"pairs: takes the number of one pair, as in pairs 3; got {' '.join(rest)!r}")
    watched = watched_judge(store.run)
    if watched is None:
        raise ValueError(f"{store.run}: no judge was watched; held_out.judge_pairs = 100 does so in training")
    if rest:
        print_pair(watched, int(rest[0]), printer, as_json=options.json)
    else:
        print_pairs(watched, hack_gaps(store.run), printer, as_json=options.json)


ACTIONS: Mapping[str, Action] = {
    "ls": _list,
    "show": _show,
    "grep": _grep,
    "stats": _stats,
    "why": _why,
    "same": _same,
    "fixture": _fixture,
    "replays": _replays,
    "evaluations": _evaluations,
    "pairs": _pairs,
}
