"""Evaluation on instructions: by prompt and by instruction, and no majority of free responses."""

from __future__ import annotations

import pytest

from debate import DebateConfig, Problem
from debate.policies import ScriptedPolicy
from debate_rl.evaluation.play import EvalPlan, play
from debate_rl.evaluation.scores import scores
from debate_rl.metrics.answers import Answer, consensus
from envs import Grade, GradeStatus, load_environment
from envs.answers.keys import key_of

GOLD = '{"instruction_id_list": ["punctuation:no_comma", "startend:quotation"], "kwargs": [{}, {}]}'
CONFIG = DebateConfig(num_agents=3, num_rounds=2, final_ballot=False)
SAID = {
    (0, 0): '<solution>"Yes"</solution>',  # both followed
    (1, 0): "<solution>Yes</solution>",  # one of two
    (2, 0): "<solution>Yes, no",  # never closed: missing, so none
}
LATER = "<solution>Fine</solution><evaluation>-</evaluation><comparison></comparison>"


def test_both_accuracies():
    environment = load_environment("gsm8k")
    problem = Problem("p", "Write.", GOLD, kind="instructions")
    policy = ScriptedPolicy(SAID, default=LATER, tokens=True)
    found = scores(play(EvalPlan([problem], environment, CONFIG, (0,)), policy), key_of(environment))

    def figure(name: str) -> float:
        estimate = found.estimate(name)
        assert estimate is not None
        return estimate.value

    assert figure("debate/accuracy/round_0") == pytest.approx(1 / 3)
    assert figure("debate/accuracy/round_1") == 0.0
    assert figure("debate/instructions") == 0.5  # the last round: one of two, three times
    whole = [2, 1, 0] * found.samples
    assert figure("direct/instructions") == pytest.approx(sum(whole[: found.samples]) / (2 * found.samples))


def test_right_responses_are_not_one_answer():
    free = [Answer("a", True, free=True), Answer("b", True, free=True), Answer("c", False, free=True)]
    assert consensus(free) == pytest.approx(2 / 3)
    assert consensus([Answer("a", True), Answer("b", True), Answer("c", False)]) == 1.0
    assert consensus([*free, Answer("c", False, free=True)]) == 0.0  # the same wrong one twice


def test_responses_that_another_environment_grades_have_none_either():
    class Short:
        name = "short"

        def problems(self, *, split, limit=None, seed=None):
            return (Problem("p", "Be short.", "at most five letters", kind="instructions"),)

        def grade(self, problem, answer):
            right = answer is not None and len(answer) <= 5
            return Grade(GradeStatus.CORRECT if right else GradeStatus.WRONG, self.name, answer)

    policy = ScriptedPolicy({}, default="<solution>Fine.</solution>", tokens=True)
    plan = EvalPlan(Short().problems(split="test"), Short(), CONFIG, (0,))
    found = scores(play(plan, policy), key_of(Short()))
    assert found.estimate("direct/accuracy").value == 1.0
    assert found.estimate("direct/instructions") is None


def test_a_problem_of_another_kind_has_no_figure_by_instruction():
    environment = load_environment("gsm8k")
    policy = ScriptedPolicy({}, default="<solution>\\boxed{4}</solution>", tokens=True)
    plan = EvalPlan([Problem("p", "2 + 2?", "4", kind="number")], environment, CONFIG, (0,))
    assert not {name for name in scores(play(plan, policy), key_of(environment)).values if "instr" in name}
