import pytest

from debate.config import DebateConfig
from rewards import RewardConfig, check_scheme


def check(verifiable: bool = True, *, judge_truth_weight=None, truth_weight=0.5, judge_own=False, **protocol):
    scheme = RewardConfig(
        judge_truth_weight=judge_truth_weight, truth_weight=truth_weight, judge_own=judge_own
    )
    return check_scheme(DebateConfig(judge_own=judge_own, **protocol), scheme, verifiable=verifiable)


def test_consensus_alone_with_three_agents_is_refused_with_the_ways_out():
    with pytest.raises(ValueError, match="no pair has two judges") as refusal:
        check(num_agents=3, judge_truth_weight=0)
    for way in ("num_agents of 4 or more", "judge_own = true", "judge_truth_weight above 0"):
        assert way in str(refusal.value)


def test_open_problems_with_three_agents_switch_the_judge_stream_off_with_one_warning():
    warning = check(verifiable=False, num_agents=3)
    assert warning is not None
    assert warning.startswith("The judge stream is off:")
    assert "Peer rewards still train." in warning


@pytest.mark.parametrize(
    "protocol",
    [
        {"num_agents": 2},
        {"num_agents": 3, "history_rounds": 0},
        {"num_agents": 3, "num_rounds": 1, "final_ballot": False},
    ],
)
def test_a_protocol_without_votes_trains_on_truth_and_says_so(protocol):
    warning = check(**protocol)
    assert warning is not None
    assert warning.startswith("Only truth trains")
    with pytest.raises(ValueError, match=r"nothing to learn from: rewards\.truth_weight is 0"):
        check(truth_weight=0, **protocol)
    with pytest.raises(ValueError, match="nothing to learn from: the problems have no answers"):
        check(verifiable=False, **protocol)


def test_a_single_solver_needs_answers():
    assert check(num_agents=1, num_rounds=1) is None
    with pytest.raises(ValueError, match="nothing to learn from"):
        check(verifiable=False, num_agents=1, num_rounds=1)


def test_truth_alone_on_open_problems_is_refused():
    with pytest.raises(ValueError, match=r"truth_weight = 1 leaves the generator without reward"):
        check(verifiable=False, truth_weight=1, num_agents=4)


@pytest.mark.parametrize(("asked", "counted"), [(True, False), (False, True)])
def test_own_work_that_is_asked_for_and_not_counted_is_named(asked, counted):
    warning = check_scheme(DebateConfig(judge_own=asked), RewardConfig(judge_own=counted), verifiable=True)
    assert warning is not None
    assert "own" in warning
