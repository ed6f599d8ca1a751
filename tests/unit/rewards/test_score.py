import math
from collections import Counter

import pytest
from msgspec import UNSET

from debate.config import DebateConfig
from debate.types import TurnId
from learner import AdvantageConfig, turn_advantages
from rewards import RewardConfig, Rewards, check_scheme, score_debate, score_votes, voted_winner
from rewards.score import likelihood_stream
from rewards.types import Likelihoods
from rewards.winner import best_voted

from ..learner.conftest import transition_of

CONFIG = RewardConfig()
FULL = [
    (2, 1, 0, 1, "left"),
    (1, 1, 0, 2, "left"),
    (0, 1, 1, 2, "tie"),
    (2, 2, 0, 1, "right"),
    (1, 2, 2, 0, "left"),
    (0, 2, 1, 2, "left"),
]
CORRECT = [[True, False], [False, True], ["missing", None]]


def test_a_debate_of_three_agents_and_two_rounds():
    rewards = score_votes(3, 2, FULL, CORRECT, CONFIG)
    assert rewards.peer == ((1.0, -1.0), (-0.5, 1.0), (-0.5, 0.0))
    assert rewards.truth == ((1.0, 0.0), (0.0, 1.0), (0.0, None))
    # Round 1 judged round 0: agent 2 right, agent 1 right, agent 0 between two wrong ones.
    # The ballot judged round 1: agent 2 right about (0, 1); agent 2's round 1 was not graded.
    assert rewards.judge == ((None, None, None), (None, 1.0, None), (None, 1.0, 1.0))
    assert rewards.format == ((0.0, 0.0, 0.0),) * 3


def test_the_counters_of_that_debate():
    assert score_votes(3, 2, FULL, CORRECT, CONFIG).counters == (
        ("format/penalties", 0),
        ("grades/missing", 1),
        ("grades/right", 2),
        ("grades/ungraded", 1),
        ("grades/wrong", 2),
        ("judge/due", 6),
        ("judge/signal", 3),
        ("votes/cast", 6),
        ("votes/contradictory", 0),
        ("votes/duplicate", 0),
        ("votes/not_a_comparison", 0),
        ("votes/not_shown", 0),
        ("votes/own_work", 0),
        ("votes/same_handle", 0),
        ("votes/ties", 1),
        ("votes/unknown_handle", 0),
        ("votes/valid", 6),
    )


def test_truth_values_come_from_the_scheme_and_ungraded_is_none():
    config = RewardConfig(truth_correct=2.0, truth_wrong=-1.0, truth_missing=-3.0)
    rewards = score_votes(4, 1, [], [[True], [False], ["missing"], [None]], config)
    assert rewards.truth == ((2.0,), (-1.0,), (-3.0,), (None,))
    assert score_votes(4, 1, [], None, config).truth == ((None,),) * 4


def test_the_penalty_falls_on_due_turns_without_a_valid_vote_only():
    rewards = score_votes(3, 2, [(0, 1, 1, 2, "tie")], None, CONFIG)
    assert rewards.format == ((0.0, 0.0, -0.5), (0.0, -0.5, -0.5), (0.0, -0.5, -0.5))
    assert rewards.count("format/penalties") == 5


def test_an_invalid_vote_does_not_save_from_the_penalty():
    assert score_votes(3, 1, [(0, 1, 0, 1, "left")], None, CONFIG).format[0] == (0.0, -0.5)


def test_without_a_final_ballot_its_round_is_none():
    rewards = score_votes(3, 2, [], None, CONFIG, final_ballot=False)
    assert rewards.format == ((0.0, -0.5, None),) * 3
    assert rewards.judge == ((None, None, None),) * 3


def test_two_agents_owe_nothing_and_hold_no_ballot():
    rewards = score_votes(2, 2, [(0, 1, 0, 1, "left")], None, CONFIG)
    assert rewards.format == ((0.0, 0.0, None),) * 2
    assert rewards.peer == ((None, None),) * 2
    assert rewards.count("votes/own_work") == 1


def test_one_agent_is_plain_rlvr():
    rewards = score_votes(1, 1, [], [[True]], CONFIG)
    expected = Rewards(((None,),), ((1.0,),), ((None, None),), ((0.0, None),), rewards.counters)
    assert rewards == expected


def test_turns_that_did_not_take_place_have_no_reward_at_all(make_debate):
    debate = make_debate(left_out=[TurnId(0, 0), TurnId(1, 1)])
    rewards = score_debate(debate, [[True], [True], [True]], CONFIG)
    assert rewards.truth == ((None,), (1.0,), (1.0,))
    assert rewards.format == ((None, -0.5), (0.0, None), (0.0, -0.5))


@pytest.mark.parametrize(
    ("votes", "correct", "complaint"),
    [
        (
            [(0, 1, 1)],
            None,
            r"votes\[0\]: expected \(judge, judge_round, left, right, outcome\), got \(0, 1, 1\)",
        ),
        (
            [(2, 3, 0, 1, "left")],
            None,
            r"votes\[0\]\.judge_round: expected a whole number from 0 to 2, got 3",
        ),
        ([(2, 1, 0, True, "left")], None, r"votes\[0\]\.right: .* got True"),
        ([], [[True, True], [True], [True, True]], r"correct\[1\]: expected 2 rounds, got 1"),
        ([], [["wrong", True], [True] * 2, [True] * 2], r"correct\[0\]\[0\]: .* got 'wrong'"),
    ],
)
def test_data_that_cannot_be_is_refused_with_its_place(votes, correct, complaint):
    with pytest.raises(ValueError, match=complaint):
        score_votes(3, 2, votes, correct, CONFIG)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"truth_weigth": 0.5}, "unknown key 'truth_weigth'; did you mean 'truth_weight'"),
        ({"judge_truth_weight": -0.1}, "greater than or equal to 0"),
        ({"truth_correct": math.nan}, "should be a finite number"),
        ({"mix": "both"}, "'advantages' or 'rewards'"),
    ],
)
def test_a_scheme_that_makes_no_sense_is_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        RewardConfig(**settings)


