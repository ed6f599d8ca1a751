"""The lines of the panels, from views made by hand."""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text

from debate import Persona, Problem
from debate.types import FailureReason, ParseFailure, Span, TurnId
from debate_rl.inspector.terminal.across import comparison_lines
from debate_rl.inspector.terminal.grid import cell
from debate_rl.inspector.terminal.panels.turn import MOST, parse_lines, turn_lines
from debate_rl.inspector.terminal.panels.votes import adoption_lines, vote_lines
from debate_rl.inspector.views.adoption import AdoptionCell, AdoptionView, Copy
from debate_rl.inspector.views.compared import Comparison, TextPiece, TurnDifference, VoteDifference
from debate_rl.inspector.views.debate import DebateView, Piece, TurnView
from debate_rl.inspector.views.graph import Arrow, RoundGraph, UnreadLine
from debate_rl.inspector.views.parsing import FieldChange, TurnForensics, failure_view

A, B, C = TurnId(0, 0), TurnId(1, 0), TurnId(2, 0)
NONE = dict.fromkeys(("peer", "truth", "judge", "format", "generator"))


def turn(id=A, text="<think>hm</think><solution>4</solution>", **changed):
    pieces = (
        Piece("other", 0, 7),
        Piece("thinking", 7, 9),
        Piece("other", 9, 27),
        Piece("solution", 27, 28),
        Piece("other", 28, len(text)),
    )
    found = TurnView(
        id=id,
        persona="Careful",
        handle="K7",
        ballot=False,
        grade="right",
        answer="4",
        text=text,
        pieces=pieces,
        shown=(),
        compared=(),
        cut=0,
        rewards=NONE | {"peer": 0.5, "truth": 1.0},
        advantages=NONE | {"generator": -0.25},
        stop_reason="stop",
        tokens=7,
        failures=(),
    )
    return replace(found, **changed)


def view():
    rows = tuple(
        (turn(TurnId(agent, 0), grade=grade),) for agent, grade in enumerate(("right", "wrong", "missing"))
    )
    personas = tuple(Persona(name, "Solve it.") for name in ("Careful", "Quick", "Skeptic"))
    return DebateView(
        id="0.0",
        step=0,
        group="p",
        problem=Problem("p", "What is 2 + 2?", "4"),
        personas=personas,
        handles=("K7", "Q2", "M4"),
        agents=3,
        rounds=1,
        turns=rows,
        winner=A,
        tied=(),
        judged_round=0,
        scored=True,
        summaries=(),
        seed=0,
        policy_version=0,
        seconds=None,
    )


def plain(lines):
    return "\n".join(line.plain if isinstance(line, Text) else line for line in lines)


def test_thinking_is_folded_until_asked_and_tags_are_headings():
    folded, unfolded = (plain(turn_lines(view(), turn(), folded=fold)) for fold in (True, False))
    assert "thinking  2 characters, t shows them" in folded
    assert "hm" not in folded
    assert "thinking\nhm\nsolution\n4" in unfolded
    assert "<solution>" not in unfolded
    assert "reward     peer +0.50  truth +1.00  judge –  format –" in folded
    assert "advantage  generator -0.25  judge –  format –  7 tokens" in folded


def test_a_winner_by_lot_is_told():
    assert "★ winner\n" in plain(turn_lines(view(), turn()))
    assert "★ winner, drawn among K7, M4\n" in plain(turn_lines(replace(view(), tied=(A, C)), turn()))


def test_text_outside_of_sections_is_shown_and_what_went_wrong_is_told():
    text = "I say <b> 4"
    failure = ParseFailure(FailureReason.MISSING_SECTION, "solution")
    one = turn(text=text, pieces=(Piece("other", 0, len(text)),), failures=(failure,), stop_reason="length")
    shown = plain(turn_lines(view(), one))
    assert text in shown
    assert "!  truncated, 1 malformed (p shows them)" in shown


def test_a_long_turn_is_cut_at_the_same_place_whatever_its_sections():
    text = "x" * (MOST - 10) + "y" * 50
    pieces = (Piece("solution", 0, MOST - 10), Piece("evaluation", MOST - 10, MOST + 40))
    shown = plain(turn_lines(view(), turn(text=text, pieces=pieces)))
    assert shown.count("y" * 10 + "\n") == 1
    assert "y" * 11 not in shown
    assert f"{len(text):,} characters in all, o shows them" in shown


def test_signs_of_a_cell():
    assert cell(turn(), winner=True)[0] == "✓★ 4"
    assert cell(turn(grade="wrong", stop_reason="length"), winner=False)[0] == "✗ !4"
    assert cell(turn(grade="missing", answer=None), winner=False)[0] == "∅  "
    assert cell(turn(ballot=True, grade="", answer=None), winner=False)[0] == "  ballot"
    assert cell(None, winner=False)[0] == ""


