from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from debate import DebateConfig, Problem, parse_turn, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import ParsedTurn, Span, Summary, TurnId
from debate_rl.inspector.views import adoption_view, debate_view
from debate_rl.inspector.views.debate import Copy, pieces_of
from rewards.types import Verdicts
from transcripts import Record, TurnAdvantages
from transcripts.record import check_record

from .conftest import judged, make, printed_debate, solved, with_turn


def test_a_debate_is_a_grid_of_turns(circle):
    view = debate_view("5.0", circle)
    assert (view.id, view.step, view.agents, view.rounds) == ("5.0", 5, 3, 2)
    assert (view.handles, [len(row) for row in view.turns]) == (("K7", "Q2", "M4"), [3, 3, 3])
    first, ballot = view.turns[1][0], view.turns[1][2]
    assert (first.id, first.persona, first.handle) == (TurnId(1, 0), "Advocate", "Q2")
    assert (first.grade, first.answer, first.ballot, first.shown) == ("wrong", "5", False, ())
    assert (ballot.grade, ballot.answer, ballot.ballot) == ("", None, True)
    assert ballot.shown == (TurnId(0, 1), TurnId(1, 1), TurnId(2, 1))
    assert ballot.compared == (TurnId(0, 1), TurnId(2, 1))
    assert [turn.id for turn in view.spoken()] == [TurnId(a, r) for r in range(3) for a in range(3)]
    assert first.tokens == len(first.text)
    assert (view.turn(TurnId(1, 0)), view.turn(TurnId(9, 0))) == (first, None)


def test_rewards_and_advantages_are_those_of_the_turn(circle):
    parts = TurnAdvantages(TurnId(0, 1), 0.5, None, -0.25, 0.75, -0.25)
    view = debate_view("5.0", replace(circle, advantages=(parts,)))
    # Q2's ballot: K7 beats M4, once; M4's two lines contradict each other; K7's is a tie of Q2 and M4
    assert view.turns[0][1].rewards == {"peer": 1.0, "truth": 1.0, "judge": None, "format": 0.0}
    assert view.turns[2][1].rewards["peer"] == -0.5
    assert view.turns[0][2].rewards["peer"] is None
    assert [*view.turns[0][1].advantages.values()] == [0.5, None, -0.25, 0.75, -0.25]
    assert set(view.turns[0][0].advantages.values()) == {None}
    assert (view.winner, view.judged_round, view.scored) == (TurnId(0, 1), 1, True)
    bare = debate_view("5.0", replace(circle, rewards=None))  # margins decide
    assert (bare.winner, bare.judged_round, bare.scored) == (TurnId(0, 1), 1, False)
    assert set(bare.turns[0][1].rewards.values()) == {None}


def test_a_winner_that_was_drawn_names_those_of_equal_score(tied, circle):
    for record in (tied, replace(tied, rewards=None)):
        view = debate_view("5.0", record)
        assert view.tied == (TurnId(0, 0), TurnId(1, 0), TurnId(2, 0))
        assert view.winner in view.tied
        assert view.lot() == "drawn among K7, Q2, M4"
    assert (debate_view("5.0", circle).tied, debate_view("5.0", circle).lot()) == ((), "")


def test_without_votes_nobody_wins():
    view = debate_view("0.0", make([[solved(4), solved(5), "nothing"]]))
    assert (view.winner, view.judged_round) == (None, None)
    assert debate_view("0.0", make([[solved(4)] * 3, [judged("")] * 3])).winner is None
    assert [row[0].grade for row in view.turns] == ["right", "wrong", "missing"]
    open_problem = replace(make([[solved(4)] * 3]), correct=None)
    assert debate_view("0.0", open_problem).turns[0][0].grade == "ungraded"


def test_a_turn_that_was_not_held_leaves_a_gap(circle):
    view = debate_view("5.0", held_with(circle, turns=circle.debate.turns[:-1], votes=()))
    assert (view.turns[2][2], len(list(view.spoken()))) == (None, 8)


