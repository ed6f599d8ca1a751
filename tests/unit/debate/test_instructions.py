import asyncio

import pytest

from debate import DebateConfig, Problem, hold_debate
from debate.policies import ScriptedPolicy
from debate.prompting.texts import load_prompts

PROBLEM = Problem("p", "Write a title.", '{"instruction_id_list": [], "kwargs": []}', kind="instructions")
SILENT = "<evaluation>-</evaluation><comparison></comparison>"


def answers(reply: str, problem: Problem = PROBLEM) -> set[str | None]:
    config = DebateConfig(num_agents=2, num_rounds=2)
    debate = asyncio.run(hold_debate(problem, ScriptedPolicy({}, default=reply), config, seed=0))
    return {turn.parsed.answer for turn in debate.turns}


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (f"<solution>\n <<Joy>>\nof \\boxed{{4}}\n</solution>{SILENT}", "<<Joy>>\nof \\boxed{4}"),
        (f"<think>hm</think><solution>Fine.</solution>{SILENT}", "Fine."),
        (f"<solution>never closed {SILENT}", "never closed"),
        ("<solution>cut off by the end", None),
        (f"<solution> \n </solution>{SILENT}", None),
        ("Fine.", None),
    ],
)
def test_the_answer_is_the_whole_solution(reply, answer):
    assert answers(reply) == {answer}


def test_other_kinds_are_read_from_the_box():
    boxed = f"<solution>It is \\boxed{{Paris}}.</solution>{SILENT}"
    for kind in ("text", "verbatim", "number"):
        assert answers(boxed, Problem("p", "?", "Paris", kind=kind)) == {"Paris"}


def prompts_of(problem: Problem) -> list[str]:
    policy = ScriptedPolicy({}, default=f"<solution>x</solution>{SILENT}")
    asyncio.run(hold_debate(problem, policy, DebateConfig(num_rounds=2), seed=0))
    return [request.messages[-1].content for request in policy.requests if request.turn.round < 2]


def test_no_prompt_asks_for_a_box():
    rule = load_prompts("default").answer_whole
    assert "no box" in rule
    for prompt in prompts_of(PROBLEM):
        assert prompt.endswith(rule)
        assert "\\boxed" not in prompt
    assert all("\\boxed{answer}" in prompt for prompt in prompts_of(Problem("p", "?", "Paris", kind="text")))
