from __future__ import annotations

from dataclasses import replace

from debate.types import TurnId
from debate_rl.inspector.views import adoption_view
from debate_rl.inspector.views.debate import Copy

from .conftest import judged, make, solved, with_turn


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
    held = replace(circle.debate, turns=circle.debate.turns[1:], votes=())
    view = adoption_view(replace(circle, debate=held))
    assert (view.cells[0][0], view.copies) == (None, ())
