import asyncio
from dataclasses import replace

import pytest

from debate import DebateConfig, Problem, hold_debate
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.fitting import Cut
from debate.prompting.prompt import agent_prompt
from debate.prompting.rendering import raw_prompt
from debate.prompting.seating import seat_debate
from debate.prompting.texts import PromptFileError
from debate.types import Message, Shot

PROBLEM = Problem("p", "Is x<y>z?", "18")
SHOT = Shot("1 + 1?", "It is 2.", "2")


def prompt(problem=PROBLEM, **config):
    config = DebateConfig(num_agents=1, num_rounds=1, **config)
    return agent_prompt(seat_debate(problem, config, 0), (), 0, 0, Cut())


def raw(family, problem=PROBLEM):
    return raw_prompt(prompt(problem, prompts=family).messages, family)


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("qa", "Question: Is x<y>z?\nAnswer:"),
        ("q_a", "Q: Is x<y>z?\nA:"),
        ("problem_solution", "Problem: Is x<y>z?\n\nSolution:"),
        ("minerva", "Problem:\nIs x<y>z?\n\nSolution:"),
        ("hendrycks", "Problem: Is x<y>z?\nAnswer:"),
        ("plain", "Is x<y>z?"),
    ],
)
def test_a_base_model_reads_exactly_this(family, text):
    assert raw(family) == text


def test_an_example_is_a_turn_of_its_own():
    shown = replace(PROBLEM, shots=(SHOT,))
    assert raw("qa", shown) == ("Question: 1 + 1?\nAnswer: It is 2.\n#### 2\n\nQuestion: Is x<y>z?\nAnswer:")
    last = "Final Answer: The final answer is $2$. I hope it is correct."
    assert raw("minerva", shown).startswith(f"Problem:\n1 + 1?\n\nSolution: It is 2.\n{last}\n\nProblem:")
    assert [m.role for m in prompt(shown, prompts="boxed").messages] == ["user", "assistant", "user"]
    assert prompt(shown, prompts="boxed").messages[1] == Message(
        "assistant", "It is 2.\n\nThe answer is \\boxed{2}."
    )


def test_the_debates_examples_keep_to_its_form():
    config = DebateConfig(num_agents=3)
    seating = seat_debate(replace(PROBLEM, shots=(SHOT,)), config, 0)
    system, question, reply, own = agent_prompt(seating, (), 0, 0, Cut()).messages
    assert (system.role, question.role, reply.role, own.role) == ("system", "user", "assistant", "user")
    assert reply.content == "<solution>\nIt is 2.\n\nThe answer is \\boxed{2}.\n</solution>"
    assert question.content.partition("1 + 1?")[2] == own.content.partition("z?")[2]


def test_a_system_text_stands_where_the_family_has_one():
    [system, user] = prompt(prompts="boxed_system").messages
    assert (system.role, user.content) == ("system", "Is x<y>z?")
    assert len(prompt(prompts="boxed").messages) == 1


def test_a_family_is_for_one_agent_in_one_round():
    for size in ({"num_agents": 3}, {"num_agents": 1, "num_rounds": 2}):
        with pytest.raises(PromptFileError, match=r"debate\.prompts = 'qa' is for one agent in one round"):
            seat_debate(PROBLEM, DebateConfig(prompts="qa", **size), 0)


def test_a_reply_ends_before_the_stop_string_that_ended_it():
    policy = ScriptedPolicy({}, default="It is \\boxed{18}.\n\nQuestion:")
    config = DebateConfig(num_agents=1, num_rounds=1, prompts="qa")
    [turn] = asyncio.run(hold_debate(PROBLEM, policy, config, seed=0)).turns
    assert turn.parsed.solution is not None
    assert turn.parsed.solution.of(turn.completion.text) == "It is \\boxed{18}.\n\n"
