import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from debate.parsing import last_boxed, parse_turn
from debate.types import Ballot, FailureReason, ParsedTurn, ParseFailure, Span

HANDLES = ("K7", "Q2", "M4", "X5")


def _parse(
    text: str, *, handles: tuple[str, ...] = HANDLES, own: str | None = "X5", due: bool = True
) -> ParsedTurn:
    return parse_turn(text, handles=handles, own=own, due=due)


def _votes(lines: str, *, handles: tuple[str, ...] = HANDLES, own: str | None = "X5") -> list[str]:
    parsed = _parse(f"<comparison>{lines}</comparison>", handles=handles, own=own)
    return [_vote(ballot) for ballot in parsed.ballots]


def _reasons(parsed: ParsedTurn) -> list[str]:
    return [failure.reason.value for failure in parsed.failures]


def test_spans_are_exact() -> None:
    text = "Hm. <solution>a</solution> <evaluation>b</evaluation>\n<comparison>\n K7 > Q2: x \n</comparison>!"
    parsed = _parse(text)
    assert parsed.solution == Span(14, 15)
    assert parsed.evaluation == Span(39, 40)
    assert parsed.comparison == Span(66, 80)
    assert parsed.comparison_block == Span(54, 93)
    assert parsed.ballots[0].span == Span(68, 78)
    assert parsed.ballots[0].span.of(text) == "K7 > Q2: x"
    assert parsed.failures == ()


def test_spans_of_an_unfinished_comparison_reach_the_end() -> None:
    text = "<solution>a</solution><evaluation>b</evaluation><comparison>\nK7 > Q2\nQ2"
    parsed = _parse(text)
    assert parsed.comparison_block == Span(48, len(text))
    assert parsed.comparison == Span(60, len(text))
    assert [ballot.span.of(text) for ballot in parsed.ballots] == ["K7 > Q2"]
    assert parsed.failures[0].span == parsed.comparison


def test_truncated_malformed_and_missing_are_told_apart() -> None:
    head = "<solution>a</solution><evaluation>b</evaluation>"
    assert _reasons(_parse(head)) == ["missing_section"]
    assert _reasons(_parse(f"{head}<comparison>K7 >")) == ["unclosed_section"]
    assert _reasons(_parse(f"{head}<comparison>K7 ></comparison>")) == ["not_a_comparison"]
    assert _reasons(_parse(f"{head}<comparison>N/A</comparison>")) == []
    assert _reasons(_parse("", due=False)) == ["missing_section"]
    assert _parse("", due=False).failures[0].detail == "solution"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} \boxed{2}", "2"),
        (r"\boxed{1} \boxed{2", "1"),
        (r"\boxed{2", None),
        ("2", None),
        (r"\boxed{ 1,000 }", " 1,000 "),
        (r"\boxed{}", ""),
        (r"\boxed{\boxed{7}}", "7"),
        (r"\boxed{\text{a} {b}}", r"\text{a} {b}"),
        (r"}}{ \boxed{3}", "3"),
        (r"\boxed{\left\{ x \right.}", r"\left\{ x \right."),
        (r"\\\boxed{5}", "5"),
        (r"\boxed 5", None),
        (r"\boxed{1} as in \fbox{note}", "1"),
        (r"\unboxed{5}", None),
        ("\\boxed\n{5}", "5"),
    ],
)
def test_last_boxed(text: str, answer: str | None) -> None:
    assert last_boxed(text) == answer


def test_answer_comes_from_the_solution_alone() -> None:
    text = r"\boxed{1}<solution>two</solution><evaluation>\boxed{3}</evaluation>"
    assert _parse(text).answer is None


def test_chain_implies_each_pair_once() -> None:
    assert _votes("K7 > Q2 > M4") == ["K7 > Q2", "Q2 > M4", "K7 > M4"]
    four = _votes("A > B = C > D", handles=("A", "B", "C", "D"), own=None)
    assert four == ["A > B", "B = C", "C > D", "A > C", "B > D", "A > D"]
    assert _votes("A > B = C < D", handles=("A", "B", "C", "D"), own=None) == ["A > B", "B = C", "C < D"]


def test_handles_of_several_words_with_marks_or_of_one_letter() -> None:
    assert _votes("agent  10 > Agent 1", handles=("Agent 1", "Agent 10"), own=None) == ["Agent 10 > Agent 1"]
    assert _votes("[R-1] > R-10", handles=("R-1", "R-10"), own=None) == ["R-1 > R-10"]
    assert _votes("#1 > #2", handles=("#1", "#2"), own=None) == ["#1 > #2"]
    assert _votes("1. 2 > 1\n1 > 2\n1) 1 = 2", handles=("1", "2"), own=None) == ["2 > 1", "1 > 2", "1 = 2"]
    assert _votes("A > B\n(a) b > a", handles=("A", "B"), own=None) == ["A > B", "B > A"]
    assert _votes("straße > Éa\nStraße < éa", handles=("Straße", "éA"), own=None) == [
        "Straße > éA",
        "Straße < éA",
    ]


def test_a_title_may_be_a_handle_itself() -> None:
    assert _votes("the answer > the solution", handles=("answer", "solution"), own=None) == [
        "answer > solution"
    ]
    assert _votes("agent 1 > 1", handles=("1", "Agent 1"), own=None) == ["Agent 1 > 1"]


DATA = Path(__file__).parents[2] / "data" / "malformed_replies.toml"
ROWS = tomllib.loads(DATA.read_text(encoding="utf-8"))["reply"]
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
