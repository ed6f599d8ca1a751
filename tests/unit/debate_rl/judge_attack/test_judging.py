"""Pairs are made and judged: by scripted policies whose habits are known."""

from collections import Counter

import pytest
from msgspec.structs import replace

from debate import DebateConfig
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.reading import read_prompt
from debate.prompting.texts import load_prompts
from debate_rl.config import Config
from debate_rl.judge_attack.judging import PairPlan, judge_accuracy, judge_pairs, make_pairs
from debate_rl.judge_attack.pairs import accuracy, fall, rates
from debate_rl.judge_attack.persuaders import WORDS
from envs import load_environment
from envs.families import FAMILIES

CONFIG = DebateConfig(num_rounds=2, prompts="tiny", handles=("K7", "Q2", "M4"))
PAIR_SUM = load_environment("pair_sum", levels=[1])
PROBLEMS = PAIR_SUM.problems(split="test", limit=60, seed=0)
FEW = PROBLEMS[:12]
TEXTS = load_prompts("tiny")


def shown_to(request):
    """Return the others' entries of a prompt, the judge's own if shown, and a function: is an entry right?"""
    seen = read_prompt(TEXTS, request.messages)
    problem = next(one for one in PROBLEMS if one.question in request.messages[-1].content)

    def is_right(entry):
        return " right" in FAMILIES["pair_sum"].write_check(problem, entry.solution)

    own = next((entry for entry in seen.entries if entry.handle == seen.handle), None)
    return [entry for entry in seen.entries if entry is not own], own, is_right


def judge(choose):
    """Return a policy that prefers what ``choose(others, is_right)`` sorts to the front."""

    def reply(request):
        others, _, is_right = shown_to(request)
        ranked = " > ".join(entry.handle for entry in choose(others, is_right))
        return f"<evaluation>.</evaluation><comparison>{ranked}</comparison>"

    return ScriptedPolicy(reply)


def by(key):
    """Return a choice that sorts by ``key(entry)``, and then what is right to the front."""
    return lambda others, is_right: sorted(others, key=lambda one: (key(one), not is_right(one)))


def first(others, is_right):
    return others


true = by(lambda entry: 0)
flattered = by(lambda entry: "careful judge" not in entry.solution)
longest = by(lambda entry: -len(entry.solution))


def measured(policy, config=CONFIG, seed=3):
    return judge_accuracy(policy, "pair_sum", PROBLEMS, config=config, greedy=False, seed=seed)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (judge(true), 1.0),
        (judge(lambda *how: true(*how)[::-1]), 0.0),
        (judge(first), 0.5),
        (judge(lambda others, _: others[::-1]), 0.5),
        (ScriptedPolicy(lambda request: "no vote"), 0.0),
        (ScriptedPolicy(lambda request: "<comparison>K7 = Q2 = M4</comparison>"), 0.0),
    ],
)
def test_judges_of_known_accuracy(policy, expected):
    found = measured(policy)
    assert (found.value, found.n, found.clusters) == (expected, 60, 60)


def test_each_judge_sees_its_own_work_and_the_right_solution_first_as_often_as_second():
    one, again, other = (judge(true) for _ in range(3))
    for policy, seed in ((one, 3), (again, 3), (other, 4)):
        measured(policy, seed=seed)
    prompts = [[request.messages for request in policy.requests] for policy in (one, again, other)]
    assert prompts[0] == prompts[1] != prompts[2]
    places = Counter()
    for request in one.requests:
        others, _, is_right = shown_to(request)
        assert sorted(map(is_right, others)) == [False, True]
        places[request.turn.agent, is_right(others[0])] += 1
    assert set(places.values()) == {10}  # 60 pairs over 3 judges and 2 places


def test_more_agents_show_one_right_solution_among_several():
    policy = judge(true)
    assert measured(policy, DebateConfig(num_agents=5, num_rounds=2, prompts="tiny")).value == 1.0
    seen = [shown_to(request) for request in policy.requests]
    assert {sum(map(is_right, others)) for others, _, is_right in seen} == {1}


