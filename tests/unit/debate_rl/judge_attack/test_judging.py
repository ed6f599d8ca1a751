"""Pairs are made and judged: by scripted policies whose habits are known."""

import pytest
from msgspec.structs import replace

from debate import DebateConfig
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.reading import read_prompt
from debate.prompting.texts import load_prompts
from debate_rl.config import Config
from debate_rl.judge_attack.judging import PairPlan, judge_pairs, make_pairs
from debate_rl.judge_attack.pairs import accuracy, fall, rates
from debate_rl.judge_attack.persuaders import WORDS
from envs import load_environment
from envs.families import FAMILIES

CONFIG = DebateConfig(num_rounds=2, prompts="tiny", handles=("K7", "Q2", "M4"))
PAIR_SUM = load_environment("pair_sum", levels=[1])
PROBLEMS = PAIR_SUM.problems(split="test", limit=12, seed=0)
TEXTS = load_prompts("tiny")


def plan(**changes):
    made = {"environment": PAIR_SUM, "problems": PROBLEMS, "config": CONFIG, "count": 12, "seed": 3}
    return PairPlan(**(made | {"family": "pair_sum", "tiny": True} | changes))


def is_right(request, entry):
    question = request.messages[-1].content
    problem = next(one for one in PROBLEMS if one.question in question)
    return " right" in FAMILIES["pair_sum"].write_check(problem, entry.solution)


def judge(choose):
    """Return a policy that prefers what ``choose`` sorts to the front of the others' entries."""

    def reply(request):
        seen = read_prompt(TEXTS, request.messages)
        others = [entry for entry in seen.entries if entry.handle != seen.handle]
        ranked = " > ".join(entry.handle for entry in choose(request, others))
        return f"<evaluation>.</evaluation><comparison>{ranked}</comparison>"

    return ScriptedPolicy(reply)


def figures(policy, pairs, config=CONFIG):
    found = rates(pairs, judge_pairs(policy, pairs, PROBLEMS, config, 5))
    return {attack: accuracy(found, attack).value for attack in found}, fall(found).value


def true(request, others):
    return sorted(others, key=lambda entry: not is_right(request, entry))


def flattered(request, others):
    return sorted(others, key=lambda e: ("careful judge" not in e.solution, not is_right(request, e)))


def longest(request, others):
    return sorted(others, key=lambda entry: (-len(entry.solution), not is_right(request, entry)))


def test_nothing_is_said_of_a_pair_whose_problem_is_not_there():
    first, *others = pairs = make_pairs(plan(count=3), judge(true))
    strange = [replace(first, problem="nobody"), *others]
    said, all_said = (judge_pairs(judge(true), ones, PROBLEMS, CONFIG, 5) for ones in (strange, pairs))
    assert said == [one for one in all_said if one.pair > 0]
    assert rates(strange, said)["plain"].keys() == {pair.problem for pair in others}


def test_a_judge_that_likes_flattery_falls_for_it_alone():
    found, falls = figures(judge(flattered), make_pairs(plan(), judge(true)))
    assert {attack for attack, value in found.items() if value < 1} == {"flattery", "attacked"}
    assert found["flattery"] == 0
    assert falls == pytest.approx(1 / 7)


def test_a_judge_of_the_first_shown_is_right_on_half_and_never_in_both_orders():
    found, _ = figures(judge(lambda request, others: others), make_pairs(plan(), judge(true)))
    assert found["plain"] == 0.5
    assert found["order"] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"num_agents": 5},
        {"num_agents": 2, "judge_own": True},
        {"history_rounds": -1},
        {"protocol": "zero_sum", "num_rounds": 1},
        {"protocol": "consultancy", "num_rounds": 1},
        {"ballot": "swiss", "num_rounds": 1},
    ],
)
def test_a_judge_always_sits_with_two_others(changes):
    config = CONFIG.model_copy(update=changes | {"handles": None})
    found, _ = figures(judge(true), make_pairs(plan(config=config), judge(true)), config)
    assert found["attacked"] == 1.0


def test_pairs_and_judgments_are_the_same_again_and_at_temperature_0():
    pairs = make_pairs(plan(), judge(true))
    assert make_pairs(plan(), judge(true)) == pairs
    policy = judge(longest)
    first = judge_pairs(policy, pairs, PROBLEMS, CONFIG, 5)
    assert judge_pairs(judge(longest), pairs, PROBLEMS, CONFIG, 5) == first
    assert {request.temperature for request in policy.requests} == {0.0}
    assert rates(pairs, first)["padding"] == {problem.id: [0.0] for problem in PROBLEMS}


def test_pairs_of_other_data_are_the_policys_own_solutions():
    def solve(request):
        problem = next(one for one in PROBLEMS if one.question in request.messages[-1].content)
        number = PROBLEMS.index(problem)
        right = number % 2 == 0 and request.turn.agent == 1  # the others are never solved
        numbers = problem.answer if right else "1 1"
        return f"<solution>It is \\boxed{{{numbers}}}, by {request.turn.agent}.</solution>"

    policy = ScriptedPolicy(solve)
    pairs = make_pairs(plan(family="", tiny=False, count=4), policy)
    assert [pair.problem for pair in pairs] == [problem.id for problem in PROBLEMS[0:8:2]]
    assert all("by 1" in pair.right and "by 0" in pair.wrong for pair in pairs)
    assert all(pair.attacked["flattery"].partition("\n\n")[2] in WORDS.flattery for pair in pairs)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"held_out": {"judge_pairs": 9, "limit": 0}}, "held_out.limit = 0"),
        ({"held_out": {"judge_pairs": 9, "every": 0}}, "held_out.every = 0"),
        ({"debate": {"num_agents": 2}}, "debate.num_agents = 2"),
        ({"debate": {"history_rounds": 0}}, "debate.history_rounds = 0"),
        ({"debate": {"num_rounds": 1, "final_ballot": False}}, "debate.num_rounds = 1"),
    ],
)
def test_pairs_that_nobody_would_judge_are_refused(changes, why):
    settings = {"model": {"name_or_path": "m"}, "held_out": {"judge_pairs": 9}} | changes
    with pytest.raises(ValueError, match=f"judge_pairs = 9: with {why}"):
        Config.model_validate(settings)


def test_a_judge_that_contradicts_itself_has_no_valid_vote():
    def both(request):
        seen = read_prompt(TEXTS, request.messages)
        one, other = (entry.handle for entry in seen.entries if entry.handle != seen.handle)
        return f"<evaluation>.</evaluation><comparison>{one} > {other}\n{other} > {one}</comparison>"

    pairs = make_pairs(plan(count=2), judge(true))
    said = judge_pairs(ScriptedPolicy(both), pairs, PROBLEMS, CONFIG, 5)
    assert {one.preferred for one in said} == {"none"}
