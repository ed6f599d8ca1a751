import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debate.types import TurnId
from rewards import RewardConfig, score_debate
from rewards.truth import score_of, truth_reward

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