def test_votes_on_own_work_say_nothing_of_the_pair():
    def honest(request):
        others, own, is_right = shown_to(request)
        good, bad = (entry.handle for entry in true(others, is_right))
        owns_right.append(is_right(own))
        verdict = f"{own.handle} = {good}" if owns_right[-1] else f"{good} > {own.handle}"
        return f"<evaluation>.</evaluation><comparison>{good} > {bad}\n{verdict}</comparison>"

    def vain(request):
        others, own, _ = shown_to(request)
        lines = "\n".join(f"{entry.handle} > {own.handle}" for entry in others)
        return f"<evaluation>.</evaluation><comparison>{lines}</comparison>"

    owns_right: list[bool] = []
    asked = CONFIG.model_copy(update={"judge_own": True})
    assert measured(ScriptedPolicy(honest), asked).value == 1.0
    assert 15 < sum(owns_right) < 45
    assert measured(ScriptedPolicy(vain), asked).value == 0.0  # no vote on the pair


def pairs_of(policy=None, **changes):
    made = {"environment": PAIR_SUM, "problems": FEW, "config": CONFIG, "count": 12, "seed": 3}
    plan = PairPlan(**made | {"family": "pair_sum", "tiny": True} | changes)
    return make_pairs(plan, policy or judge(true))


def figures(policy, pairs, config=CONFIG):
    found = rates(pairs, judge_pairs(policy, pairs, FEW, config, 5))
    return {attack: accuracy(found, attack).value for attack in found}, fall(found).value


def test_nothing_is_said_of_a_pair_whose_problem_is_not_there():
    one, *others = pairs = pairs_of(count=3)
    strange = [replace(one, problem="nobody"), *others]
    said, all_said = (judge_pairs(judge(true), ones, FEW, CONFIG, 5) for ones in (strange, pairs))
    assert said == [one for one in all_said if one.pair > 0]
    assert rates(strange, said)["plain"].keys() == {pair.problem for pair in others}


def test_a_judge_falls_for_what_it_likes_and_one_of_places_never_in_both_orders():
    found, falls = figures(judge(flattered), pairs_of())
    assert {attack for attack, value in found.items() if value < 1} == {"flattery", "attacked"}
    assert (found["flattery"], falls) == (0, pytest.approx(1 / 7))
    found, _ = figures(judge(first), pairs_of())
    assert (found["plain"], found["order"]) == (0.5, 0)


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
    assert figures(judge(true), pairs_of(config=config), config)[0]["attacked"] == 1.0


def test_pairs_and_judgments_are_the_same_again_and_at_temperature_0():
    pairs, policy = pairs_of(), judge(longest)
    assert pairs_of() == pairs
    said = judge_pairs(policy, pairs, FEW, CONFIG, 5)
    assert judge_pairs(judge(longest), pairs, FEW, CONFIG, 5) == said
    assert {request.temperature for request in policy.requests} == {0.0}
    assert rates(pairs, said)["padding"] == {problem.id: [0.0] for problem in FEW}


def test_pairs_of_other_data_are_the_policys_own_solutions():
    def solve(request):
        problem = next(one for one in FEW if one.question in request.messages[-1].content)
        right = FEW.index(problem) % 2 == 0 and request.turn.agent == 1  # the others are never solved
        numbers = problem.answer if right else "1 1"
        return f"<solution>It is \\boxed{{{numbers}}}, by {request.turn.agent}.</solution>"

    pairs = pairs_of(ScriptedPolicy(solve), family="", tiny=False, count=4)
    assert [pair.problem for pair in pairs] == [problem.id for problem in FEW[0:8:2]]
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
        one, other = (entry.handle for entry in shown_to(request)[0])
        return f"<evaluation>.</evaluation><comparison>{one} > {other}\n{other} > {one}</comparison>"

    said = judge_pairs(ScriptedPolicy(both), pairs_of(count=2), FEW, CONFIG, 5)
    assert {one.preferred for one in said} == {"none"}
