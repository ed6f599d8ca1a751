"""What the views of a debate say, as the lines that plain text and the terminal share."""

from dataclasses import replace

from debate.types import FailureReason, ParseFailure, Span, TurnId
from debate_rl.inspector.blocks import Layout, Line, Pairs, Section, Table, Text, lines_of
from debate_rl.inspector.blocks import Span as Words
from debate_rl.inspector.terminal.widgets import cell
from debate_rl.inspector.views import across, adoption_view, debate_view, vote_graphs
from debate_rl.inspector.views.across import TextPiece, TurnDifference, VoteDifference
from debate_rl.inspector.views.debate_blocks import answers_blocks, problem_blocks, turn_card
from debate_rl.inspector.views.parsing import parsing_blocks
from debate_rl.inspector.views.votes import votes_blocks, votes_of_turn

from .conftest import make, solved, with_turn

A, B, C = TurnId(0, 0), TurnId(1, 0), TurnId(2, 0)


def plain(blocks, layout=None):
    rows = lines_of(blocks, layout or Layout(unfold="t shows them", most=20_000, further=", o shows them"))
    return "\n".join("".join(span.text for span in row).rstrip() for row in rows)


def card(record, turn=A, **options):
    view = debate_view("5.0", record)
    return plain([turn_card(view, view.turn(turn), **options)])


def thinking(record):
    turn = record.debate.turn(A)
    text = "<think>let me see</think>" + turn.completion.text
    parsed = replace(turn.parsed, thinking=Span(7, 17), solution=Span(35, 50))
    said = type(turn.completion)((), (), (), text, "length", 3)
    return with_turn(record, A, completion=said, parsed=parsed)


def test_every_block_has_its_lines():
    table = Table(("name", ">size", "~>left out"), [("a", "10", "x"), ("bcd", Words("5", "wrong"), "")])
    section = Section("title\x1b", [Line(("one ", Words("two", "strong")))])
    blocks = [section, Pairs([("a", "1"), ("long", "2")]), table, Text("first\n\x9bsecond", "words")]
    assert plain(blocks).splitlines() == [
        *("", "title<U+001B>", "one two", "a     1", "long  2"),
        *("name  size  left out", "a       10         x", "bcd      5"),
        *("words:", "    first", "    <U+009B>second"),
    ]


def test_thinking_is_folded_until_asked_and_tags_are_not_shown(circle):
    record = thinking(circle)
    folded, unfolded, raw = card(record), card(record, fold=False), card(record, raw=True)
    reward = "reward     generator: peer +0.00, truth +1.00 · judge none · format +0.00"
    assert all(words in folded for words in ("thinking: 10 characters (t shows them)", "truncated", reward))
    assert "    let me see\n" in unfolded
    assert ("let me see" in folded, "<solution>" in unfolded) == (False, False)
    assert "<think>let me see</think><solution>" in raw


def test_what_went_wrong_in_a_turn_is_told(circle):
    failure = ParseFailure(FailureReason.MISSING_SECTION, "solution")
    turn = circle.debate.turn(A)
    shown = card(with_turn(circle, A, parsed=replace(turn.parsed, failures=(failure,) * 8)))
    assert (shown.count("malformed: missing section solution"), shown.count("2 more failures")) == (6, 1)


def test_a_long_text_is_cut_and_says_so():
    cut = plain([Text("x" * 20_001)])
    assert cut.count("x") == 20_000
    assert cut.endswith("… cut: 20,001 characters in total, o shows them")


def test_signs_of_a_cell(circle):
    turn = debate_view("5.0", circle).turn(A)
    for sign, changes in (
        ("✓★ 4", {}),
        ("✗★!4", {"grade": "wrong", "stop_reason": "length"}),
        ("∅★ ", {"grade": "missing", "answer": None}),
        ("  ballot", {"ballot": True, "grade": "", "answer": None}),
    ):
        assert cell(replace(turn, **changes), A)[0] == sign
    assert (cell(turn, None)[0], cell(None, None)[0]) == ("✓  4", "")


