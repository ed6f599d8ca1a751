import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debate.types import TurnId
from rewards import RewardConfig, score_debate
from rewards.truth import flips, grade_of, is_right, right_share, round_accuracy, score_of, truth_reward

WHOLE, PARTIAL = RewardConfig(), RewardConfig(truth_credit="partial")
SHAPED = RewardConfig(truth_credit="partial", truth_correct=1.0, truth_wrong=-0.5, truth_missing=-0.25)


@pytest.fixture
def finished_debate(step_records):
    record = step_records(0)[0]
    return record.debate, record.correct


def test_three_of_four_instructions():
    assert truth_reward(False, WHOLE, 0.75) == 0.0
    assert truth_reward(False, PARTIAL, 0.75) == 0.75
    assert truth_reward(False, SHAPED, 0.75) == -0.5 + 0.75 * 1.5
    assert truth_reward(True, SHAPED, 1.0) == 1.0


def test_what_has_no_score_is_rewarded_by_its_grade():
    grades = (True, False, "missing", None)
    assert [truth_reward(grade, SHAPED) for grade in grades] == [1.0, -0.5, -0.25, None]
    assert truth_reward("missing", SHAPED, 0.9) == -0.25
    assert truth_reward(None, SHAPED, 0.9) is None


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-2, 0), st.floats(0.5, 2))
def test_more_right_is_never_worth_less_and_whole_credit_ignores_it(one, two, wrong, correct):
    scheme = RewardConfig(truth_credit="partial", truth_wrong=wrong, truth_correct=correct)
    less, more = (truth_reward(False, scheme, score) for score in sorted((one, two)))
    assert wrong - 1e-9 <= less <= more <= correct + 1e-9
    whole = scheme.model_copy(update={"truth_credit": "whole"})
    assert truth_reward(False, whole, one) == truth_reward(False, whole, two) == wrong


def test_a_debate_is_rewarded_by_either_rule_on_the_same_turns(finished_debate):
    debate, correct = finished_debate
    turns = tuple(replace(turn, score=0.5) if turn.id == TurnId(0, 0) else turn for turn in debate.turns)
    scored = replace(debate, turns=turns)
    wrong = tuple((False,) * len(row) for row in correct)
    whole, partial = (score_debate(scored, wrong, scheme).truth for scheme in (WHOLE, PARTIAL))
    assert whole == tuple((0.0,) * len(row) for row in wrong)
    assert partial[0][0] == 0.5
    assert sum(map(sum, partial)) == 0.5
    assert score_debate(debate, wrong, PARTIAL).truth == whole
    assert score_of(turns[0]) == 0.5


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
