import pytest
from msgspec import UNSET

from debate.config import DebateConfig
from learner.advantages import AdvantageConfig, turn_advantages
from rewards import RewardConfig, check_scheme, score_debate
from rewards.score import likelihood_stream
from rewards.types import Likelihoods

from ..learner.conftest import transition_of

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
