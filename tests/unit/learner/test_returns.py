from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from learner.advantages import AdvantageConfig, turn_advantages
from learner.advantages.baselines import returns
from learner.types import Transition
from rewards import RewardConfig

from .conftest import transition_of as turn_of


def three_rounds(*values: float | None, debate: int = 0) -> list[Transition]:
    return [turn_of(0, round_, debate=debate, truth=value) for round_, value in enumerate(values)]


def test_the_return_is_the_discounted_sum_of_the_later_rounds():
    turns = three_rounds(1.0, 0.0, 2.0)
    assert returns(turns, [1.0, 0.0, 2.0], 0.5) == [1.0 + 0.5 * (0.0 + 0.5 * 2.0), 1.0, 2.0]
    assert returns(turns, [1.0, 0.0, 2.0], 0.0) == [1.0, 0.0, 2.0]


def test_truth_of_the_last_round_alone_falls_by_the_discount_for_each_round_before():
    turns = three_rounds(None, None, 1.0)
    assert returns(turns, [None, None, 1.0], 0.7) == pytest.approx([0.49, 0.7, 1.0])
    assert returns(turns, [None, 1.0, None], 0.7) == [0.7, 1.0, None]


def test_agents_debates_and_the_ballot_stay_apart():
    last = turn_of(0, 2)
    ballot = replace(last, turn=with_fields(last.turn, ballot=True))
    turns = [turn_of(0, 0), turn_of(0, 1), turn_of(1, 0), turn_of(0, 1, debate=1), ballot]
    assert returns(turns, [None, 1.0, None, 5.0, None], 0.5) == [0.5, 1.0, None, 5.0, None]


def test_returns_are_centred_among_the_returns_of_their_round():
    turns = [*three_rounds(None, 1.0), *three_rounds(None, 0.0, debate=1)]
    config = AdvantageConfig.model_validate({"discount": 0.5, "truth": {"scale": "none"}})
    found = turn_advantages(turns, RewardConfig(truth_weight=1.0), config, {})
    assert [part and part.generator for part in found.turns] == [0.25, 0.5, -0.25, -0.5]


def test_shaping_has_its_own_baseline_and_is_added_to_the_rest():
    turns = [turn_of(0, 0, truth=1.0, shaping=0.3), turn_of(0, 0, debate=1, truth=0.0, shaping=0.0)]
    rewards = RewardConfig(truth_weight=0.5, novelty_bonus=0.3)
    config = AdvantageConfig.model_validate({"truth": {"scale": "none"}, "lambda_gen": 2.0})
    first, second = turn_advantages(turns, rewards, config, {}).turns
    assert first is not None
    assert second is not None
    assert (first.generator, first.truth, first.shaping) == pytest.approx((2 * (0.25 + 0.15), 0.5, 0.3))
    assert second.generator == pytest.approx(-0.8)


def test_shaping_is_added_to_mixed_rewards_too_and_can_be_all_there_is():
    turns = [turn_of(0, 0, shaping=0.3), turn_of(0, 0, debate=1, shaping=0.1)]
    rewards = RewardConfig(novelty_bonus=0.3, mix="rewards")
    found = turn_advantages(turns, rewards, AdvantageConfig(), {}).turns
    assert [part and part.generator for part in found] == pytest.approx([0.1, -0.1])
