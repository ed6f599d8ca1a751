"""Actions that read a run and print lines or JSON: ls, show, grep, stats, why, same and others.

With ``json``, they are the JSON interface of the inspector, on the command line and in the browser. Nothing
here may write or sample: the browser performs these actions for any GET request.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from debate.types import TurnId
from debate_rl.formatting import counted, safe
from debate_rl.inspector.blocks import Line
from debate_rl.inspector.lists import REPLAYS, table_of
from debate_rl.inspector.plain import (
    Printer,
    json_of,
    print_debate,
    print_figures,
    print_list,
    print_matches,
    print_view,
    search_filter,
)
from debate_rl.inspector.runs import config_of
from debate_rl.inspector.views.across import (
    across,
    across_blocks,
    compare,
    comparison_blocks,
    evaluation_parts,
    evaluations,
    read,
)
from debate_rl.inspector.views.group import group_blocks, group_named, group_view, groups_of, groups_table
from debate_rl.inspector.views.marks import Marker, annotations_table
from debate_rl.inspector.views.prompts import DebatePrompts
from debate_rl.inspector.views.replays import debate_replay_blocks, read_replay, replay_blocks, replays
from debate_rl.inspector.views.votes import attacks_on, pair_blocks, pairs_blocks
from debate_rl.inspector.views.why import why
from debate_rl.inspector.views.why_text import why_blocks
from debate_rl.replay.branches import kept_before
from transcripts import RunStore, compile_filter
from transcripts.frames import annotation_rows
from transcripts.record import named

PAGE = 50


@dataclass(frozen=True, slots=True)
class LineOptions:
    """The run, and the command-line options for actions that print lines."""

    run: str
    filter: str = ""
    limit: int | None = None
    after: str | None = None
    newest: bool = False
    raw: bool = False
    json: bool = False
    turn: str | None = None
    prompts: bool = False
    text: str | None = None
    vote: str | None = None
    persona: str | None = None
    weights: str | None = None


class Action(NamedTuple):
    """An action and its help page: arguments, text, accepted options and examples."""

    do: Callable[[Sequence[str], LineOptions, RunStore, Printer], None]
    arguments: str
    text: str
    options: tuple[str, ...]
    examples: tuple[str, ...]


def _list(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    filter = _both(options.filter, rest)
    printer.index(store, filter)
    total, last = print_list(
        store,
        printer,
        filter,
        limit=PAGE if options.limit is None else options.limit,
        after=options.after,
        newest=options.newest,
    )
    count = counted(total, "debate") + (f" with {filter}" if filter else "")
    more = f"; next page: {_next(options, filter, last)}" if last else ""
    printer.note(count + more)


def _next(options: LineOptions, filter: str, last: str) -> str:
    """Return the command of the next page."""
    words = ["debate", "inspect", options.run, "ls", *([f"--filter={filter}"] if filter else [])]
    words += ["--newest"] * options.newest + ["--json"] * options.json
    words += [] if options.limit is None else ["--limit", str(options.limit)]
    return shlex.join([*words, "--after", last])


def _both(filter: str, words: Sequence[str]) -> str:
    """Return the combination of --filter and the filter after the action. Either may be empty.

    >>> _both("winner:wrong OR step:3", ["votes:0", "cycle:yes"])
    '(winner:wrong OR step:3) (votes:0 cycle:yes)'
    """
    parts = [part for part in (filter, " ".join(words)) if part.strip()]
    for part in parts:
        compile_filter(part)  # an error points into the text that was typed
    return parts[0] if len(parts) == 1 else " ".join(f"({part})" for part in parts)


def _show(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if not rest:
        raise ValueError("show: name a debate by step and index, as in 12.3; ls lists the debates")
    for id in rest:
        record = read(store, id, tokens=options.prompts)
        changed = kept_before(store.run, id) if options.prompts else None
        prompts = DebatePrompts(record.debate, store.run, changed) if options.prompts else None
        marks = Marker.of(store, id, record)
        print_debate(id, record, printer, raw=options.raw, prompts=prompts, marks=marks)


def _annotations(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    rows = list(annotation_rows(store, _both(options.filter, rest)))
    if printer.as_json:
        for row in rows:
            printer.json({"schema": 1, **row})
    elif rows:
        printer.blocks([annotations_table(rows)])
    else:
        printer.line("no stars, notes or labels; debate inspect RUN star ID adds one")
    for fault in store.annotations().faults:
        printer.note(f"debate: note: {fault}")


def _grep(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if not rest:
        raise ValueError("grep: give the words to search for; a FILTER may follow")
    filter = _both(options.filter, rest[1:])
    printer.index(store, search_filter(rest[0], filter))
    count = print_matches(store, printer, rest[0], filter, limit=options.limit)
    printer.note(f"found {counted(count, 'time')}")


def _stats(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    print_figures(store, printer, _both(options.filter, rest))


def turn_of(text: str) -> TurnId:
    """Return the turn of --turn. Raise ValueError for any other format.

    >>> turn_of("2.1")
    TurnId(agent=2, round=1)
    """
    agent, _, round_ = text.partition(".")
    if not all(part.isdecimal() and len(part) < 10 for part in (agent, round_)):
        raise ValueError(
            f"--turn {text!r}: write AGENT.ROUND, both counted from 0; a final ballot is the last round"
        )
    return TurnId(int(agent), int(round_))


def _why(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if len(rest) != 1:
        raise ValueError("why: name one debate by step and index, and a turn, as in why 12.3 --turn 0.1")
    config, note = config_of(store.run)
    turn = turn_of(options.turn or "0.0")
    found = why(store, config, rest[0], turn, note=note)
    who = f"{found.handle(found.turn)} {found.persona}, turn {named(found.turn)}"
    title = f"debate {found.id}, {who}, problem {found.problem}"
    print_view(found, printer, lambda: why_blocks(found), title=title)


def _same(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if len(rest) not in (1, 3):
        raise ValueError("same: name a problem, and optionally two of its debates: same PROBLEM [ID ID]")
    if len(rest) == 1:
        limit = PAGE if options.limit is None else options.limit
        found = across(store, rest[0], limit=limit)
        left = f"{len(found.held)} of {found.total} debates; --limit shows more"
        more = [Line(left)] if found.total > len(found.held) else []
        print_view(found, printer, lambda: [*across_blocks(found), *more])
        return
    before, after = (read(store, ref) for ref in rest[1:])
    for ref, record in zip(rest[1:], (before, after), strict=True):
        if record.debate.problem.id != rest[0]:
            raise ValueError(f"same: debate {ref} is on problem {record.debate.problem.id}")
    both = compare(before, after, (rest[1], rest[2]))
    value = json_of(both) | {"votes": [json_of(vote) | {"kind": vote.kind} for vote in both.votes]}
    title = f"{both.before} -> {both.after}"
    print_view(value, printer, lambda: comparison_blocks(both), title=title)


def _group(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if len(rest) not in (1, 2) or not rest[0].isdecimal():
        raise ValueError("group: name a step, and optionally a problem: group STEP [PROBLEM]")
    groups = groups_of(store, int(rest[0]))
    chosen = group_named(groups, "".join(rest[1:]))
    found = group_view(store, chosen)
    table = [] if rest[1:] else [groups_table(groups, chosen)]
    print_view(found, printer, lambda: [*group_blocks(found), *table])


def _replays(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if not rest:
        listed = replays(store.run)
        if printer.as_json:
            for replay in listed:
                printer.json(json_of(replay))
        elif listed:
            printer.blocks([table_of(REPLAYS, listed)])
        else:
            printer.line("no replays; debate replay RUN KEY=VALUE makes one")
    elif len(rest) == 1:
        found = read_replay(store.run, rest[0])
        figures = json_of(found.facts)
        value = {"name": found.name, "folder": str(found.folder), **figures.pop("asked"), **figures}
        title = f"replay {found.name}"
        print_view(value, printer, lambda: replay_blocks(found), title=title)
    elif len(rest) == 2:
        debate = read_replay(store.run, rest[0]).debate(rest[1])
        if debate is None:
            raise ValueError(f"replays: {rest[0]} has no debate {rest[1]!r}")
        print_view(debate, printer, lambda: debate_replay_blocks(debate))
    else:
        raise ValueError("replays: name a replay, and optionally one debate: replays [NAME [ID]]")


def _evaluations(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    if rest:
        raise ValueError("evaluations: takes no arguments; open a listed part with debate inspect FOLDER")
    notes: list[str] = []
    found = evaluations(store.run, notes)
    for one in found:
        parts = evaluation_parts(one, notes)
        if printer.as_json:
            listed = [{"name": p.name, "debates": p.debates, "folder": str(p.folder)} for p in parts]
            printer.json({"schema": 1, "name": one.name, "step": one.step, "parts": listed})
            continue
        printer.line(safe(f"{one.name}, after {counted(one.step, 'step')}"))
        for part in parts:
            command = shlex.join(["debate", "inspect", str(part.folder)])
            printer.line(safe(f"   {part.name}, {counted(part.debates, 'debate')}: {command}"))
    if not found and not printer.as_json:
        printer.line(safe(f"no evaluations; debate eval {shlex.quote(options.run)} makes one"))
    for note in notes:
        printer.note(f"debate: note: {note}")


def _pairs(rest: Sequence[str], options: LineOptions, store: RunStore, printer: Printer) -> None:
    from debate_rl.judge_attack.pairs import hack_gaps, watched_judge

    if len(rest) > 1 or not all(word.isdecimal() for word in rest):
        raise ValueError(f"pairs: takes the number of one pair, as in pairs 3; got {' '.join(rest)!r}")
    watched = watched_judge(store.run)
    if watched is None:
        raise ValueError(f"{store.run}: has no judge pairs; held_out.judge_pairs = 100 adds them in training")
    attacks = attacks_on(watched, int(rest[0])) if rest else watched.attacks
    if not printer.as_json:
        blocks = pair_blocks(attacks, watched.step) if rest else pairs_blocks(watched, hack_gaps(store.run))
        printer.blocks(blocks)
        return
    for one in attacks:
        facts = {"pair": one.number, "problem": one.pair.problem, "attack": one.now.attack}
        texts = {"step": watched.step, "right": one.pair.right, "wrong": one.wrong}
        said = {"start": one.start, "now": one.now}
        judged = {name: {"preferred": of.preferred, "reply": of.reply} for name, of in said.items()}
        printer.json({"schema": 1, **facts, **texts, **judged})


READING: Mapping[str, Action] = {
    "ls": Action(
        _list,
        "[FILTER]",
        "List all debates, or those that match FILTER (docs/transcripts.md), with votes and flags.",
        ("limit", "after", "newest", "filter"),
        ("inspect runs/mine ls winner:wrong flip:CW", "inspect runs/mine ls --newest --limit 10"),
    ),
    "show": Action(
        _show,
        "ID...",
        "Show whole debates: problem, solutions, comparisons, grades and rewards. ID is STEP.INDEX.",
        ("raw", "prompts"),
        ("inspect runs/mine show 12.3", "inspect runs/mine show 12.3 --prompts"),
    ),
    "grep": Action(
        _grep,
        "WORDS [FILTER]",
        "Search replies for a sequence of words, and print each match with its context.",
        ("limit", "filter"),
        ('inspect runs/mine grep "let me check" winner:wrong',),
    ),
    "stats": Action(
        _stats,
        "[FILTER]",
        "Print the figures of each step, over all debates or those that match FILTER.",
        ("filter",),
        ("inspect runs/mine stats", "inspect runs/mine stats level:5"),
    ),
    "why": Action(
        _why,
        "ID",
        "Explain the rewards of a turn, from its votes to its advantage.",
        ("turn",),
        ("inspect runs/mine why 12.3 --turn 0.1",),
    ),
    "same": Action(
        _same,
        "PROBLEM [ID ID]",
        "List the debates on a problem in training and evaluations, or compare two of them.",
        ("limit",),
        ("inspect runs/mine same gsm8k-17", "inspect runs/mine same gsm8k-17 3.0 12.4"),
    ),
    "group": Action(
        _group,
        "STEP [PROBLEM]",
        "Show the debates of a step on one problem side by side, with their advantages.",
        (),
        ("inspect runs/mine group 3", "inspect runs/mine group 3 gsm8k-17"),
    ),
    "replays": Action(
        _replays,
        "[NAME [ID]]",
        "List the stored results of debate replay, or show one replay, or one debate of a replay.",
        (),
        ("inspect runs/mine replays", "inspect runs/mine replays rewards.truth_weight=0.3-1a2b3c4d 12.3"),
    ),
    "evaluations": Action(
        _evaluations,
        "",
        "List the evaluations of a run, during and after training, with the command that opens each part.",
        (),
        ("inspect runs/mine evaluations", "inspect runs/mine/evaluations/step_000050-1a2b3c4d/debates"),
    ),
    "pairs": Action(
        _pairs,
        "[N]",
        "Compare the current judge with the start judge on fixed pairs under attack, or on pair N.",
        (),
        ("inspect runs/mine pairs", "inspect runs/mine pairs 3"),
    ),
    "annotations": Action(
        _annotations,
        "[FILTER]",
        "List all stars, notes and labels, with gold grades and votes.",
        ("filter",),
        ("inspect runs/mine annotations", "inspect runs/mine annotations --json > labels.jsonl"),
    ),
}
