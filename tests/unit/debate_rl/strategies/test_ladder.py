"""The ladder by hand: what a majority of some solutions is worth, and steps of agents from round to round."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import DebateConfig, Problem
from debate.policies.scripted import ScriptedPolicy
from debate_rl.strategies.equal_cost import Grader, Pool, majority_chance
from debate_rl.strategies.ladder import RUNGS, equal_samples
from debate_rl.strategies.solving import SolvePlan
from envs import load_environment

NUMBERS = load_environment("gsm8k")
PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")


def pool_of(answers, count):
    policy = ScriptedPolicy(lambda request: f"\\boxed{{{answers[request.turn.agent]}}}", tokens=True)
    plan = SolvePlan("majority", DebateConfig(), NUMBERS)
    pool = Pool([PROBLEM], plan, policy, Grader(NUMBERS, "boxed"))
    pool.draw(count)
    return pool, policy


def test_a_majority_is_the_mean_over_disjoint_sets():
    pool, _ = pool_of("445564", 6)
    assert pool.right(1) == {"p": 0.5}  # three of six
    assert pool.right(2) == {"p": pytest.approx((1.0 + 0.0 + 0.5) / 3)}  # 44, 55 and 64, where it is drawn
    assert pool.right(3) == {"p": pytest.approx((1.0 + 1 / 3) / 2)}  # 445, and 564, of which one is drawn
    assert pool.right(6) == {"p": 1.0}


def test_a_count_between_two_numbers_is_the_larger_one_on_a_share():
    pool, _ = pool_of("445564", 6)
    assert pool.right(1.25)["p"] == pytest.approx(0.75 * 0.5 + 0.25 * 0.5)
    assert pool.right(5.5)["p"] == pytest.approx(0.5 * 0.5 + 0.5 * 1.0)  # of 44556 one of two is drawn


def test_solutions_without_an_answer_are_a_share():
    assert pool_of(["4", "", "5", " "], 4)[0].missing == 0.5


def test_the_cost_of_one_solution_is_a_mean():
    pool, policy = pool_of("4444", 4)
    said = len("\\boxed{4}") + 1  # a token for each character, and the end
    assert pool.cost["generated"] == said
    read = sum(len(message.content) for message in policy.requests[0].messages)
    assert pool.cost["total"] == read + said
    assert equal_samples(25 * pool.cost["total"], pool.cost["total"]) == 25.0


ANSWERS = st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=12)
GRADES = st.lists(st.booleans(), min_size=4, max_size=4)


@settings(max_examples=30)
@given(ANSWERS, GRADES, st.permutations(range(4)))
def test_names_of_answers_change_nothing(answers, grades, names):
    renamed = [None if one is None else names[one] for one in answers]
    by_name = [grades[names.index(name)] for name in range(4)]
    assert majority_chance(answers, grades) == majority_chance(renamed, by_name)


@settings(max_examples=30)
@given(ANSWERS, GRADES)
def test_a_chance_is_one_and_that_of_wrong_answers_its_complement(answers, grades):
    chance = majority_chance(answers, grades)
    assert 0 <= chance <= 1
    if any(one is not None for one in answers):
        assert chance + majority_chance(answers, [not one for one in grades]) == pytest.approx(1)


def test_rungs_that_a_protocol_does_not_allow_say_why():
    plan = SolvePlan("majority", DebateConfig(num_agents=1), NUMBERS)
    assert RUNGS["debate_winner"].why_not(plan, [PROBLEM]).startswith("debate.num_agents = 1 holds no debate")
    assert "judge without ballots" in RUNGS["swiss"].why_not(plan, [PROBLEM])
    assert RUNGS["greedy"].why_not(plan, [PROBLEM]) is None
