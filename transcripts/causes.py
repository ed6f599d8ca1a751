"""The causes of the wrong solutions in a stored debate, by the rules of ``envs.causes``."""

from __future__ import annotations

from collections.abc import Iterator

from debate.types import Span, Turn
from envs.causes.rules import WrongReply, cause_of
from rewards.truth import grade_of
from transcripts.codec import from_line
from transcripts.errors import FieldError
from transcripts.record import Record


def wrong_replies(record: Record) -> Iterator[tuple[Turn, WrongReply]]:
    """Yield each solution that was graded wrong or missing, in the order of the turns."""
    for turn in record.debate.turns:
        reply = wrong_reply(record, turn)
        if reply is not None:
            yield turn, reply


def wrong_reply(record: Record, turn: Turn) -> WrongReply | None:
    """Return a turn's solution if it was graded wrong or missing, else None.

    If a turn has no solution section, its whole reply after the thinking is the solution.
    """
    grade = None if turn.ballot else grade_of(turn.id, record.correct)
    if grade is True or grade is None:
        return None
    where = turn.parsed.solution
    if where is None:
        where = Span(turn.parsed.thinking.end if turn.parsed.thinking else 0, len(turn.completion.text))
    cut = turn.completion.stop_reason == "length"
    return WrongReply(record.debate.problem, where.of(turn.completion.stated), grade == "missing", cut)


def causes(record: Record) -> frozenset[str]:
    """Return the causes of the wrong solutions of a debate."""
    return frozenset(cause_of(reply).name for _, reply in wrong_replies(record))


def causes_in(line: bytes) -> frozenset[str]:
    """Return the causes of the wrong solutions in a debate's line; none if the line is not a debate."""
    try:
        return causes(from_line(line))
    except (FieldError, LookupError, ValueError):
        return frozenset()
