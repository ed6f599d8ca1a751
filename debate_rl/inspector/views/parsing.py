"""What is malformed in a debate: where, by which rule, and what today's parser makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from msgspec import UNSET

from debate.prompting.shown import holds_criticism
from debate.prompting.texts import load_prompts
from debate.reply import read_reply, untagged_rule
from debate.types import (
    Ballot,
    Criticism,
    FailureReason,
    ParsedTurn,
    ParseFailure,
    Span,
    StopReason,
    Turn,
    TurnId,
)
from debate_rl.inspector.views.debate import handles_of
from transcripts import Record
from transcripts.record import check_record

CONTEXT, HALF = 60, 80
"""Characters that an excerpt shows on each side of what it points at, and of each end of a long piece."""
RULES: dict[FailureReason, str] = {
    FailureReason.MISSING_SECTION: "A reply must hold this section, between its tags.",
    FailureReason.UNCLOSED_SECTION: "A section that is opened must be closed by its own tag.",
    FailureReason.NOT_A_COMPARISON: (
        "A line of a comparison must begin with two handles and only >, < or = between them."
    ),
    FailureReason.UNKNOWN_HANDLE: "A comparison must name handles of agents of this debate.",
    FailureReason.OWN_WORK: "A judge must not compare its own work unless the protocol asks for it.",
    FailureReason.SAME_HANDLE: "A comparison must name two different handles.",
    FailureReason.UNTAGGED: "A solution must stand between its tags; this reply was read as a whole.",
    FailureReason.NOT_A_CRITICISM: "A target must be another agent, and something must be said of its work.",
    FailureReason.NOT_DUE: "Votes count only where the prompt showed at least two solutions to compare.",
}
"""The rule that each failure breaks, one sentence each."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text around a failure: what stands ``before``, the offending ``piece``, what stands ``after``.

    Of a long piece the middle is left out: ``left_out`` characters, then ``rest``.
    """

    before: str
    piece: str
    left_out: int
    rest: str
    after: str


@dataclass(frozen=True, slots=True)
class FailureView:
    """One failure. ``offset`` counts the characters of the text from 0; ``line`` and ``column`` count from 1.

    All three and the excerpt are None where a section is missing: there is nothing to point at.
    """

    reason: FailureReason
    detail: str
    rule: str
    offset: int | None
    line: int | None
    column: int | None
    excerpt: Excerpt | None


@dataclass(frozen=True, slots=True)
class TurnForensics:
    """The failures of one turn; its ``stop_reason`` is "length" where it was truncated."""

    id: TurnId
    handle: str
    persona: str
    stop_reason: StopReason
    failures: tuple[FailureView, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """What a field of ``ParsedTurn`` holds in the transcript, and what it holds when parsed today."""

    field: str
    stored: str
    now: str


def parse_forensics(record: Record) -> tuple[TurnForensics, ...]:
    """Return the turns that have failures, in the order of the debate.

    ValueError for a record that is not a debate (``check_record``).
    """
    check_record(record)
    return tuple(
        TurnForensics(
            turn.id,
            turn.handle,
            record.debate.personas[turn.id.agent].name,
            turn.completion.stop_reason,
            tuple(failure_view(failure, turn.completion.text) for failure in turn.parsed.failures),
        )
        for turn in record.debate.turns
        if turn.parsed.failures
    )


def failure_view(failure: ParseFailure, text: str) -> FailureView:
    r"""Return where a failure is, and the rule.

    >>> shown = failure_view(ParseFailure(FailureReason.NOT_A_COMPARISON, "A ? B", Span(3, 8)), "x\n\nA ? B")
    >>> shown.line, shown.column, shown.excerpt.before, shown.excerpt.piece
    (3, 1, 'x\n\n', 'A ? B')
    """
    told = failure.reason, failure.detail, RULES[failure.reason]
    if failure.span is None:
        return FailureView(*told, None, None, None, None)
    start = min(max(0, failure.span.start), len(text))  # the part of a stored span that lies in the text
    end = min(max(start, failure.span.end), len(text))
    piece, line = text[start:end], text.count("\n", 0, start) + 1
    left_out = max(0, len(piece) - 2 * HALF)
    excerpt = Excerpt(
        text[max(0, start - CONTEXT) : start],
        piece[:HALF] if left_out else piece,
        left_out,
        piece[-HALF:] if left_out else "",
        text[end : end + CONTEXT],
    )
    return FailureView(*told, start, line, start - text.rfind("\n", 0, start), excerpt)


def parse_again(record: Record, turn: Turn) -> ParsedTurn:
    """Return what today's parser reads from a turn, with the handles and the rules of its debate.

    Whether the prompt had opened a think block is not stored: it had where only so the stored thinking
    comes out.
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
    """Return what changes in a turn, field by field, when its text is parsed again today.

    ValueError for a record that is not a debate (``check_record``).
    """
    check_record(record)
    now = parse_again(record, turn)
    text = turn.completion.text
    by_mode = record.mode is not UNSET  # the grader found the answer, not the parser
    names = [field.name for field in fields(ParsedTurn) if not (by_mode and field.name == "answer")]
    pairs = ((name, getattr(turn.parsed, name), getattr(now, name)) for name in names)
    return tuple(FieldChange(name, _text_of(a, text), _text_of(b, text)) for name, a, b in pairs if a != b)


def _text_of(value: Any, text: str) -> str:
    """Return a field of a parsed turn in words."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, Span):
        return f"characters {value.start} to {value.end}: {_short(value.of(text))}"
    return "; ".join(_each(value)) or "none"


def _each(values: tuple[Ballot | Criticism | ParseFailure, ...]) -> Iterator[str]:
    signs = {"left": ">", "right": "<", "tie": "="}
    for value in values:
        if isinstance(value, Criticism):
            yield f"of {value.target} at {value.span.start}"
        elif isinstance(value, Ballot):
            yield f"{value.left} {signs[value.outcome]} {value.right} at {value.span.start}"
        else:
            position = "" if value.span is None else f" at {value.span.start}"
            yield f"{value.reason} {_short(value.detail)}{position}"


def _short(text: str) -> str:
    return text if len(text) <= 2 * CONTEXT else f"{text[:CONTEXT]} ... {text[-CONTEXT:]}"
