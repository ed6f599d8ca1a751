"""Replies as models write them, each with its reading (tests/data/malformed_replies.toml)."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from debate.parsing import parse_turn
from debate.types import Ballot, FailureReason, ParsedTurn, ParseFailure, Span

DATA = Path(__file__).parents[2] / "data" / "malformed_replies.toml"
ROWS = tomllib.loads(DATA.read_text(encoding="utf-8"))["reply"]
HANDLES = ("K7", "Q2", "M4", "X5")
PREFIX = "<solution>\\boxed{4}</solution>\n<evaluation>fine</evaluation>\n"
SIGNS = {"left": ">", "right": "<", "tie": "="}
LINE_REASONS = set(FailureReason) - {FailureReason.MISSING_SECTION, FailureReason.UNCLOSED_SECTION}


def _vote(ballot: Ballot) -> str:
    return f"{ballot.left} {SIGNS[ballot.outcome]} {ballot.right}"


def _failure(failure: ParseFailure) -> str:
    return failure.reason if failure.reason in LINE_REASONS else f"{failure.reason} {failure.detail}"


def _words(text: str, span: Span | None) -> str:
    return "" if span is None else span.of(text).strip()


def _read(row: Mapping[str, str | bool]) -> tuple[str, ParsedTurn]:
    text = (PREFIX if row.get("prefix") else "") + str(row["text"])
    own = str(row.get("own", "X5")) or None
    return text, parse_turn(text, handles=HANDLES, own=own, due=bool(row.get("due", True)))


def test_the_table_is_large_and_its_ids_are_unique() -> None:
    assert len(ROWS) >= 45
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert not {key for row in ROWS for key in row} - {
        *("id", "text", "prefix", "due", "own", "votes", "failures", "answer"),
        *("solution", "evaluation", "comparison", "thinking"),
    }


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_reading(row: Mapping[str, str | bool]) -> None:
    text, parsed = _read(row)
    assert [_vote(ballot) for ballot in parsed.ballots] == row.get("votes", [])
    assert [_failure(failure) for failure in parsed.failures] == row.get("failures", [])
    for name in ("solution", "evaluation", "comparison", "thinking"):
        if name in row:
            assert _words(text, getattr(parsed, name)) == row[name], name
    if "answer" in row:
        assert parsed.answer == row["answer"]
