"""A whole debate as text: what was said round by round, the votes, and what they were worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from debate.types import TurnId
from inspector.plain.forms import debate_json
from inspector.plain.paper import Paper, fitted, widths_of
from inspector.plain.votes import vote_lines
from inspector.views import DebateView, FailureView, TurnForensics, TurnView, debate_view, parse_forensics
from inspector.views import vote_graphs as graphs_of
from learner.formatting import fixed, safe, safe_lines
from rewards import STREAMS
from transcripts import Record

INDENT = "    "
ADVANTAGES = ("generator", "judge", "format")


def print_debate(id: str, record: Record, paper: Paper, *, raw: bool = False, as_json: bool = False) -> None:
    """Print one debate; ``raw`` replies stand as they were written, with their tags and thinking.

    Rounds and agents count from 1 in sentences; in ids of debates and in JSON they count from 0.
    """
    view = debate_view(id, record)
    if as_json:
        paper.json(debate_json(view, record))
        return
    for line in _lines(view, record, paper, raw=raw):
        paper.line(line)


def _lines(view: DebateView, record: Record, paper: Paper, *, raw: bool) -> Iterator[str]:
    yield from _head(view, paper)
    summaries = {one.round: one for one in view.summaries}
    for round_, turns in groupby(view.spoken(), key=lambda turn: turn.id.round):
        yield ""
        title = "final ballot" if round_ >= view.rounds else f"round {round_ + 1}"
        yield paper.paint(f"== {title} ==", "bold")
        if round_ in summaries:
            yield "summary shown to all:"
            yield from _block(summaries[round_].completion if raw else summaries[round_].text)
        for turn in turns:
            yield ""
            yield from _turn(turn, view, paper, raw=raw)
    for graph in graphs_of(record):
        yield ""
        yield from vote_lines(graph, view, paper)
    yield ""
    yield from _rewards(view, paper)
    for forensics in parse_forensics(record):
        yield ""
        yield from _failures(forensics, view, paper)


def _head(view: DebateView, paper: Paper) -> Iterator[str]:
    problem = view.problem
    level = f"level {problem.level}" if problem.level.isdecimal() else problem.level
    facts = [part for part in (problem.source, level, problem.kind) if part]
    yield paper.paint(f"debate {view.id}: {safe(problem.id)}", "bold") + safe(f" ({', '.join(facts)})")
    size = f"{view.agents} agents, {view.rounds} rounds"
    yield f"{size}, seed {view.seed}, policy version {view.policy_version}"
    yield "problem:"
    yield from _block(problem.question)
    yield f"right answer: {'not known' if problem.answer is None else safe(problem.answer)}"
    if view.winner is None:
        yield "voted winner: none, no votes count"
    else:
        won = view.turn(view.winner)
        grade = paper.grade(won.correct) if won else "unknown"
        yield f"voted winner: {seat(view, view.winner)}, {grade}"


def seat(view: DebateView, turn: TurnId) -> str:
    """Return whose turn it is, for people: label and round, counted from 1."""
    where = "final ballot" if turn.round >= view.rounds else f"round {turn.round + 1}"
    return f"{safe(view.handles[turn.agent])} {where}"


def _turn(turn: TurnView, view: DebateView, paper: Paper, *, raw: bool) -> Iterator[str]:
    where = f"(turn {turn.id.agent}.{turn.id.round})"  # as `why --turn` takes it
    who = f"-- {safe(turn.handle)}, agent {turn.id.agent + 1}, {safe(turn.persona)} {where}"
    answer = "" if turn.answer is None else f": {safe(turn.answer)}"
    yield paper.paint(who, "cyan") + (f", {paper.grade(turn.correct)}{answer}" if not turn.ballot else "")
    if turn.shown:
        shown = ", ".join(seat(view, one) for one in turn.shown if 0 <= one.agent < view.agents)
        yield paper.paint(f"   shown: {shown}" + (f"; {turn.cut} texts cut" if turn.cut else ""), "dim")
    if raw:
        yield from _block(turn.text)
    else:
        yield from _sections(turn, paper)
    if turn.stop_reason == "length":
        yield paper.paint("   cut off at the token limit", "yellow")


def _sections(turn: TurnView, paper: Paper) -> Iterator[str]:
    for piece in turn.pieces:
        text = piece.of(turn.text)
        if piece.kind == "thinking":
            yield paper.paint(f"   thinking: {len(text)} characters (--raw shows them)", "dim")
        elif piece.kind != "other" or not _is_markup(text):
            yield paper.paint(f"   {'beside the sections' if piece.kind == 'other' else piece.kind}:", "dim")
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


def _rewards(view: DebateView, paper: Paper) -> Iterator[str]:
    yield paper.paint("rewards, then advantages (-: no signal)", "bold")
    names = (*STREAMS, *(f"adv {name}" for name in ADVANTAGES))
    rows: list[Sequence[str]] = [("turn", *names)]
    for turn in view.spoken():
        rewards = (fixed(turn.rewards[name], "+.2f", none="-") for name in STREAMS)
        advantages = (fixed(turn.advantages[name], "+.3f", none="-") for name in ADVANTAGES)
        rows.append((seat(view, turn.id), *rewards, *advantages))
    widths = widths_of(rows)
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(fitted(cell, width, right=place > 0) for place, (cell, width) in enumerate(cells))


def _failures(forensics: TurnForensics, view: DebateView, paper: Paper) -> Iterator[str]:
    yield paper.paint(f"{seat(view, forensics.id)}: could not be read", "yellow")
    for failure in forensics.failures:
        yield f"   {failure.reason} ({safe(failure.detail)}){_place(failure)}: {failure.rule}"
        if failure.excerpt is not None:
            piece, left = failure.excerpt, failure.excerpt.left_out
            middle = f"[{left} characters]" if left else ""
            marked = paper.paint(safe(piece.piece) + middle + safe(piece.rest), "red")
            yield f"{INDENT}{safe(piece.before)}{marked}{safe(piece.after)}"


def _place(failure: FailureView) -> str:
    if failure.offset is None:
        return ""
    return f" at line {failure.line}, column {failure.column} (character {failure.offset} from 0)"
