"""Evaluation on instructions: by prompt and by instruction, and no majority of free responses."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import DebateConfig, Problem
from debate.policies import ScriptedPolicy
from debate_rl.evaluation.play import EvalPlan, play
from debate_rl.evaluation.scores import scores
from debate_rl.metrics.answers import Answer, best_of_k, consensus, pass_at_k
from envs import load_environment
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


def test_the_best_of_k_is_measured_in_parts():
    """Solutions follow both, one and none of two instructions, twice."""
    environment = load_environment("gsm8k")
    problem = Problem("p", "Write.", GOLD, kind="instructions")
    config = DebateConfig(num_agents=1, num_rounds=1)
    said = iter([SAID[0, 0], SAID[1, 0], "<solution>Yes, no</solution>"] * 2)
    policy = ScriptedPolicy(lambda request: next(said), tokens=True)
    plan = EvalPlan([problem], environment, config, (0,), samples=6, direct=True)
    found = scores(play(plan, policy), key_of(environment))
    assert found.values["direct/score"]["p"] == [1.0, 0.5, 0.0] * 2
    assert found.values["direct/score@2"]["p"] == [pytest.approx((9 * 1.0 + 5 * 0.5 + 1 * 0.0) / 15)]
    assert found.values["direct/score@6"]["p"] == [1.0]
    assert found.values["direct/pass@2"]["p"] == [pytest.approx(9 / 15)]


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=7), st.data())
def test_the_best_of_k_is_the_mean_over_all_choices(values, data):
    k = data.draw(st.integers(1, len(values)))
    choices = [max(choice) for choice in combinations(values, k)]
    assert best_of_k(values, k) == pytest.approx(fmean(choices))
    binary = [float(value == 1.0) for value in values]
    assert best_of_k(binary, k) == pytest.approx(pass_at_k(len(binary), int(sum(binary)), k))


def test_right_responses_are_not_one_answer():
    free = [Answer("a", True, free=True), Answer("b", True, free=True), Answer("c", False, free=True)]
    assert consensus(free) == pytest.approx(2 / 3)
    assert consensus([Answer("a", True), Answer("b", True), Answer("c", False)]) == 1.0
    assert consensus([*free, Answer("c", False, free=True)]) == 0.0  # the same wrong one twice
