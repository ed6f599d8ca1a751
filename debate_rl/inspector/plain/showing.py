"""A whole debate as text: replies, votes and rewards; and why a turn was rewarded as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from debate.types import TurnId
from debate_rl.formatting import fixed, safe, safe_lines
from debate_rl.inspector.plain.forms import as_json as json_of
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
    vote_graphs,
)
from debate_rl.inspector.views.debate import ADVANTAGES, is_markup
from debate_rl.inspector.views.prompts import DebatePrompts, PromptView
from debate_rl.inspector.views.reward_types import Why
from rewards import STREAMS
from transcripts import Record
from transcripts.record import named

INDENT = "    "


def print_debate(
    id: str,
    record: Record,
    printer: Printer,
    *,
    raw: bool = False,
    as_json: bool = False,
    prompts: DebatePrompts | None = None,
) -> None:
    """Print one debate; ``raw`` replies stand as they were written, with their tags and thinking.

    ``prompts``: those to print with their turns.
    """
    view = debate_view(id, record)
    if as_json:
        printer.json(debate_json(view, record, prompts))
        return
    printer.lines(_lines(view, record, printer, raw=raw, prompts=prompts))


def _lines(
    view: DebateView, record: Record, printer: Printer, *, raw: bool, prompts: DebatePrompts | None
) -> Iterator[str]:
    yield from _head(view, printer)
    if prompts and prompts.note:
        yield safe(f"note: {prompts.note}")
    summaries = {summary.round: summary for summary in view.summaries}
    for round_, turns in groupby(view.spoken(), key=lambda turn: turn.id.round):
        yield ""
        yield printer.paint(f"== {view.round_name(round_)} ==", "bold")
        if round_ in summaries:
            if prompts:
                yield from _prompt(prompts, prompts.of_summary(round_), printer)
            yield "summary shown to all:"
            yield from _block(summaries[round_].completion if raw else summaries[round_].text)
        for turn in turns:
            yield ""
            yield from _turn_head(turn, view, printer)
            if prompts:
                yield from _prompt(prompts, prompts.of(turn.id), printer)
            yield from _turn(turn, printer, raw=raw)
            if turn.compressed is not None:
                how = "cut, as no shorter text could be shown" if turn.compression_failed else "compressed"
                yield printer.paint(f"   as others read it, {how}:", "dim")
                yield from _block(turn.compressed)
    for graph in vote_graphs(record):
        yield ""
        yield from _votes(graph, view, printer)
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
    yield f"{view.size()}, seed {view.seed}, policy version {view.policy_version}"
    yield "problem:"
    yield from _block(problem.question)
    yield f"gold answer: {'not known' if problem.answer is None else safe(problem.answer)}"
    if view.winner is None:
        yield "winner: none, no vote is valid"
    else:
        won = view.turn(view.winner)
        grade = printer.grade(won.grade) if won else "unknown"
        lot = f", {safe(view.lot())}" if view.tied else ""
        yield f"winner: {safe(view.spelled(view.winner))}, {grade}{lot}"


def _turn_head(turn: TurnView, view: DebateView, printer: Printer) -> Iterator[str]:
    who = f"-- {safe(view.who(turn.id.agent))}, turn {named(turn.id)}"  # as `why --turn` takes it
    answer = "" if turn.answer is None else f": {safe(turn.answer)}"
    yield printer.paint(who, "cyan") + (f", {printer.grade(turn.grade)}{answer}" if not turn.ballot else "")
    if turn.shown:
        shown = "; ".join(safe(view.placed(other)) for other in turn.shown if 0 <= other.agent < view.agents)
        yield printer.paint(f"   shown: {shown}" + (f"; {turn.cut} texts cut" if turn.cut else ""), "dim")
    if turn.targets is not None:
        yield printer.paint(f"   criticises: {safe(', '.join(turn.targets)) or 'nobody'}", "dim")


def _prompt(prompts: DebatePrompts, prompt: PromptView, printer: Printer) -> Iterator[str]:
    """Yield the messages that were read, or why they are not known where ``note`` has not said it."""
    if prompt.why and prompt.why != prompts.note:
        yield printer.paint(safe(f"   {prompt.why}"), "yellow")
    for message in prompt.messages:
        yield printer.paint(f"   prompt, {message.role}:", "dim")
        yield from _block(message.content)
    if prompt.title:
        yield printer.paint(f"   prompt, {prompt.title}:", "dim")
        yield from _block(prompt.text)
    elif prompt.unseen:
        yield printer.paint(f"   {prompt.unseen}", "dim")


def _turn(turn: TurnView, printer: Printer, *, raw: bool) -> Iterator[str]:
    if raw:
        yield from _block(turn.text)
    else:
        yield from _sections(turn, printer)
    if turn.programs:
        yield printer.paint(f"   programs: {turn.programs}", "dim")
    if turn.stop_reason == "length":
        yield printer.paint("   truncated", "yellow")
    if turn.cause:
        yield printer.paint(safe(f"   cause: {turn.cause}"), "yellow")
    if turn.verdict:
        yield printer.paint(safe(f"   {turn.verdict}"), "yellow")


def _sections(turn: TurnView, printer: Printer) -> Iterator[str]:
    for piece in turn.pieces:
        text = piece.of(turn.text)
        if piece.kind == "thinking":
            yield printer.paint(f"   thinking: {len(text)} characters (--raw shows them)", "dim")
        elif piece.kind != "other" or not is_markup(text):
            name = "beside the sections" if piece.kind == "other" else piece.kind
            yield printer.paint(f"   {name}:", "dim")
            yield from _block(text.strip())


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
        rows.append((safe(view.placed(turn.id)), *rewards, *advantages))
    yield from table(rows, left=1)


def _failures(forensics: TurnForensics, view: DebateView, printer: Printer) -> Iterator[str]:
    yield printer.paint(f"{safe(view.placed(forensics.id))}: malformed", "yellow")
    for failure in forensics.failures:
        reason = failure.reason.value.replace("_", " ")
        yield f"   {reason} ({safe(failure.detail)}){_position(failure)}: {failure.rule}"
        if failure.excerpt is not None:
            piece, left = failure.excerpt, failure.excerpt.left_out
            middle = f"[{left} characters]" if left else ""
            marked = printer.paint(safe(piece.piece) + middle + safe(piece.rest), "red")
            yield f"{INDENT}{safe(piece.before)}{marked}{safe(piece.after)}"


def _position(failure: FailureView) -> str:
    if failure.offset is None:
        return ""
    return f" at line {failure.line}, column {failure.column} (character {failure.offset} from 0)"


def _votes(graph: RoundGraph, view: DebateView, printer: Printer) -> Iterator[str]:
    """Yield the lines of one graph."""
    yield printer.paint(f"votes on {view.round_name(graph.round)}", "bold")
    for arrow in graph.arrows:
        yield "   " + _arrow(arrow, view, printer)
    for line in graph.unread:
        judge = safe(view.handles[line.judge.agent])
        yield f"   {judge}: no vote ({line.reason.replace('_', ' ')}): {safe(line.line)}"
    yield from _matrix(graph, view)
    yield from _order(graph, view, printer)


def _arrow(arrow: Arrow, view: DebateView, printer: Printer) -> str:
    sign = "=" if arrow.tie else ">"
    sides = f"{_name(view, arrow.winner)} {sign} {_name(view, arrow.loser)}"
    notes = [printer.grade(arrow.truth)]
    if not arrow.counts:
        notes.append(f"does not count: {arrow.dropped.replace('_', ' ')}")
    if arrow.in_cycle:
        notes.append(printer.paint("in a cycle", "yellow"))
    line = f'   "{safe(arrow.line)}"' if arrow.line else ""
    return f"{_name(view, arrow.judge)}: {sides}, {', '.join(notes)}{line}"


def _name(view: DebateView, turn: TurnId) -> str:
    return safe(view.handles[turn.agent])


def _matrix(graph: RoundGraph, view: DebateView) -> Iterator[str]:
    """Yield the table of valid votes: how often the row's solution beat the column's; = is a tie."""
    names = [_name(view, turn) for turn in graph.solutions]
    rows: list[Sequence[str]] = [("beat", *names)]
    for i, name in enumerate(names):
        rows.append((name, *(graph.wins(i, j) for j in range(len(names)))))
    yield from ("   " + line for line in table(rows, left=0))


def _order(graph: RoundGraph, view: DebateView, printer: Printer) -> Iterator[str]:
    if graph.edges:
        beaten = ", ".join(f"{_name(view, a)} beats {_name(view, b)}" for a, b in graph.edges)
        yield f"   by majority: {beaten}"
    for cycle in graph.cycles:
        yield printer.paint(f"   cycle: {', '.join(_name(view, turn) for turn in cycle)}", "yellow")
    if graph.condorcet is not None:
        yield f"   beats every other: {_name(view, graph.condorcet)}"


def print_why(why: Why, printer: Printer, *, as_json: bool = False) -> None:
    """Print why a turn was rewarded as it was."""
    from debate_rl.inspector.views.reward import outline  # loads configurations, which most do without

    if as_json:
        printer.json({"schema": 1, **json_of(why)})
        return
    who = f"{why.handle(why.turn)} {why.persona}, turn {named(why.turn)}"
    title = safe(f"debate {why.id}, {who}, problem {why.problem}")
    printer.line(printer.paint(title, "bold"))
    for line in outline(why):
        quote = f': "{safe(line.quote)}"' if line.quote else ""
        text = "  " * line.depth + safe(line.text) + quote
        heading = line.depth == 0 and not line.text.startswith("note: ")
        printer.line((printer.paint(text, "bold") if heading else text) + _badge(line.matches, printer))
    printer.line(_verdict(why))


def _badge(matches: bool | None, printer: Printer) -> str:
    """Return the mark of a number that is not what is stored; nothing else is marked."""
    return printer.paint("  [not as stored]", "red") if matches is False else ""


def _verdict(why: Why) -> str:
    from debate_rl.inspector.views.reward import numbers_in

    badges = [number.matches for number in numbers_in(why) if number.matches is not None]
    if not badges:
        return "nothing was recomputed that could be compared with what is stored"
    wrong = badges.count(False)
    return f"{wrong} of {len(badges)} numbers are not as stored" if wrong else "all numbers are as stored"
