"""The malformed parts of a debate: positions, broken rules, and the results of the current parser."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from msgspec import UNSET

from debate.prompting.shown import holds_criticism
from debate.prompting.texts import load_prompts
from debate.reply import read_reply, untagged_rule
from debate.types import Ballot, Criticism, FailureReason, ParsedTurn, ParseFailure, StopReason, Turn, TurnId
from debate.types import Span as TextSpan
from debate_rl.inspector.blocks import Block, Line, Section, Span, Table, Text, cut, named_turn
from debate_rl.inspector.views.debate import DebateView, handles_of
from transcripts import Record
from transcripts.record import check_record

CONTEXT, HALF, MOST_FAILURES = 60, 80, 60
"""Characters of an excerpt around a piece, and at each end of a long piece; maximum number of failures."""
RULES: dict[FailureReason, str] = {
    FailureReason.MISSING_SECTION: "A reply must contain this section between its tags.",
    FailureReason.UNCLOSED_SECTION: "An opened section must be closed by its own tag.",
    FailureReason.NOT_A_COMPARISON: (
        "A comparison line must begin with two handles and >, < or = between them."
    ),
    FailureReason.UNKNOWN_HANDLE: "A comparison must name handles of agents of this debate.",
    FailureReason.OWN_WORK: "A judge must not compare its own solution unless the protocol allows it.",
    FailureReason.SAME_HANDLE: "A comparison must name two different handles.",
    FailureReason.UNTAGGED: "A solution must be between its tags; this whole reply was read as one.",
    FailureReason.NOT_A_CRITICISM: "A target must be another agent, and the criticism must have a text.",
    FailureReason.NOT_DUE: "Votes count only if the prompt showed at least two solutions to compare.",
}
"""The rule that each failure breaks, in one sentence."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text around a failure. A long ``piece`` omits ``left_out`` characters before ``rest``."""

    before: str
    piece: str
    left_out: int
    rest: str
    after: str


@dataclass(frozen=True, slots=True)
class FailureView:
    """One failure. ``offset``: from 0; ``line`` and ``column``: from 1. A missing section has no position."""

    reason: FailureReason
    detail: str
    rule: str
    offset: int | None
    line: int | None
    column: int | None
    excerpt: Excerpt | None


