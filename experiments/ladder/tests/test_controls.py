"""A debate with noise: whose work stands in the places of the others, and what stays."""

from __future__ import annotations

import re

import pytest

from debate import DebateConfig, Problem
from debate.policies.scripted import ScriptedPolicy
from debate_rl.strategies.solving import solve_all
from debate_rl.strategies.work import SolvePlan
from envs import load_environment
from experiments.ladder.controls import CONTROLS, donors, no_noise, noise_debates, one_persona

NUMBERS = load_environment("gsm8k")
PROBLEMS = [Problem(f"p{n}", f"What is {n}0 + 1?", answer=f"{n}01") for n in range(3)]
PROTOCOL = DebateConfig(num_agents=3, num_rounds=2)
ENTRY = re.compile(r'<work agent="(\w+)" .*?boxed\{(.*?)\}', re.DOTALL)


def answer(request):
    """Say the number of the problem, the agent and the round."""
    number = re.search(r"What is (\d)0", "".join(m.content for m in request.messages))[1]
    said = f"{number}{request.turn.agent}{request.turn.round}"
    return f"<solution>\\boxed{{{said}}}</solution><evaluation>-</evaluation><comparison></comparison>"


def held(seed=0):
    policy = ScriptedPolicy(answer, tokens=True)
    plan = SolvePlan("debate_majority", PROTOCOL, NUMBERS, seed=seed)
    return noise_debates(PROBLEMS, plan, policy), policy


def test_an_agent_reads_its_own_work_and_that_of_another_problem():
    found, policy = held()
    noisy = policy.requests[-9:]  # three agents of three debates in round 1
    assert {request.turn.round for request in noisy} == {1}
    for request in noisy:
        text = request.messages[-1].content
        number = re.search(r"What is (\d)0", text)[1]
        own = re.search(r"Your label is (\w+)", text)[1]
        shown = dict(ENTRY.findall(text))
        assert len(shown) == 3
        assert shown.pop(own) == f"{number}{request.turn.agent}0"
        [other] = {said[0] for said in shown.values()}
        assert other != number
        assert {said[1] for said in shown.values()} == {"0", "1", "2"} - {str(request.turn.agent)}
    assert all(len(one.turns) == 6 for one in found)


def test_round_0_is_that_of_the_debate_and_costs_nothing_twice():
    found, policy = held()
    plain = solve_all(
        PROBLEMS,
        SolvePlan("debate_majority", PROTOCOL, NUMBERS),
        ScriptedPolicy(answer, tokens=True),
    )
    for noisy, debate in zip(found, plain, strict=True):
        assert [t.completion.text for t in noisy.turns[:3]] == [t.completion.text for t in debate.turns[:3]]
        assert noisy.tokens_generated == debate.tokens_generated  # the other problem's debate is not counted
    seeds = [request.seed for request in policy.requests if request.turn.round == 0]
    assert len(seeds) == 2 * len(set(seeds))  # asked twice, with the same seeds


@pytest.mark.parametrize("agent_says", ["7", "{agent}"])
def test_it_ends_where_its_agents_agree_as_the_debate_does(agent_says):
    def say(request):
        return f"<solution>\\boxed{{{agent_says.format(agent=request.turn.agent)}}}</solution>"

    protocol = DebateConfig(num_agents=3, num_rounds=3, min_rounds=1)
    plan = SolvePlan("debate_majority", protocol, NUMBERS)
    found = noise_debates(PROBLEMS, plan, ScriptedPolicy(say, tokens=True))
    assert {(len(one.turns), one.ended) for one in found} == {
        (3, "settled") if agent_says == "7" else (9, "done")
    }


def test_a_problem_without_another_one_is_refused_before_anything_is_asked():
    plan = SolvePlan("majority", PROTOCOL, NUMBERS)
    why = "needs two problems or more whose debates are of one size"
    assert CONTROLS["noise_debate"].why_not(plan, PROBLEMS[:1]) == why
    assert CONTROLS["noise_debate"].why_not(plan, PROBLEMS[:2]) is None


def test_the_texts_are_drawn_by_the_seed_and_each_is_used_once():
    assert [one.solution for one in held()[0]] == [one.solution for one in held()[0]]
    assert donors([], 0) == []
    with pytest.raises(ValueError, match="needs two problems or more"):
        noise_debates(
            PROBLEMS[:1],
            SolvePlan("debate_majority", PROTOCOL, NUMBERS),
            ScriptedPolicy(answer),
        )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, None),
        ({"num_rounds": 1}, "debate.num_rounds = 1 has no noise"),
        ({"history_rounds": 0}, "debate.history_rounds = 0 has no noise"),
        ({"summary": {"enabled": True}}, "debate.summary.enabled = true has no noise"),
        ({"protocol": "critique"}, "debate.protocol = critique has no noise"),
    ],
)
def test_a_protocol_without_places_for_noise_says_so(settings, why):
    plan = SolvePlan("majority", DebateConfig.model_validate(settings), NUMBERS)
    assert no_noise(plan, PROBLEMS) == why


def test_one_persona_keeps_every_temperature():
    personas = [
        {"name": "A", "instructions": "a", "temperature": 0.3},
        {"name": "B", "instructions": "b", "temperature": 0.9},
    ]
    protocol = DebateConfig.model_validate({"num_agents": 3, "personas": personas})
    seated = one_persona(protocol).agent_personas
    assert [(one.instructions, one.temperature) for one in seated] == [("a", 0.3), ("a", 0.9), ("a", 0.3)]
    plan = SolvePlan("majority", protocol, NUMBERS)
    assert CONTROLS["one_persona"].why_not(plan, PROBLEMS) is None
    plan = SolvePlan("majority", one_persona(protocol), NUMBERS)
    assert CONTROLS["one_persona"].why_not(plan, PROBLEMS) == "all personas have the same instructions"