def test_summaries_and_sections_are_there(circle):
    summary = Summary(1, (TurnId(0, 0),), circle.debate.turns[0].completion, "in short")
    view = debate_view("5.0", held_with(circle, summaries=(summary,)))
    assert [(one.round, one.text, one.shown) for one in view.summaries] == [(1, "in short", (TurnId(0, 0),))]
    turn = view.turns[0][1]
    texts = {piece.kind: piece.of(turn.text) for piece in turn.pieces}
    assert (texts["comparison"], "thinking" in texts) == ("Q2 > M4", False)


SPANS = st.builds(Span, st.integers(-3, 40), st.integers(-3, 40))


@given(st.builds(ParsedTurn, *[st.none() | SPANS] * 3, thinking=st.none() | SPANS), st.integers(0, 30))
def test_pieces_cover_any_text_exactly_in_order(parsed, length):
    pieces = pieces_of(parsed, length)
    assert [piece.start for piece in pieces] == [0, *(piece.end for piece in pieces)][: len(pieces)]
    assert (pieces[-1].end if pieces else 0) == length
    assert all(piece.start < piece.end for piece in pieces)
    assert not any(a.kind == b.kind == "other" for a, b in pairwise(pieces))


NAMES = ("think", "solution", "comparison", "evaluation")
TAGS = st.sampled_from([*(f"<{name}>" for name in NAMES), *(f"</{name}>" for name in NAMES), "x > y"])


@given(st.lists(TAGS | st.text(max_size=5)).map("".join))
def test_pieces_of_a_parsed_text_hold_its_sections(text):
    parsed = parse_turn(text, handles=("x", "y"), own=None, due=True)
    pieces = {piece.kind: piece for piece in pieces_of(parsed, len(text)) if piece.kind != "other"}
    assert "".join(piece.of(text) for piece in pieces_of(parsed, len(text))) == text
    for kind in ("thinking", "solution", "evaluation", "comparison"):
        span = getattr(parsed, kind)
        if span is not None and span.start < span.end:
            assert (pieces[kind].start, pieces[kind].end) == (span.start, span.end)


def held_with(record, **changes):
    return replace(record, debate=replace(record.debate, **changes))


def test_what_is_no_debate_is_refused_by_field(circle):
    check_record(circle)
    refused = {
        "debate.personas: 2": held_with(circle, personas=circle.debate.personas[:2]),
        r"debate.turns\[3\].id: 7.1": with_turn(circle, TurnId(0, 1), id=TurnId(7, 1)),
        r"debate.turns\[4\].id: 1.1": with_turn(circle, TurnId(0, 1), id=TurnId(1, 1)),
        r"debate.turns\[6\].ballot: False": with_turn(circle, TurnId(0, 2), ballot=False),
        "0.-1": with_turn(circle, TurnId(0, 1), id=TurnId(0, -1)),
        r"debate.votes\[0\].left": held_with(
            circle, votes=(replace(circle.debate.votes[0], left=TurnId(2, 9)),)
        ),
        "correct: 1 rows": replace(circle, correct=circle.correct[:1]),
        r"correct\[0\]: 1": replace(circle, correct=(circle.correct[0][:1], *circle.correct[1:])),
        r"rewards.judge\[0\]: 2": replace(circle, rewards=replace(circle.rewards, judge=circle.rewards.peer)),
    }
    for field, record in refused.items():
        with pytest.raises(ValueError, match=field):
            debate_view("5.0", record)


def test_a_wrong_solution_has_its_cause_where_rules_can_tell():
    said = [r"48 + 17 = 55: \boxed{55}", r"\boxed{65}", r"12 + 4 + 17 = 33: \boxed{33}"]
    script = {(n, 0): f"<solution>{text}</solution>" for n, text in enumerate(said)}
    policy = ScriptedPolicy(script, default="no comparison")
    problem = Problem("p", "What is 12 * 4 + 17?", "65", kind="number")
    [debate] = run_debates([problem], policy, DebateConfig(num_rounds=1), seed=1)
    record = Record(debate, 0, "p", ((False,), (True,), (False,)))
    turns = [debate_view("0.0", record).turn(TurnId(agent, 0)) for agent in range(3)]
    assert [turn.cause for turn in turns] == ["arithmetic: 48 + 17 = 55", "", ""]
    text = printed_debate(record)
    assert text.count("cause:") == text.count("cause: arithmetic: 48 + 17 = 55") == 1


