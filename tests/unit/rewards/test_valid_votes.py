import pytest

from debate.types import FailureReason, TurnId, Vote
from rewards import RewardConfig, ballot_box, score_debate, score_votes, valid_votes

CONFIG = RewardConfig()
A, B, C = (TurnId(agent, 0) for agent in range(3))


def dropped(rewards) -> dict[str, int]:
    names = {name: count for name, count in rewards.counters if name.startswith("votes/") and count}
    return {name.removeprefix("votes/"): count for name, count in names.items()}


TWICE = [(2, 1, 0, 1, "left"), (2, 1, 0, 1, "left")]
COUNTED, VOID = ((1.0,), (-1.0,), (None,)), ((None,),) * 3


@pytest.mark.parametrize(
    ("votes", "peer", "penalty", "counts"),
    [
        ([TWICE[0], (2, 1, 1, 0, "right")], COUNTED, 0.0, {"cast": 2, "valid": 1, "duplicate": 1}),
        # contradictions void every line on the pair, and so no valid vote came
        ([*TWICE, (2, 1, 0, 1, "right")], VOID, -0.5, {"cast": 3, "contradictory": 3}),
        ([*TWICE, (2, 1, 0, 1, "tie")], VOID, -0.5, {"cast": 3, "contradictory": 3}),
        ([(2, 0, 0, 1, "left")], VOID, -0.5, {"cast": 1, "not_shown": 1}),  # of the opening round
    ],
)
def test_a_judge_has_one_vote_for_each_pair_that_it_was_shown(votes, peer, penalty, counts):
    rewards = score_votes(3, 1, votes, None, CONFIG)
    assert (rewards.peer, rewards.format[2][1], dropped(rewards)) == (peer, penalty, counts)


def test_a_contradiction_leaves_the_judges_other_pairs_alone():
    votes = [(3, 1, 0, 1, "left"), (3, 1, 0, 1, "right"), (3, 1, 0, 2, "left")]
    rewards = score_votes(4, 1, votes, None, CONFIG)
    assert rewards.peer == ((1.0,), (None,), (-1.0,), (None,))
    assert rewards.format[3][1] == 0.0


def test_a_debate_vote_on_a_turn_that_was_not_shown_is_dropped(make_debate):
    judge, old, new = TurnId(2, 2), TurnId(0, 0), TurnId(1, 1)
    debate = make_debate([Vote(judge, old, new, "left")], num_rounds=2)
    rewards = score_debate(debate, None, CONFIG)
    assert dropped(rewards) == {"cast": 1, "not_shown": 1}
    assert rewards.peer == ((None, None),) * 3


def test_lines_that_never_became_votes_are_counted_by_reason(make_debate):
    failures = {TurnId(0, 1): tuple(FailureReason)}
    assert dropped(score_debate(make_debate(failures=failures), None, CONFIG)) == {
        "cast": 5,
        "own_work": 1,
        "unknown_handle": 1,
        "same_handle": 1,
        "not_a_comparison": 1,
        "not_shown": 1,
    }


def test_own_work_needs_protocol_and_scheme(make_debate):
    votes = [Vote(TurnId(0, 1), A, B, "left")]
    both = RewardConfig(judge_own=True)
    assert score_debate(make_debate(votes, judge_own=True), None, both).peer[0] == (1.0,)
    assert score_debate(make_debate(votes, judge_own=True), None, CONFIG).count("votes/own_work") == 1
    assert score_debate(make_debate(votes), None, both).count("votes/own_work") == 1


def test_the_first_of_identical_lines_is_kept_with_its_span(make_debate):
    first, second = Vote(TurnId(2, 1), A, B, "tie"), Vote(TurnId(2, 1), B, A, "tie")
    kept = valid_votes(ballot_box(make_debate([first, second]), judge_own=False))
    assert kept == (first,)
    assert kept[0] is first
