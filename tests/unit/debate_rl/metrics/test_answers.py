"""Figures of sources and of instructions by hand; no majority of free responses."""

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debate import DebateConfig, Problem
from debate.policies import ScriptedPolicy
from debate_rl.evaluation.play import EvalPlan, play
from debate_rl.evaluation.scores import scores
from debate_rl.metrics import answers
from debate_rl.metrics.answers import Answer, consensus, score_metrics, source_metrics, sources_of
from envs import load_environment
from envs.answers.keys import key_of
from rewards import Rewards


def problems(*sources):
    return [Problem(str(index), "?", source=source) for index, source in enumerate(sources)]


def test_names_of_sources():
    assert sources_of(problems("gsm8k", "gsm8k")) == {}
    subjects = {"m/Counting & Probability": "counting_and_probability", "m/Algebra": "algebra"}
    assert sources_of(problems(*subjects)) == subjects
    assert sources_of(problems("gsm8k", "math/algebra")) == {"gsm8k": "gsm8k", "math/algebra": "math_algebra"}
    assert sources_of(problems("m", "m/x", "")) == {"m": "m", "m/x": "m_x", "": "none"}
    assert sources_of(problems("m/ü, é", "m/b")) == {"m/ü, é": "___", "m/b": "b"}
    assert len(sources_of(problems(*(f"m/{n}" for n in range(answers.MOST))))) == answers.MOST
    assert sources_of(problems(*(f"m/{n}" for n in range(answers.MOST + 1)))) == {}


@pytest.fixture
def batch(step_records):
    """Two debates of source a (one problem) and one of b, with their tables (3, 2)."""
    held = [record.debate for record in step_records(0)[:3]]
    sources = ("set/a", "set/a", "set/b")
    debates = [
        replace(debate, problem=replace(debate.problem, id=source, source=source))
        for debate, source in zip(held, sources, strict=True)
    ]
    tables = [
        ((True, False), (False, False), ("missing", None)),
        ((True, True), (True, False), (False, False)),
        ((False, False),) * 3,
    ]
    return debates, tables


def test_figures_of_two_sources(batch):
    debates, tables = batch
    nothing = ((None, None, None),) * 3
    truths = [((one, other), (None, None), (None, None)) for one, other in ((1.0, 0.0), (0.5, None))]
    rewards = [Rewards((), truth, nothing, nothing) for truth in (*truths, ())]
    figures = source_metrics(debates, tables, rewards, {"set/a": "a", "set/b": "b"})
    of_a = {"share": 2 / 3, "accuracy": 4 / 11, "pass@11": 1.0, "reward/truth": 0.5}
    of_b = {"share": 1 / 3, "accuracy": 0.0, "pass@6": 0.0}
    wanted = {f"{name}/source/a": value for name, value in of_a.items()}
    assert figures == pytest.approx(wanted | {f"{name}/source/b": value for name, value in of_b.items()})
    assert source_metrics(debates, tables, rewards, {}) == {}
    assert source_metrics([], [], [], {"set/a": "a"}) == {}


def test_a_missing_solution_has_none_of_it_right(batch):
    debates, tables = batch
    turns = tuple(replace(turn, score=0.5) if turn.id == (0, 0) else turn for turn in debates[0].turns)
    measured = replace(debates[0], turns=turns)
    assert score_metrics([measured], tables[:1]) == {"score": pytest.approx(0.5 / 5)}
    assert score_metrics(debates, tables) == {}
    told = replace(debates[2], problem=replace(debates[2].problem, kind="instructions"))
    assert score_metrics([told], tables[2:]) == {"score": 0.0}
    assert score_metrics([told], [None]) == {}


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

    whole = [2, 1, 0] * found.samples
    wanted = {"debate/accuracy/round_0": 1 / 3, "debate/accuracy/round_1": 0.0}
    wanted |= {"debate/instructions": 0.5}  # the last round: one of two, three times
    wanted |= {"direct/instructions": sum(whole[: found.samples]) / (2 * found.samples)}
    assert {name: found.estimate(name).value for name in wanted} == pytest.approx(wanted)


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
    assert answers.best_of_k(values, k) == pytest.approx(fmean(choices))
    binary = [float(value == 1.0) for value in values]
    assert answers.best_of_k(binary, k) == pytest.approx(answers.pass_at_k(len(binary), int(sum(binary)), k))


def test_right_responses_are_not_one_answer():
    free = [Answer("a", True, free=True), Answer("b", True, free=True), Answer("c", False, free=True)]
    assert consensus(free) == pytest.approx(2 / 3)
    assert consensus([Answer("a", True), Answer("b", True), Answer("c", False)]) == 1.0
    assert consensus([*free, Answer("c", False, free=True)]) == 0.0  # the same wrong one twice
