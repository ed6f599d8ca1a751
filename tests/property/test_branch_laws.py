"""A debate is a function of its seeds: held on from any turn without a change, it comes out the same."""

import asyncio
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from debate import DebateConfig, Problem, hold_debate
from debate.branch import NewPersona, NewText, branch_debate, needs_policy
from debate.personas import Persona
from debate.policies.scripted import Answers, ScriptedPolicy, scripted_debaters

PROBLEM = Problem("p", "2 + 2?", "4")
LONG = {"over": 8, "max_tokens": 8}
PROTOCOLS = (
    {"num_rounds": 3},
    {"num_rounds": 4, "min_rounds": 1},
    {"num_rounds": 2, "final_ballot": True, "ask_swapped": True},
    {"num_agents": 5, "num_rounds": 2, "final_ballot": True, "ballot": "swiss"},
    {"num_rounds": 3, "summary": {"enabled": True}},
    {"num_rounds": 3, "compress": LONG},
    {"protocol": "critique", "num_rounds": 3, "final_ballot": True},
    {"protocol": "zero_sum", "num_agents": 4, "num_rounds": 1, "final_ballot": True},
)


@st.composite
def held(draw):
    """A debate with its policy, and one of its turns."""
    config = DebateConfig(**draw(st.sampled_from(PROTOCOLS)))
    debaters = scripted_debaters({"p": Answers("4", ("5", "6"))}, malformed=0.1)

    def say(request):  # also for the summarizer and the compressor
        if request.turn.agent < 0:
            return f"{request.seed % 100}"
        return debaters._reply(request)

    policy = ScriptedPolicy(say, tokens=True)
    debate = asyncio.run(hold_debate(PROBLEM, policy, config, seed=draw(st.integers(0, 999))))
    return debate, policy, draw(st.sampled_from(debate.turns)).id


@settings(deadline=None, max_examples=60)
@given(held())
def test_without_a_change_the_same_debate_comes_out_and_earlier_turns_are_not_asked_for(drawn):
    debate, policy, turn = drawn
    policy.requests.clear()
    assert asyncio.run(branch_debate(debate, turn, None, policy)) == debate
    asked = [request.turn for request in policy.requests if request.turn.agent >= 0]
    again = [one for one in asked if one.round < debate.protocol.num_rounds]
    assert all((one.round, one.agent) > (turn.round, turn.agent) for one in again)

    same = NewPersona(debate.personas[turn.agent])  # also holds the turn itself again
    assert asyncio.run(branch_debate(debate, turn, same, policy)) == debate
    assert turn in [request.turn for request in policy.requests]


@settings(deadline=None, max_examples=60)
@given(held(), st.sampled_from(("\\boxed{9}", "<solution>\\boxed{9}</solution>", "")))
def test_a_changed_text_keeps_what_did_not_read_it(drawn, text):
    debate, policy, turn = drawn
    branch = asyncio.run(branch_debate(debate, turn, NewText(text), policy))
    assert branch.turn(turn).completion.text == text
    before = [one for one in debate.turns if one.id.round < turn.round]
    assert list(branch.turns[: len(before)]) == before
    assert (branch.seed, branch.problem, branch.personas) == (debate.seed, PROBLEM, debate.personas)
    if not needs_policy(debate, turn, NewText(text)):
        assert [one for one in branch.turns if one.id != turn] == [
            one for one in debate.turns if one.id != turn
        ]


@settings(deadline=None, max_examples=20)
@given(held())
def test_another_persona_is_given_from_its_turn_on(drawn):
    debate, policy, turn = drawn
    policy.requests.clear()
    other = Persona("Doubter", "Doubt it.", 0.25)
    branch = asyncio.run(branch_debate(debate, turn, NewPersona(other), policy))
    assert branch.personas == tuple(
        other if agent == turn.agent else one for agent, one in enumerate(debate.personas)
    )
    own = [one for one in policy.requests if one.turn.agent == turn.agent and one.turn.round >= turn.round]
    assert own
    assert {one.temperature for one in own} == {0.25}
    earlier = [one for one in debate.turns if one.id.round < turn.round]
    assert [one for one in branch.turns if one.id.round < turn.round] == earlier
    assert replace(branch, turns=(), votes=()).protocol.num_agents == debate.protocol.num_agents
