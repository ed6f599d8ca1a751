import pytest

from debate.config import DebateConfig
from debate.types import TurnId, Vote
from rewards import RewardConfig, ballot_box, check_scheme, score_debate, score_votes, valid_votes
from rewards.judge_rewards import (
    JudgeCounts,
    VoteValue,
    better_side,
    by_verdicts,
    decidable_votes,
    judge_counts,
    vote_values,
)
from rewards.types import Verdicts
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


JUDGE, OTHER = TurnId(3, 1), TurnId(4, 1)


def worth(
    *votes: Vote, correct: object = None, weight: float = 0.0, **settings: object
) -> list[float | None]:
    return [one.value for one in vote_values(votes, correct, truth_weight=weight, **settings)]


@pytest.mark.parametrize(
    ("grades", "equal"), [((True, True), True), ((False, "missing"), True), ((True, None), False)]
)
def test_a_tie_on_a_pair_that_truth_calls_equal_earns_one_and_a_decision_nothing(
    grades: tuple[object, object], equal: bool
):
    correct = [[grades[0]], [grades[1]]]
    tie, decided = Vote(JUDGE, A, B, "tie"), Vote(OTHER, A, B, "left")
    rewarded = worth(tie, decided, correct=correct, weight=1.0, ties="reward")
    assert rewarded == ([1, 0] if equal else [None, None])
    assert worth(tie, decided, correct=correct, weight=1.0) == [None, None]


def test_a_tie_on_a_decidable_pair_earns_nothing_under_either_rule():
    for rule in ("zero", "reward"):
        assert worth(Vote(JUDGE, A, B, "tie"), correct=[[True], [False]], weight=1.0, ties=rule) == [0]


def test_a_tie_with_others_who_balance_earns_one_and_a_lone_tie_has_no_value():
    tie, left, right = Vote(JUDGE, A, B, "tie"), Vote(OTHER, A, B, "left"), Vote(C, A, B, "right")
    assert worth(tie, left, right, ties="reward") == [1, -1, -1]
    assert worth(tie, left, right) == [None, -1, -1]
    assert worth(tie, ties="reward") == [None]
    both = [Vote(JUDGE, A, B, "tie"), Vote(OTHER, B, A, "tie")]
    assert worth(*both, ties="reward") == [1, 1]


VERDICTS = Verdicts("m", 0.5, ((0.8,), (0.3,), ("missing",), (None,), (0.3,)))


@pytest.mark.parametrize(
    ("left", "right", "outcome", "value"),
    [
        (0, 1, "left", 1),
        (1, 0, "left", -1),
        (0, 1, "tie", 0),
        (1, 2, "left", 1),
        (0, 3, "left", None),
        (1, 4, "right", None),
    ],
)
def test_a_verifier_prefers_what_it_scores_higher(left: int, right: int, outcome: str, value: int | None):
    vote = Vote(TurnId(5, 1), TurnId(left, 0), TurnId(right, 0), outcome)
    assert by_verdicts(vote, VERDICTS) == value


def test_verdicts_are_weighted_beside_truth_and_stand_in_for_what_is_not_there():
    wrong_by_truth = Vote(JUDGE, A, B, "left")
    grades = [[False], [True], [True], [None], [None]]
    one = vote_values([wrong_by_truth], grades, truth_weight=1.0, verdicts=VERDICTS, verdict_weight=0.25)
    assert [(value.truth, value.verdict, value.value) for value in one] == [(-1, 1, 0.25 - 0.75)]
    undecided = [[True], [True], [True], [None], [None]]
    assert worth(wrong_by_truth, correct=undecided, weight=1.0, verdicts=VERDICTS, verdict_weight=0.25) == [1]
    assert worth(wrong_by_truth, correct=grades, weight=1.0, verdicts=VERDICTS, verdict_weight=1.0) == [1]
    assert worth(wrong_by_truth, correct=grades, weight=1.0, verdicts=VERDICTS) == [-1]


def test_the_share_of_verdicts_fades_with_the_step(make_debate):
    votes = [Vote(TurnId(2, 1), A, B, "left")]
    debate = make_debate(votes)
    scheme = RewardConfig(judge_verdict_weight=[[0, 1.0], [10, 0.0]])
    verdicts = Verdicts("m", 0.5, ((0.9,), (0.1,), (0.5,)))
    correct = [[False], [True], [False]]
    judged = [
        score_debate(debate, correct, scheme.at_step(step), verdicts).judge[2][1] for step in (0, 5, 10)
    ]
    assert judged == [1.0, 0.0, -1.0]
    assert score_debate(debate, correct, scheme.at_step(5)).judge[2][1] == -1.0


def test_verdicts_give_judges_of_open_problems_a_signal():
    three = DebateConfig(num_agents=3)
    assert "judge stream is off" in (
        check_scheme(three, RewardConfig(), verifiable=False, verdicts=True) or ""
    )
    taught = RewardConfig(judge_verdict_weight=0.5)
    assert check_scheme(three, taught, verifiable=False, verdicts=True) is None
