import pytest

from debate.types import TurnId, Vote
from rewards import RewardConfig, check_scheme, score_debate
from rewards.judge_rewards import by_verdicts, vote_values
from rewards.types import Verdicts

A, B, C, JUDGE, OTHER = TurnId(0, 0), TurnId(1, 0), TurnId(2, 0), TurnId(3, 1), TurnId(4, 1)


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
    from debate.config import DebateConfig

    three = DebateConfig(num_agents=3)
    assert "judge stream is off" in (
        check_scheme(three, RewardConfig(), verifiable=False, verdicts=True) or ""
    )
    taught = RewardConfig(judge_verdict_weight=0.5)
    assert check_scheme(three, taught, verifiable=False, verdicts=True) is None