def test_a_verdict_of_a_verifier_model_is_shown_as_no_truth():
    problem = Problem("p", "Write.", kind="rubric", rubric="Wet.")
    policy = ScriptedPolicy({}, default=solved("Rain."))
    [debate] = run_debates([problem], policy, DebateConfig(num_rounds=2), seed=1)
    scores = ((0.75, 0.25), (None, "missing"), (1.0, 0.0))
    record = Record(debate, 0, "p", verdicts=Verdicts("m\x1b[2J", 0.5, scores))
    view = debate_view("0.0", record)
    said = [[view.turn(TurnId(agent, round_)).verdict for round_ in range(2)] for agent in range(3)]
    by = "by the verifier model m\x1b[2J"
    words = ("verdict 0.75, passes", "verdict 0.25, does not pass")
    assert said[:2] == [[f"{word}, {by}: no ground truth" for word in words], [f"no verdict {by}", ""]]
    assert {turn.grade for turn in view.spoken() if not turn.ballot} == {"ungraded"}
    text = printed_debate(record)
    assert (text.count("no ground truth"), "\x1b[2J" in text) == (4, False)
    assert debate_view("0.0", replace(record, verdicts=UNSET)).turn(TurnId(0, 0)).verdict == ""


def numbers(view):
    return [[cell.number for cell in row] for row in view.cells]


def test_who_took_over_which_answer():
    first = [solved("4.0"), solved("5"), "no solution"]
    second = [solved("5"), solved("5.00"), solved("5")]
    record = make([first, second, [judged("Q2 = M4"), judged(""), judged("")]])
    record = replace(record, correct=((False, False), (False, False), ("missing", False)))
    view = adoption_view(record)
    # by rows of agents: 4.0 is the first answer, 5 the second, however it is written
    assert (numbers(view), view.numbers) == ([[0, 1], [1, 1], [None, 1]], 2)
    assert [[cell.answer for cell in row] for row in view.cells][1] == ["5", "5.00"]
    assert [[cell.grade for cell in row] for row in view.cells][2] == ["missing", "wrong"]
    # Q2 kept its own; K7 and M4 have a new one that Q2's turn had, which their prompts showed
    assert view.copies == (Copy(TurnId(1, 0), TurnId(0, 1)), Copy(TurnId(1, 0), TurnId(2, 1)))


def test_right_answers_are_one_however_they_are_written():
    record = make([[solved("4"), solved("2+2"), solved("1")]])
    graded = replace(record, correct=((True,), (True,), (False,)))
    assert numbers(adoption_view(graded)) == [[0], [0], [1]]
    assert numbers(adoption_view(replace(record, correct=None))) == [[0], [1], [2]]


def test_what_was_not_shown_is_not_taken_over():
    record = make([[solved("1"), solved("2"), solved("3")], [solved("2"), solved("2"), solved("3")]])
    record = replace(record, correct=((False, False),) * 3)
    assert adoption_view(record).copies == (Copy(TurnId(1, 0), TurnId(0, 1)),)
    hidden = with_turn(record, TurnId(0, 1), shown=(TurnId(2, 0), TurnId(0, 0), TurnId(8, 0)))
    assert adoption_view(hidden).copies == ()


def test_going_back_to_ones_own_answer_is_no_copy():
    rows = [[solved("1"), solved("2"), solved("3")], [solved("2"), solved("2"), solved("3")]]
    record = make([*rows, [solved("1"), solved("2"), solved("3")]])
    record = replace(record, correct=((False,) * 3,) * 3)
    shown = (TurnId(0, 0), TurnId(1, 0), TurnId(1, 1))
    view = adoption_view(with_turn(record, TurnId(0, 2), shown=shown))
    assert [copy.target for copy in view.copies] == [TurnId(0, 1)]


def test_a_turn_that_was_not_held_has_no_cell(circle):
    view = adoption_view(held_with(circle, turns=circle.debate.turns[1:], votes=()))
    assert (view.cells[0][0], view.copies) == (None, ())
