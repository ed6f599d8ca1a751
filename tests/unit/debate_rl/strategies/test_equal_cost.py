"""Self-consistency at equal cost by hand: what a majority of solutions is worth, and what is left out."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import DebateConfig, Problem
from debate.policies.scripted import ScriptedPolicy
from debate_rl.strategies import equal_cost
from debate_rl.strategies.equal_cost import CONTENDERS, Pool, compare_strategies, majority_chance
from debate_rl.strategies.work import SolvePlan
from envs import load_environment

NUMBERS = load_environment("gsm8k")
PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")
PLAN = SolvePlan("majority", DebateConfig(), NUMBERS)


def pool_of(answers):
    policy = ScriptedPolicy(lambda request: f"\\boxed{{{answers[request.turn.agent]}}}", tokens=True)
    pool = Pool([PROBLEM], PLAN, policy, equal_cost.Grader(NUMBERS, "boxed"))
    pool.draw(len(answers))
    return pool, policy


@pytest.mark.parametrize(
    ("size", "chance"),
    [
        (1, 0.5),  # three of six
        (2, (1.0 + 0.0 + 0.5) / 3),  # 44, 55 and 64, where it is drawn
        (3, (1.0 + 1 / 3) / 2),  # 445, and 564, of which one is drawn
        (6, 1.0),
        (1.25, 0.75 * 0.5 + 0.25 * 0.5),  # the larger number on a share of the problems
        (5.5, 0.5 * 0.5 + 0.5 * 1.0),  # of 44556 one of two is drawn
    ],
)
def test_a_majority_is_the_mean_over_disjoint_sets(size, chance):
    assert pool_of("445564")[0].right(size) == {"p": pytest.approx(chance)}


def test_one_solution_has_a_mean_cost_and_may_give_no_answer():
    pool, policy = pool_of("4444")
    said = len("\\boxed{4}") + 1  # a token for each character, and the end
    read = sum(len(message.content) for message in policy.requests[0].messages)
    assert pool.cost == {"generated": said, "total": read + said}
    assert equal_cost.equal_samples(25 * pool.cost["total"], pool.cost["total"]) == 25.0
    assert pool_of(["4", "", "5", " "])[0].missing == 0.5


class HalfForced(ScriptedPolicy):
    """The first half of each reply was written by force."""

    async def sample(self, request):
        reply = await super().sample(request)
        return msgspec.structs.replace(reply, forced=tuple(range(len(reply.tokens) // 2)))


def test_equal_tokens_are_generated_ones_on_both_sides():
    policy = HalfForced(lambda request: f"\\boxed{{{request.turn.agent}}}", tokens=True)
    plan = replace(PLAN, samples=4)
    found = compare_strategies([PROBLEM], {"majority": CONTENDERS["majority"]}, plan, policy)
    # four solutions spend the tokens of four
    assert found.measured["majority"].compared("generated")[0] == 4.0


ANSWERS = st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=12)
GRADES = st.lists(st.booleans(), min_size=4, max_size=4)


@settings(max_examples=30)
@given(ANSWERS, GRADES, st.permutations(range(4)))
def test_a_chance_depends_on_no_names_and_with_that_of_wrong_answers_is_one(answers, grades, names):
    renamed = [None if one is None else names[one] for one in answers]
    by_name = [grades[names.index(name)] for name in range(4)]
    chance = majority_chance(answers, grades)
    assert 0 <= chance <= 1
    assert chance == majority_chance(renamed, by_name)
    if any(one is not None for one in answers):
        assert chance + majority_chance(answers, [not one for one in grades]) == pytest.approx(1)


def test_what_a_protocol_does_not_allow_is_left_out_and_says_why():
    policy = ScriptedPolicy(lambda _: "\\boxed{4}", tokens=True)
    plan = replace(PLAN, protocol=DebateConfig(num_agents=1), samples=1)
    names = ("greedy", "swiss", "debate_winner")
    found = compare_strategies([PROBLEM], {name: CONTENDERS[name] for name in names}, plan, policy)
    assert [*found.measured] == ["greedy"]
    assert found.refused["debate_winner"].startswith("debate.num_agents = 1 allows no debate")
    assert "the judge has no ballots" in found.refused["swiss"]
