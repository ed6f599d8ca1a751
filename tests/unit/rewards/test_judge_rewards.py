from debate.types import TurnId, Vote
from rewards import ballot_box, valid_votes
from rewards.judge_rewards import (
    JudgeCounts,
    VoteValue,
    better_side,
    decidable_votes,
    judge_counts,
    vote_values,
)
from rewards.votes import due_pairs

A, B, C, D = (TurnId(agent, 0) for agent in range(4))
CORRECT = [[True], [False], ["missing"], [None]]


def test_a_pair_is_decidable_where_both_are_graded_and_one_is_right():
    assert [better_side(A, other, CORRECT) for other in (A, B, C, D)] == [0, 1, 1, 0]
    assert [better_side(other, A, CORRECT) for other in (B, C, D)] == [-1, -1, 0]
    assert better_side(B, C, CORRECT) == 0
    assert better_side(A, B, None) == 0
    assert better_side(A, TurnId(1, 1), CORRECT) == 0  # a final ballot has no grade


def test_a_judge_is_counted_on_the_decidable_pairs_that_it_was_shown(make_debate):
    """Of 4 agents, A right, B and C wrong, D ungraded: C may judge A-B, B may A-C, D may both."""
    votes = [
        Vote(TurnId(3, 1), A, B, "left"),  # right
        Vote(TurnId(3, 1), A, C, "tie"),  # not right, and a vote
        Vote(TurnId(2, 1), B, A, "left"),  # wrong
        Vote(TurnId(1, 1), A, C, "left"),  # contradicts itself: no vote
        Vote(TurnId(1, 1), C, A, "left"),
        Vote(TurnId(0, 1), B, C, "left"),  # not decidable
        Vote(TurnId(0, 1), A, B, "left"),  # own work
    ]
    box = ballot_box(make_debate(votes, num_agents=4))
    pairs = due_pairs(box, valid_votes(box))
    assert len(pairs) == 12
    assert sorted(map(str, decidable_votes(pairs, CORRECT))) == ["False", "False", "None", "True"]
    counts = judge_counts(pairs, CORRECT)
    assert counts == JudgeCounts(right=1, votes=3, due=4)
    assert (counts.accuracy, counts.strict_accuracy, counts.coverage) == (1 / 3, 1 / 4, 3 / 4)
    assert counts.plus(counts) == JudgeCounts(2, 6, 8)
    assert judge_counts(pairs, None) == JudgeCounts()
    assert (JudgeCounts().accuracy, JudgeCounts().strict_accuracy, JudgeCounts().coverage) == (None,) * 3


def test_the_parts_of_a_value():
    votes = [
        Vote(TurnId(2, 1), B, A, "right"),
        Vote(TurnId(3, 1), A, B, "left"),
        Vote(TurnId(4, 1), A, B, "right"),
    ]
    # The others are 1 - 1 for the left side of the first (B) and the second (A), 2 - 0 for the third's (A).
    assert vote_values(votes, CORRECT, truth_weight=0.25) == [
        VoteValue(1, 0, None, 1),
        VoteValue(1, 0, None, 1),
        VoteValue(-1, 2, -1, -1.0),
    ]
    assert vote_values(votes[1:], CORRECT, truth_weight=0.25) == [
        VoteValue(1, -1, -1, 0.25 - 0.75),
        VoteValue(-1, 1, -1, -1.0),
    ]
    agreed = vote_values(votes[:2], None, truth_weight=0.0)
    assert agreed == [VoteValue(None, -1, 1, 1), VoteValue(None, 1, 1, 1)]