def peers(*rows: tuple[float | None, ...]) -> tuple[tuple[float | None, ...], ...]:
    return rows


def test_the_best_of_the_last_judged_round_wins():
    peer = peers((1.0, -1.0, None), (-1.0, 1.0, None), (None, None, None))
    assert voted_winner(peer, seed=0) == TurnId(1, 1)
    assert voted_winner(peer, seed=0, round=0) == TurnId(0, 0)


def test_without_votes_there_is_no_winner():
    assert voted_winner(peers((None,), (None,)), seed=0) is None
    assert voted_winner(peers((1.0, None), (-1.0, None)), seed=0, round=1) is None


def test_a_turn_without_votes_does_not_win_over_a_negative_score():
    assert voted_winner(peers((None,), (-0.5,), (-1.0,)), seed=0) == TurnId(1, 0)


def test_ties_are_drawn_evenly_and_repeatably():
    peer = peers((0.5,), (-1.0,), (0.5,), (0.5,))
    drawn = Counter(voted_winner(peer, seed=seed) for seed in range(3000))
    assert set(drawn) == {TurnId(agent, 0) for agent in (0, 2, 3)}
    assert all(900 < count < 1100 for count in drawn.values())
    assert voted_winner(peer, seed=5) == voted_winner(peer, seed=5)


def test_those_that_a_winner_is_drawn_among_are_told():
    peer = peers((0.5,), (-1.0,), (0.5,), (None,))
    assert best_voted(peer) == (TurnId(0, 0), TurnId(2, 0))
    assert best_voted(peers((0.5, None), (0.2, 0.1)), 0) == (TurnId(0, 0),)
    assert best_voted(peers((None,), (None,))) == ()


def test_fitted_scores_that_differ_in_the_last_digits_are_tied():
    votes = [(2, 1, 0, 1, "left"), (1, 1, 2, 0, "left"), (0, 1, 1, 2, "left")]  # a cycle
    rewards = score_votes(3, 1, votes, None, RewardConfig(peer="bradley_terry"))
    assert {voted_winner(rewards.peer, seed=seed) for seed in range(50)} == {TurnId(a, 0) for a in range(3)}


WEIGHTED = RewardConfig(likelihood_weight=0.5)


def test_the_reward_is_the_log_probability_less_that_of_the_baseline():
    assert likelihood_stream(Likelihoods(((-0.5, None), (-3.0, -2.0)), -2.0)) == ((1.5, None), (-1.0, 0.0))
    assert likelihood_stream(Likelihoods(((-0.5,),))) == ((-0.5,),)


def test_a_stream_is_there_only_under_a_scheme_that_weighs_it_and_where_it_was_measured(make_debate):
    debate, read = make_debate(), Likelihoods(((-0.5,), (-1.0,), (-1.5,)), -1.0)
    assert score_debate(debate, None, WEIGHTED, likelihoods=read).likelihood == ((0.5,), (0.0,), (-0.5,))
    assert score_debate(debate, None, RewardConfig(), likelihoods=read).likelihood is UNSET
    assert score_debate(debate, None, WEIGHTED).likelihood is UNSET


def test_the_stream_is_centred_and_divided_as_truth_is_and_added_with_its_weight():
    turns = [transition_of(debate=n, truth=1.0 - n, likelihood=-1.0 - 2 * n) for n in (0, 1)]
    config = AdvantageConfig.model_validate({"truth": {"scale": "none"}, "lambda_gen": 2.0})
    first, second = turn_advantages(turns, WEIGHTED, config, {}).turns
    assert first is not None
    assert second is not None
    one = 1 / (1 + 1e-4)  # mean -2, standard deviation 1, as learner.advantages.baselines adds 1e-4
    assert first.likelihood == pytest.approx(2 * 0.5 * one)
    assert first.generator == pytest.approx(2 * (0.5 * 0.5 + 0.5 * one))
    assert second.generator == pytest.approx(-first.generator)


def test_a_weight_may_be_a_ramp_and_there_is_no_stream_while_it_is_0():
    ramp = RewardConfig.model_validate({"likelihood_weight": [[2, 0.0], [4, 1.0]]})
    assert ramp.reads_likelihood
    assert [ramp.at_step(step).likelihood_weight for step in (0, 3, 9)] == [0.0, 0.5, 1.0]
    assert [ramp.at_step(step).reads_likelihood for step in (0, 3)] == [False, True]
    turns = [transition_of(debate=n, truth=1.0, likelihood=-1.0 - 2 * n) for n in (0, 1)]
    config = AdvantageConfig.model_validate({"likelihood": {"scale": "none"}})
    parts = [turn_advantages(turns, ramp.at_step(step), config, {}).turns[0] for step in (0, 3, 9)]
    assert [part and part.generator for part in parts] == [None, 0.5, 1.0]


def test_it_can_be_all_that_a_single_solver_learns_from():
    alone = DebateConfig(num_agents=1, num_rounds=1)
    nothing = RewardConfig(truth_weight=0.0)
    with pytest.raises(ValueError, match="nothing to learn from"):
        check_scheme(alone, nothing, verifiable=True)
    by_likelihood = RewardConfig(truth_weight=0.0, likelihood_weight=1.0)
    assert check_scheme(alone, by_likelihood, verifiable=True) is None
    with pytest.raises(ValueError, match="nothing to learn from"):
        check_scheme(alone, by_likelihood, verifiable=False)
