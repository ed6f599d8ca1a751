"""The judge stream on hand-made ballots: truth, leave-one-out consensus, and the mix of both."""

import pytest

from rewards import RewardConfig, score_votes

RIGHT_WRONG = [[True], [False], [False], [False]]


def ballot(votes, correct, *, num_agents=4, **settings):
    """The judge stream of the final ballot after one round."""
    rewards = score_votes(num_agents, 1, votes, correct, RewardConfig(**settings))
    return tuple(row[1] for row in rewards.judge)


def test_truth_rewards_the_vote_for_the_right_one():
    votes = [(2, 1, 0, 1, "left"), (3, 1, 1, 0, "left")]
    assert ballot(votes, RIGHT_WRONG) == (None, None, 1.0, -1.0)


def test_truth_gives_a_tie_on_a_decidable_pair_zero():
    assert ballot([(2, 1, 0, 1, "tie")], RIGHT_WRONG) == (None, None, 0.0, None)


@pytest.mark.parametrize(
    "grades", [(True, True), (False, False), (False, "missing"), (True, None), (None, None)]
)
def test_a_pair_that_truth_cannot_decide_has_no_value(grades):
    correct = [[grades[0]], [grades[1]], [True], [True]]
    assert ballot([(2, 1, 0, 1, "left")], correct) == (None,) * 4


def test_missing_counts_as_wrong():
    assert ballot([(2, 1, 0, 1, "left")], [[True], ["missing"], [None], [None]])[2] == 1.0


def test_consensus_leaves_the_own_vote_out():
    votes = [(2, 1, 0, 1, "left"), (3, 1, 0, 1, "right")]
    assert ballot(votes, None) == (None, None, -1.0, -1.0)
    assert ballot([(2, 1, 0, 1, "left"), (3, 1, 1, 0, "right")], None) == (None, None, 1.0, 1.0)


def test_consensus_of_a_lone_judge_has_no_value():
    assert ballot([(2, 1, 0, 1, "left")], None) == (None,) * 4


def test_consensus_of_three_judges():
    """Judges 2, 3, 4 on (0, 1): left, left, right. For 2 and 3 the others are split; 4 stands alone."""
    votes = [(2, 1, 0, 1, "left"), (3, 1, 0, 1, "left"), (4, 1, 0, 1, "right")]
    assert ballot(votes, None, num_agents=5) == (None, None, None, None, -1.0)


def test_the_stream_is_the_mean_over_votes_that_have_a_value():
    correct = [[True], [False], [True], [None]]
    votes = [(3, 1, 0, 1, "left"), (3, 1, 1, 2, "left"), (3, 1, 0, 2, "left")]
    assert ballot(votes, correct)[3] == 0.0  # +1 and -1; the third pair is two right ones


def test_mixed_weights_where_both_exist_and_fall_back_where_one_does_not():
    votes = [(2, 1, 0, 1, "left"), (3, 1, 0, 1, "right")]
    # judge 2: truth +1, consensus -1 -> 0.75 - 0.25; judge 3: truth -1, consensus -1
    assert ballot(votes, RIGHT_WRONG, judge_truth_weight=0.75) == (None, None, 0.5, -1.0)
    # a pair of two wrong ones: only the consensus exists
    both_wrong = [(0, 1, 1, 2, "left"), (3, 1, 1, 2, "left")]
    assert ballot(both_wrong, RIGHT_WRONG, judge_truth_weight=0.75) == (1.0, None, None, 1.0)
    # nobody else judged: only the truth exists
    assert ballot([(2, 1, 0, 1, "left")], RIGHT_WRONG, judge_truth_weight=0.25) == (None, None, 1.0, None)


def test_a_part_of_weight_zero_is_no_fallback():
    both_wrong = [(0, 1, 1, 2, "left"), (3, 1, 1, 2, "left")]
    assert ballot(both_wrong, RIGHT_WRONG, judge_truth_weight=1.0) == (None,) * 4
    assert ballot([(2, 1, 0, 1, "left")], RIGHT_WRONG, judge_truth_weight=0.0) == (None,) * 4


def test_open_problems_with_three_agents_have_no_judge_stream_and_keep_the_peer_stream():
    votes = [(2, 1, 0, 1, "left"), (1, 1, 0, 2, "left"), (0, 1, 1, 2, "left")]
    rewards = score_votes(3, 1, votes, None, RewardConfig())
    assert rewards.judge == ((None, None),) * 3
    assert rewards.peer == ((1.0,), (0.0,), (-1.0,))


def test_own_work_gives_three_agents_a_consensus():
    votes = [(0, 1, 0, 1, "left"), (1, 1, 0, 1, "right"), (2, 1, 0, 1, "left")]
    assert ballot(votes, None, num_agents=3, judge_own=True) == (None, -1.0, None)
