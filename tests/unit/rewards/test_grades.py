from debate.types import TurnId
from rewards.truth import flips, grade_of, is_right, right_share, round_accuracy

TABLE = [[True, False, True], ["missing", True, True], [None, False, "missing"]]


def test_missing_is_wrong_and_ungraded_takes_no_part():
    assert right_share(grade for row in TABLE for grade in row) == 4 / 8
    assert [round_accuracy(TABLE, round_) for round_ in (0, 1, 2, -1)] == [1 / 2, 1 / 3, 2 / 3, 2 / 3]
    assert round_accuracy([[None], [None]], 0) is None
    assert round_accuracy(None, 0) is None


def test_flips_are_between_neighbouring_rounds_that_were_graded():
    # agent 0: CW, WC; agent 1: WC, CC; agent 2: WW
    assert flips(TABLE) == {"cc": 1, "cw": 1, "wc": 2, "ww": 1}
    assert flips([[True, None, True]]) == flips(None) == dict.fromkeys(("cc", "cw", "wc", "ww"), 0)


def test_a_turn_outside_the_table_has_no_grade():
    assert grade_of(TurnId(1, 0), TABLE) == "missing"
    assert [is_right(TurnId(1, 0), TABLE), is_right(TurnId(0, 2), TABLE)] == [False, True]
    outside = (TurnId(0, 3), TurnId(3, 0), TurnId(-1, 0), TurnId(0, -1))
    assert [grade_of(turn, TABLE) for turn in outside] == [None] * 4
    assert is_right(TurnId(0, 0), None) is None
