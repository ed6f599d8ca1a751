"""The judge stream on hand-made ballots: truth, leave-one-out consensus, and the mix of both."""

import pytest

from rewards import RewardConfig, score_votes

RIGHT_WRONG = [[True], [False], [False], [False]]


def ballot(votes, correct, *, num_agents=4, **settings):
    """The judge stream of the final ballot after one round of votes (judge, left, right, outcome)."""
    cast = [(judge, 1, left, right, outcome) for judge, left, right, outcome in votes]
    rewards = score_votes(num_agents, 1, cast, correct, RewardConfig(**settings))
    return tuple(row[1] for row in rewards.judge)


LEFT, SPLIT = [(2, 0, 1, "left")], [(2, 0, 1, "left"), (3, 0, 1, "right")]
BOTH_WRONG = [(0, 1, 2, "left"), (3, 1, 2, "left")]


@pytest.mark.parametrize(
    ("votes", "correct", "expected"),
    [
        ([(2, 0, 1, "left"), (3, 1, 0, "left")], RIGHT_WRONG, (None, None, 1.0, -1.0)),
        ([(2, 0, 1, "tie")], RIGHT_WRONG, (None, None, 0.0, None)),
        (LEFT, [[True], ["missing"], [None], [None]], (None, None, 1.0, None)),  # missing is wrong
        *((LEFT, [[grade], [grade], [True], [True]], (None,) * 4) for grade in (True, False, None)),
        (LEFT, [[False], ["missing"], [True], [True]], (None,) * 4),
        (LEFT, [[True], [None], [True], [True]], (None,) * 4),
        # the mean of +1 and -1; the third pair is two right ones
        (
            [(3, 0, 1, "left"), (3, 1, 2, "left"), (3, 0, 2, "left")],
            [[True], [False], [True], [None]],
            (None, None, None, 0.0),
        ),
    ],
)
def test_truth_rewards_votes_on_pairs_of_a_right_and_a_wrong_solution(votes, correct, expected):
    assert ballot(votes, correct) == expected


def test_consensus_leaves_the_own_vote_out():
    assert ballot(SPLIT, None) == (None, None, -1.0, -1.0)
    assert ballot([(2, 0, 1, "left"), (3, 1, 0, "right")], None) == (None, None, 1.0, 1.0)
    assert ballot(LEFT, None) == (None,) * 4  # a lone judge
    # Judges 2, 3, 4: left, left, right. For 2 and 3 the others are split; 4 stands alone.
    three = [(2, 0, 1, "left"), (3, 0, 1, "left"), (4, 0, 1, "right")]
    assert ballot(three, None, num_agents=5) == (None, None, None, None, -1.0)
    own = [(0, 0, 1, "left"), (1, 0, 1, "right"), (2, 0, 1, "left")]
    assert ballot(own, None, num_agents=3, judge_own=True) == (None, -1.0, None)


@pytest.mark.parametrize(
    ("votes", "weight", "expected"),
    [
        (SPLIT, 0.75, (None, None, 0.75 - 0.25, -1.0)),  # by truth +1 and -1, by consensus -1 each
        (BOTH_WRONG, 0.75, (1.0, None, None, 1.0)),  # only the consensus exists
        (LEFT, 0.25, (None, None, 1.0, None)),  # only the truth exists
        (BOTH_WRONG, 1.0, (None,) * 4),  # a part of weight 0 is no fallback
        (LEFT, 0.0, (None,) * 4),
    ],
)
def test_truth_and_consensus_are_mixed_where_both_exist(votes, weight, expected):
    assert ballot(votes, RIGHT_WRONG, judge_truth_weight=weight) == expected


def test_open_problems_with_three_agents_have_no_judge_stream_and_keep_the_peer_stream():
    votes = [(2, 1, 0, 1, "left"), (1, 1, 0, 2, "left"), (0, 1, 1, 2, "left")]
    rewards = score_votes(3, 1, votes, None, RewardConfig())
    assert rewards.judge == ((None, None),) * 3
    assert rewards.peer == ((1.0,), (0.0,), (-1.0,))