def arrow(judge, winner, loser, truth, **changed):
    found = Arrow(judge, winner, loser, False, winner, loser, truth, True, "", False, "K7 > Q2", None)
    return replace(found, **changed)


def test_votes_as_matrix_and_list():
    judge = TurnId(2, 1)
    arrows = (
        arrow(judge, A, B, "right"),
        arrow(TurnId(0, 1), C, B, "wrong", tie=True),
        arrow(TurnId(1, 1), A, C, "undecidable", in_cycle=True),
        arrow(TurnId(1, 1), A, B, "right", counts=False, dropped="own_work"),
    )
    graph = RoundGraph(
        0,
        (A, B, C),
        arrows,
        ((0, 1, 1), (0, 0, 0.5), (0, 0.5, 0)),
        ((0, 0, 0), (0, 0, 1), (0, 1, 0)),
        ((A, B), (A, C)),
        ((A, B, C),),
        A,
        (UnreadLine(judge, "unknown_handle", "K7 > [red]Z9[/]", Span(0, 3)),),
    )
    rows = plain(vote_lines(view(), [graph])).splitlines()
    assert rows[2] == "votes on round 0  3 of 4 votes are valid, 1 of 2 decidable are right"
    assert rows[3:5] == ["↻ cycle: K7, Q2, M4", "K7 beats every other"]
    matrix = [row.split() for row in rows[6:9]]
    assert matrix == [
        ["✓", "K7", "Careful", "·", "1", "1"],
        ["✗", "Q2", "Quick", "0", "·", "0="],
        ["∅", "M4", "Skeptic", "0", "0=", "·"],
    ]
    assert [row.split()[:5] for row in rows[9:13]] == [
        ["✓", "M4", "K7", ">", "Q2"],
        ["✗", "K7", "M4", "=", "Q2"],
        ["?", "Q2", "K7", ">", "M4"],
        ["–", "Q2", "K7", ">", "Q2"],
    ]
    assert "↻" in rows[11]
    assert "does not count: own work" in rows[12]
    assert rows[13] == "– M4: no vote, unknown handle  K7 > [red]Z9[/]"


def test_no_votes_are_told():
    assert "no votes" in plain(vote_lines(view(), []))


def test_adopted_answers():
    cells = (
        (AdoptionCell(A, "4", 0, "right"),),
        (AdoptionCell(B, "[b]5", 1, "wrong"),),
        (AdoptionCell(C, None, None, "missing"),),
    )
    rows = plain(adoption_lines(view(), AdoptionView(cells, (Copy(A, B),), 2))).splitlines()
    assert [row.split() for row in rows[2:5]] == [
        ["K7", "Careful", "A", "✓", "4"],
        ["Q2", "Quick", "B", "✗", "[b]5"],
        ["M4", "Skeptic", "–", "∅"],
    ]
    assert rows[-1] == "Q2 Quick, round 0 (✗) took it from K7 Careful, round 0 (✓): 4"


def test_a_failure_is_shown_with_its_place_and_rule():
    failure = ParseFailure(FailureReason.NOT_A_COMPARISON, "K7 ? Q2", Span(2, 9))
    found = failure_view(failure, "a\nK7 ? Q2\nend\x1b")
    forensics = TurnForensics(A, "K7", "Careful", "stop", (found,))
    shown = plain(
        parse_lines(view(), forensics, (FieldChange("answer", "4", "5"),), [replace(forensics, id=B)])
    )
    assert "not a comparison  K7 ? Q2  line 2, column 1, character 2" in shown
    assert found.rule in shown
    assert "  a\n  »K7 ? Q2«\n  end<U+001B>" in shown
    assert "1 fields change\nanswer\n  stored 4\n  now    5" in shown
    assert "Q2 Quick, round 0: not a comparison" in shown


def test_two_debates_compared_without_colour():
    pieces = (TextPiece(" ", "so "), TextPiece("-", "4"), TextPiece("+", "5\nor 6"))
    turns = (
        TurnDifference(A, ("Careful", "Careful"), pieces, True, 0.5, ("4", "5"), (True, False)),
        TurnDifference(TurnId(0, 1), ("Careful", "Careful"), (), False, 1.0, (None, None), (None, None)),
    )
    votes = (
        VoteDifference(TurnId(2, 1), A, B, "first", "second"),
        VoteDifference(TurnId(1, 1), A, C, None, "tie"),
    )
    shown = plain(comparison_lines(Comparison("0.1", "4.2", turns, votes, 3, ("other personas",))))
    assert "other personas\n[-0.1 alone-]  {+4.2 alone+}" in shown
    assert f"{'Careful, round 0':<34} ✓ 4 → ✗ 5\n\nvotes" in shown
    assert (
        "judge agent 2, round 1 on Careful, round 0 and agent 1, round 0: "
        "Careful, round 0 won, then agent 1, round 0 won (reversed)" in shown
    )
    assert ": no vote, then a tie (new)" in shown
    assert "so [-4-]{+5\nor 6+}" in shown
