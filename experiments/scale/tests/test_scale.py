"""The model's times by hand, its laws, and its agreement with the order in which debates are held."""

from itertools import pairwise
from math import inf, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.scale.__main__ import made_up, simulated
from experiments.scale.model import Plan, Speed, critical_path_s, simulate

BARE = Speed(1.0, 0.0, inf, most_sequences=1000, learnt_tokens_per_s=inf, publish_s=0.0)
"""One token a second for each request, whatever the number of requests; nothing else takes time."""


def test_a_debate_takes_the_longest_reply_of_each_round():
    debate = (((5, 3), (5, 7)), ((9, 4), (9, 2)))
    found = simulate(Plan(1, 1, steps=2), [debate], BARE)
    assert found.step_s == pytest.approx(7 + 4)
    assert found.tokens_per_s == pytest.approx(16 / 11)
    assert (found.idle, found.staleness) == (pytest.approx(0), 0)
    assert critical_path_s([debate], BARE) == pytest.approx(11)


def test_a_larger_batch_is_slower_for_each_request_and_prompts_delay_all():
    speed = Speed(1.0, 0.5, 10.0, most_sequences=1000, learnt_tokens_per_s=inf, publish_s=0.0)
    debate = (((20, 4), (20, 8)),)
    # 4 s for 40 prompt tokens; 4 tokens at 1 + 2 * .5 s; 4 more at 1 + .5 s
    assert simulate(Plan(1, 1, steps=2), [debate], speed).step_s == pytest.approx(4 + 8 + 6)
    assert critical_path_s([debate], speed) == pytest.approx(18)


def test_requests_beyond_the_limit_wait():
    speed = Speed(1.0, 0.0, inf, most_sequences=1, learnt_tokens_per_s=inf, publish_s=0.0)
    debate = (((1, 3), (1, 5)),)
    assert simulate(Plan(1, 1, steps=2), [debate], speed).step_s == pytest.approx(8)


def test_learning_and_publishing_come_after_sampling_or_beside_it():
    speed = Speed(1.0, 0.0, inf, most_sequences=1000, learnt_tokens_per_s=2.0, publish_s=1.0)
    debate = (((6, 4),),)
    assert simulate(Plan(1, 1, steps=4), [debate], speed).step_s == pytest.approx(4 + 5 + 1)
    ahead = simulate(Plan(2, 1, 1, async_level=1, steps=8), [debate], speed)
    assert ahead.step_s == pytest.approx(6)  # learning is slower than sampling
    assert ahead.staleness == 1
    assert ahead.idle == pytest.approx(1 - 8 * (4 + 5) / (2 * (4 + 8 * 6)))


def test_lock_step_waits_for_the_slowest_debate_of_each_round():
    fast, slow = (((1, 1),), ((1, 9),)), (((1, 9),), ((1, 1),))
    plans = (Plan(1, 40, lock_step=lock, steps=2) for lock in (False, True))
    free, locked = (simulate(plan, [fast, slow], BARE).step_s for plan in plans)
    assert (free, locked) == (pytest.approx(10), pytest.approx(18))


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(1, 12), st.integers(0, 3))
def test_no_step_is_shorter_than_its_slowest_debate(gpus, debates, seed):
    stored, speed = made_up(debates=5), Speed()
    one = simulate(Plan(gpus, debates, steps=2, seed=seed), stored, speed)
    shortest = min(critical_path_s([debate], speed) for debate in stored)
    assert one.step_s > shortest
    assert -1e-9 <= one.idle < 1


@pytest.mark.slow
def test_more_gpus_are_not_slower_and_every_plan_has_a_row():
    rows = list(simulated(16, made_up(debates=20), Speed()))
    free = [one.step_s for plan, one in rows if not plan.lock_step and not plan.async_level]
    assert all(later <= earlier * 1.01 for earlier, later in pairwise(free))
    assert {plan.gpus for plan, _ in rows} >= {1, 8, 1000}
    assert isclose(free[-1], free[-2], rel_tol=0.05)  # nothing is left to divide


@pytest.mark.parametrize("plan", [Plan(0, 1), Plan(2, 1, 2), Plan(1, 0), Plan(1, 1, async_level=1)])
def test_an_impossible_plan_is_refused(plan):
    with pytest.raises(ValueError, match="needs"):
        simulate(plan, made_up(debates=1))
