from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from debate.types import Completion, TurnId
from learner import AdvantageConfig, make_rows, turn_advantages
from rewards import RewardConfig, score_debate
from rewards.config import Overlong
from rewards.overlong import overlong_penalty

from ..learner.conftest import transition_of

SOFT = Overlong(tokens=100, penalty=-1.0)


def reply(tokens: int, stop_reason="stop") -> Completion:
    return Completion((), (), (), "", stop_reason, 0, token_count=tokens)


@pytest.mark.parametrize(
    ("tokens", "penalty"), [(0, 0.0), (900, 0.0), (901, -0.01), (950, -0.5), (999, -0.99), (1000, -1.0)]
)
def test_the_penalty_falls_linearly_over_the_last_tokens_of_the_limit(tokens, penalty):
    assert overlong_penalty(reply(tokens), 1000, SOFT) == pytest.approx(penalty)


def test_a_reply_that_was_cut_off_has_the_whole_penalty_also_where_its_tokens_are_not_known():
    assert overlong_penalty(reply(0, "length"), 1000, SOFT) == -1.0


@given(st.integers(0, 2000), st.integers(0, 50), st.integers(1, 999))
def test_a_longer_reply_never_has_a_smaller_penalty(tokens, more, buffer):
    config = Overlong(tokens=buffer, penalty=-1.0)
    shorter, longer = (overlong_penalty(reply(count), 1000, config) for count in (tokens, tokens + more))
    assert -1.0 <= longer <= shorter <= 0.0


def test_the_penalty_is_added_to_the_shaping_of_solutions_and_counts_as_no_missing_vote(make_debate):
    """Limit 2048 (the default); 2023 tokens are 75 of the last 100. A ballot that was cut off has none."""
    debate = make_debate()
    long = {TurnId(0, 0): reply(2023), TurnId(1, 1): reply(5, "length")}
    turns = tuple(replace(turn, completion=long.get(turn.id, turn.completion)) for turn in debate.turns)
    debate = replace(debate, turns=turns)
    rewards = score_debate(debate, None, RewardConfig(overlong=SOFT))
    assert rewards.shaping == ((-0.75,), (0.0,), (0.0,))
    assert rewards.format == ((0.0, -0.5),) * 3
    assert rewards.count("format/penalties") == 3
    for other in ("keep", "mask"):
        plain = score_debate(debate, None, RewardConfig(overlong=other))
        assert (plain.shaping, plain.format) == (UNSET, rewards.format)


@pytest.mark.parametrize("key", ["overlong_tokens", "overlong_penalty"])
def test_a_former_key_is_refused_with_what_replaces_it(key):
    with pytest.raises(ValueError, match=rf"unknown key '{key}'; it is now overlong = \{{"):
        RewardConfig.model_validate({"overlong": "keep", key: 1})


def test_a_masked_reply_leaves_the_loss_and_still_counts_in_the_baseline():
    """Truth 1, 1 and 0, the last cut off: mean 2/3 and standard deviation .4714 either way."""
    ends = (("stop", 1.0), ("stop", 1.0), ("length", 0.0))
    turns = [transition_of(stop_reason=end, truth=truth) for end, truth in ends]
    config = AdvantageConfig()

    def rows(overlong: str) -> list[float]:
        rewards = RewardConfig(overlong=overlong, truth_weight=1.0)
        advantages = turn_advantages(turns, rewards, config, {})
        return [float(row.advantages[-1]) for row in make_rows(turns, advantages.turns, config)]

    high, low = (1 / 3) / (0.4714045 + 1e-4), (-2 / 3) / (0.4714045 + 1e-4)
    assert rows("keep") == pytest.approx([high, high, low], abs=1e-5)
    assert rows("mask") == pytest.approx([high, high], abs=1e-5)


def test_another_word_is_refused_with_the_table():
    with pytest.raises(ValueError, match=r'must be "keep", "mask" or a table such as \{tokens = 256'):
        RewardConfig.model_validate({"overlong": "penalize"})