@dataclass(frozen=True, slots=True)
class TurnForensics:
    """The failures of one turn. ``stop_reason`` is "length" if it was truncated."""

    id: TurnId
    handle: str
    persona: str
    stop_reason: StopReason
    failures: tuple[FailureView, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of ``ParsedTurn`` as stored in the transcript, and as read by the current parser."""

    field: str
    stored: str
    now: str


def parse_forensics(record: Record) -> tuple[TurnForensics, ...]:
    """Return the turns with failures, in order. ValueError if the record is not a debate."""
    check_record(record)
    found: list[TurnForensics] = []
    for turn in record.debate.turns:
        if failures := tuple(failure_view(one, turn.completion.text) for one in turn.parsed.failures):
            who = turn.id, turn.handle, record.debate.personas[turn.id.agent].name
            found.append(TurnForensics(*who, turn.completion.stop_reason, failures))
    return tuple(found)


def failure_view(failure: ParseFailure, text: str) -> FailureView:
    r"""Return the position of a failure and the broken rule.

    >>> failure = ParseFailure(FailureReason.NOT_A_COMPARISON, "A ? B", TextSpan(3, 8))
    >>> shown = failure_view(failure, "x\n\nA ? B")
    >>> shown.line, shown.column, shown.excerpt.before, shown.excerpt.piece
    (3, 1, 'x\n\n', 'A ? B')
    """
    rule = failure.reason, failure.detail, RULES[failure.reason]
    if failure.span is None:
        return FailureView(*rule, None, None, None, None)
    start = min(max(0, failure.span.start), len(text))  # the part of a stored span inside the text
    end = min(max(start, failure.span.end), len(text))
    piece, line = text[start:end], text.count("\n", 0, start) + 1
    left_out = max(0, len(piece) - 2 * HALF)
    shown = (piece[:HALF], left_out, piece[-HALF:]) if left_out else (piece, 0, "")
    excerpt = Excerpt(text[max(0, start - CONTEXT) : start], *shown, text[end : end + CONTEXT])
    return FailureView(*rule, start, line, start - text.rfind("\n", 0, start), excerpt)


def parse_again(record: Record, turn: Turn) -> ParsedTurn:
    """Return the result of the current parser, with the handles and rules of the debate.

    The transcript does not store whether the prompt opened a think block. An open block is assumed if only
    this assumption gives the stored thinking.
    """
    protocol = record.debate.protocol
    begun, plain = (
        read_reply(
            turn.completion,
            handles=[handle for handle in handles_of(record) if handle],
            own=None if protocol.judge_own else turn.handle,
            due=len(turn.compared) >= 2,
            in_thinking=in_thinking,
            ballot=turn.ballot,
            kind=record.debate.problem.kind,
            untagged=untagged_rule(protocol, load_prompts(protocol.prompts), turn.id.round),
            critic=turn.handle if holds_criticism(protocol, turn.id.round) else None,
        )
        for in_thinking in (True, False)
    )
    stored = turn.parsed.thinking
    return begun if plain.thinking != stored and begun.thinking == stored else plain


def reparsed(record: Record, turn: Turn) -> tuple[FieldChange, ...]:
    """Return the fields that the current parser reads differently. ValueError if this is not a debate."""
    check_record(record)
    now = parse_again(record, turn)
    text = turn.completion.text
    by_mode = record.mode is not UNSET  # the grader found the answer, not the parser
    names = [field.name for field in fields(ParsedTurn) if not (by_mode and field.name == "answer")]
    pairs = ((name, getattr(turn.parsed, name), getattr(now, name)) for name in names)
    return tuple(FieldChange(name, _text_of(a, text), _text_of(b, text)) for name, a, b in pairs if a != b)


def _text_of(value: Any, text: str) -> str:
    if value is None or isinstance(value, str):
        return "none" if value is None else value
    if isinstance(value, TextSpan):
        return f"characters {value.start} to {value.end}: {_short(value.of(text))}"
    return "; ".join(map(_item_text, value)) or "none"


def _item_text(value: Ballot | Criticism | ParseFailure) -> str:
    at = "" if value.span is None else f" at {value.span.start}"
    if isinstance(value, Criticism):
        return f"of {value.target}{at}"
    if isinstance(value, Ballot):
        sign = {"left": ">", "right": "<", "tie": "="}[value.outcome]
        return f"{value.left} {sign} {value.right}{at}"
    return f"{value.reason} {_short(value.detail)}{at}"


def _short(text: str) -> str:
    return text if len(text) <= 2 * CONTEXT else f"{text[:CONTEXT]} ... {text[-CONTEXT:]}"


def parsing_blocks(
    view: DebateView, record: Record, *, chosen: TurnId | None = None, again: bool = True
) -> list[Block]:
    """Return the malformed parts, the chosen turn first. ``again``: also compare with the current parser."""
    malformed = sorted(parse_forensics(record), key=lambda turn: turn.id != chosen)
    blocks: list[Block] = [_forensics(view, turn) for turn in malformed[:MOST_FAILURES]]
    if not again:
        return blocks
    blocks = blocks or [Line("nothing is malformed", name="none")]
    if len(malformed) > MOST_FAILURES:
        blocks.append(Line(f"{len(malformed) - MOST_FAILURES} more turns", "faint"))
    rows = [
        (named_turn(view, turn.id), change.field, change.stored, change.now)
        for turn in record.debate.turns
        for change in reparsed(record, turn)
    ]
    shown, more = cut(rows, MOST_FAILURES)
    same = f"the current parser gives the same result for all {len(record.debate.turns)} turns"
    table = Table(("turn", "field", "stored", "today"), shown, name="reparsed")
    today = [table, *more] if rows else [Line(same, name="reparsed-same")]
    return [*blocks, Section("result of the current parser", today)]


def _forensics(view: DebateView, turn: TurnForensics) -> Section:
    truncated = (", ", Span("truncated", "wrong")) if turn.stop_reason == "length" else ()
    blocks: list[Block] = []
    for failure in turn.failures[:MOST_FAILURES]:
        at = f" line {failure.line}, column {failure.column}, character {failure.offset}"
        place = Span("" if failure.offset is None else at, "faint")
        reason = Span(failure.reason.value.replace("_", " "), "strong")
        blocks.append(Line((reason, " ", Span(failure.detail, "code"), place), name="failure"))
        blocks.append(Line(failure.rule, "faint"))
        if (excerpt := failure.excerpt) is not None:
            left = f" … {excerpt.left_out:,} characters … " if excerpt.left_out else ""
            marked = Span(f"{excerpt.piece}{left}{excerpt.rest}", "mark")
            around = (Span(excerpt.before, "faint"), marked, Span(excerpt.after, "faint"))
            blocks.append(Text(around, kind="excerpt"))
    return Section((named_turn(view, turn.id), ": malformed", *truncated), blocks, name="forensics")