def test_votes_as_matrix_and_list(circle):
    view, graphs = debate_view("5.0", circle), vote_graphs(circle)
    rows = [" ".join(row.split()) for row in plain(votes_blocks(view, graphs)).splitlines()]
    wanted = {
        "3 of 3 votes count; 1 of 2 decidable votes are right",
        "↻ the majorities form a cycle: K7, Q2, M4",
        "K7 · 1 0",
        "M4 K7 > Q2 ✓ right yes, ↻ in a cycle K7 > Q2",
        "Q2 K7 > M4 ? undecidable no: duplicate M4 < K7",
        "– Q2: no vote, not a comparison: K7 ? M4",
    }
    assert wanted <= set(rows)
    assert "no votes" in plain(votes_blocks(view, []))


def test_the_votes_of_one_turn(circle):
    view, graphs = debate_view("5.0", circle), vote_graphs(circle)
    got, given = plain(votes_of_turn(view, graphs, TurnId(2, 1))).split("votes by this turn")
    assert ("K7 > M4" in got, "K7 > Q2" in given) == (True, True)


def test_adopted_answers():
    record = make([[solved("4"), solved("5"), "nothing"], [solved("5"), solved("5"), solved("5")]])
    shown = plain(answers_blocks(debate_view("0.0", record), adoption_view(record)))
    rows = [" ".join(row.split()) for row in shown.splitlines()]
    assert rows[0] == "2 different answers; equal answers have the same letter"
    assert "K7 Analyst A 4 ✓ right B 5 ✗ wrong from Q2, round 0" in rows
    assert "2 times an agent adopted an answer that its prompt showed" in rows


def test_a_failure_is_shown_with_its_place_and_rule_the_chosen_turn_first(circle):
    view = debate_view("5.0", circle)
    shown = plain(parsing_blocks(view, circle, chosen=TurnId(2, 2)))
    assert shown.index("M4 Solver, final ballot: malformed") < shown.index("Q2 Advocate, final ballot")
    for words in (
        "K7 ? M4 line 3, column 1",
        "»K7 ? M4«",
        "the current parser gives the same result for all 9 turns",
    ):
        assert words in shown
    changed = with_turn(circle, A, parsed=replace(circle.debate.turn(A).parsed, answer="5"))
    assert "K7 Analyst, round 0  answer  5       4" in plain(parsing_blocks(view, changed))


def test_the_problem_has_its_agents_and_their_instructions(circle):
    shown = plain(problem_blocks(debate_view("5.0", circle)))
    assert "gold answer: 4" in shown
    assert "K7 Analyst  temperature 1\n    work" in shown


def test_two_debates_compared_without_colour():
    pieces = (TextPiece(" ", "so "), TextPiece("-", "4"), TextPiece("+", "5\nor 6"))
    turns = (
        TurnDifference(A, ("Careful", "Careful"), pieces, True, 0.5, ("4", "5"), (True, False)),
        TurnDifference(TurnId(0, 1), ("Careful", "Careful"), (), False, 1.0, (None, None), (None, None)),
    )
    turned = VoteDifference(TurnId(2, 1), A, B, "first", "second")
    new = VoteDifference(TurnId(1, 1), A, C, None, "tie")
    both = across.Comparison("0.1", "4.2", turns, (turned, new), 3, ("other personas",))
    shown = plain(across.comparison_blocks(both))
    assert "other personas\n[-only 0.1-]  {+only 4.2+}" in shown
    assert "answer: 4 ✓ right → 5 ✗ wrong" in shown
    assert "(reversed): Careful, round 0 > agent 1, round 0  →  agent 1, round 0 > Careful, round 0" in shown
    assert "(new): no vote  →  Careful, round 0 = agent 2, round 0" in shown
    assert "so [-4-]{+5\n    or 6+}" in shown
