"""A whole debate as text: what was said round by round, the votes, and what they were worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from debate.types import TurnId
from debate_rl.formatting import counted, fixed, safe, safe_lines
from debate_rl.inspector.plain.forms import debate_json
from debate_rl.inspector.plain.printer import Printer, table
from debate_rl.inspector.views import (
    Arrow,
    DebateView,
    FailureView,
    RoundGraph,
    TurnForensics,
    TurnView,
    debate_view,
    parse_forensics,
)
from debate_rl.inspector.views import vote_graphs as graphs_of
from rewards import STREAMS
from transcripts import Record

INDENT = "    "
ADVANTAGES = ("generator", "judge", "format")


def print_debate(
    id: str, record: Record, printer: Printer, *, raw: bool = False, as_json: bool = False
) -> None:
    """Print one debate; ``raw`` replies stand as they were written, with their tags and thinking.

    Rounds and agents count from 1 in sentences; in ids of debates and in JSON they count from 0.
    """
    view = debate_view(id, record)
    if as_json:
        printer.json(debate_json(view, record))
        return
    for line in _lines(view, record, printer, raw=raw):
        printer.line(line)


def _lines(view: DebateView, record: Record, printer: Printer, *, raw: bool) -> Iterator[str]:
    yield from _head(view, printer)
    summaries = {one.round: one for one in view.summaries}
    for round_, turns in groupby(view.spoken(), key=lambda turn: turn.id.round):
        yield ""
        title = "final ballot" if round_ >= view.rounds else f"round {round_ + 1}"
        yield printer.paint(f"== {title} ==", "bold")
        if round_ in summaries:
            yield "summary shown to all:"
            yield from _block(summaries[round_].completion if raw else summaries[round_].text)
        for turn in turns:
            yield ""
            yield from _turn(turn, view, printer, raw=raw)
    for graph in graphs_of(record):
        yield ""
        yield from vote_lines(graph, view, printer)
    yield ""
    yield from _rewards(view, printer)
    for forensics in parse_forensics(record):
        yield ""
        yield from _failures(forensics, view, printer)


def _head(view: DebateView, printer: Printer) -> Iterator[str]:
    problem = view.problem
    level = f"level {problem.level}" if problem.level.isdecimal() else problem.level
    facts = [part for part in (problem.source, level, problem.kind) if part]
    yield printer.paint(f"debate {view.id}: {safe(problem.id)}", "bold") + safe(f" ({', '.join(facts)})")
    size = f"{view.agents} agents, {view.rounds} rounds"
    yield f"{size}, seed {view.seed}, policy version {view.policy_version}"
    yield "problem:"
    yield from _block(problem.question)
    yield f"right answer: {'not known' if problem.answer is None else safe(problem.answer)}"
    if view.winner is None:
        yield "voted winner: none, no votes count"
    else:
        won = view.turn(view.winner)
        grade = printer.grade(won.correct) if won else "unknown"
        yield f"voted winner: {seat(view, view.winner)}, {grade}"


def seat(view: DebateView, turn: TurnId) -> str:
    """Return whose turn it is, for people: label and round, counted from 1."""
    where = "final ballot" if turn.round >= view.rounds else f"round {turn.round + 1}"
    return f"{safe(view.handles[turn.agent])} {where}"


def _turn(turn: TurnView, view: DebateView, printer: Printer, *, raw: bool) -> Iterator[str]:
    where = f"(turn {turn.id.agent}.{turn.id.round})"  # as `why --turn` takes it
    who = f"-- {safe(turn.handle)}, agent {turn.id.agent + 1}, {safe(turn.persona)} {where}"
    answer = "" if turn.answer is None else f": {safe(turn.answer)}"
    yield printer.paint(who, "cyan") + (f", {printer.grade(turn.correct)}{answer}" if not turn.ballot else "")
    if turn.shown:
        shown = ", ".join(seat(view, one) for one in turn.shown if 0 <= one.agent < view.agents)
        yield printer.paint(f"   shown: {shown}" + (f"; {turn.cut} texts cut" if turn.cut else ""), "dim")
    if raw:
        yield from _block(turn.text)
    else:
        yield from _sections(turn, printer)
    if turn.stop_reason == "length":
        yield printer.paint("   cut off at the token limit", "yellow")


def _sections(turn: TurnView, printer: Printer) -> Iterator[str]:
    for piece in turn.pieces:
        text = piece.of(turn.text)
        if piece.kind == "thinking":
            yield printer.paint(f"   thinking: {len(text)} characters (--raw shows them)", "dim")
        elif piece.kind != "other" or not _is_markup(text):
            yield printer.paint(
                f"   {'beside the sections' if piece.kind == 'other' else piece.kind}:", "dim"
            )
            yield from _block(text.strip())


def _is_markup(text: str) -> bool:
    """Return whether text beside the sections is nothing but tags and blanks."""
    bare = text.split()
    return all(
        part.startswith("<") and part.endswith(">") and part.count("<") == part.count(">") for part in bare
    )


def _block(text: str) -> Iterator[str]:
    for line in safe_lines(text):
        yield (INDENT + line).rstrip()


def _rewards(view: DebateView, printer: Printer) -> Iterator[str]:
    yield printer.paint("rewards, then advantages (-: no signal)", "bold")
    names = (*STREAMS, *(f"adv {name}" for name in ADVANTAGES))
    rows: list[Sequence[str]] = [("turn", *names)]
    for turn in view.spoken():
        rewards = (fixed(turn.rewards[name], "+.2f", none="-") for name in STREAMS)
        advantages = (fixed(turn.advantages[name], "+.3f", none="-") for name in ADVANTAGES)
        rows.append((seat(view, turn.id), *rewards, *advantages))
    yield from table(rows, left=1)


def _failures(forensics: TurnForensics, view: DebateView, printer: Printer) -> Iterator[str]:
    yield printer.paint(f"{seat(view, forensics.id)}: could not be read", "yellow")
    for failure in forensics.failures:
        yield f"   {failure.reason} ({safe(failure.detail)}){_place(failure)}: {failure.rule}"
        if failure.excerpt is not None:
            piece, left = failure.excerpt, failure.excerpt.left_out
            middle = f"[{left} characters]" if left else ""
            marked = printer.paint(safe(piece.piece) + middle + safe(piece.rest), "red")
            yield f"{INDENT}{safe(piece.before)}{marked}{safe(piece.after)}"


def _place(failure: FailureView) -> str:
    if failure.offset is None:
        return ""
    return f" at line {failure.line}, column {failure.column} (character {failure.offset} from 0)"


WHY = {
    "own_work": "own work",
    "not_shown": "not shown to the judge",
    "same_handle": "names one label twice",
    "duplicate": "cast before",
    "contradictory": "contradicts another vote of the judge",
    "unknown_handle": "names nobody here",
    "not_a_comparison": "is not a comparison",
}
"""Why a vote or a line does not count, in words."""


def vote_lines(graph: RoundGraph, view: DebateView, printer: Printer) -> Iterator[str]:
    """Yield the lines of one graph."""
    where = "the final ballot" if graph.round >= view.rounds else f"round {graph.round + 1}"
    yield printer.paint(f"votes on {where}", "bold")
    for arrow in graph.arrows:
        yield "   " + _arrow(arrow, view, printer)
    for line in graph.unread:
        judge = safe(view.handles[line.judge.agent])
        yield f"   {judge}: no vote ({WHY.get(line.reason, line.reason)}): {safe(line.line)}"
    yield from _matrix(graph, view)
    yield from _order(graph, view, printer)


def _arrow(arrow: Arrow, view: DebateView, printer: Printer) -> str:
    sign = "=" if arrow.tie else ">"
    sides = f"{_name(view, arrow.winner)} {sign} {_name(view, arrow.loser)}"
    notes = [printer.grade(arrow.truth)]
    if not arrow.counts:
        notes.append(f"does not count: {WHY.get(arrow.dropped, arrow.dropped)}")
    if arrow.in_cycle:
        notes.append(printer.paint("in a cycle", "yellow"))
    line = f'   "{safe(arrow.line)}"' if arrow.line else ""
    return f"{_name(view, arrow.judge)}: {sides}, {', '.join(notes)}{line}"


def _name(view: DebateView, turn: object) -> str:
    agent: int = getattr(turn, "agent", 0)
    return safe(view.handles[agent])


def _matrix(graph: RoundGraph, view: DebateView) -> Iterator[str]:
    """Yield the table of votes that count: how often the row's solution beat the column's."""
    names = [_name(view, turn) for turn in graph.solutions]
    rows: list[Sequence[str]] = [("beat", *names)]
    for i, name in enumerate(names):
        cells = ("." if i == j else _count(graph.matrix[i][j], graph.ties[i][j]) for j in range(len(names)))
        rows.append((name, *cells))
    yield from ("   " + line for line in table(rows, left=0))


def _count(wins: float, ties: int) -> str:
    """Return the votes of one cell.

    >>> _count(2.0, 0), _count(1.5, 1)
    ('2', '1 (+1 tie)')
    """
    whole = f"{wins - ties / 2:g}"
    return whole if not ties else f"{whole} (+{counted(ties, 'tie')})"


def _order(graph: RoundGraph, view: DebateView, printer: Printer) -> Iterator[str]:
    if graph.edges:
        beaten = ", ".join(f"{_name(view, a)} beats {_name(view, b)}" for a, b in graph.edges)
        yield f"   by majority: {beaten}"
    for cycle in graph.cycles:
        yield printer.paint(f"   cycle: {', '.join(_name(view, turn) for turn in cycle)}", "yellow")
    if graph.condorcet is not None:
        yield f"   beats every other: {_name(view, graph.condorcet)}"
