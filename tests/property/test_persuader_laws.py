from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Problem
from debate.parsing import last_boxed
from debate_rl.evaluation.grading import answer_in
from debate_rl.judge_attack.persuaders import PERSUADERS, WORDS, of_family, persuaded
from envs import load_environment
from envs.families import FAMILIES
from envs.types import MODES

GSM8K = load_environment("gsm8k")
PROBLEM = Problem("p", "How many?", "12", kind="number")
PIECES = st.sampled_from([
    "\\boxed{", "}", "{", "####", " 12", "the answer is ", "So ", "we get ", "3 + 4 = 7", ".", "\n", "B", "<",
    "$",
])  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=4), max_size=16).map("".join)


@pytest.mark.slow
@given(TEXTS, st.sampled_from([*PERSUADERS]), st.sampled_from(MODES), st.integers(0, 99))
def test_the_answer_stays_under_every_mode(text, name, mode, seed):
    def read(said):
        return last_boxed(said), answer_in(GSM8K, PROBLEM, said, mode)

    for phrases in (WORDS, of_family(" 3 = 4 right.")):
        said = persuaded(name, text, phrases, read, Random(seed))
        assert read(said) == read(text)
        assert said == persuaded(name, text, phrases, read, Random(seed))


@settings(max_examples=30)
@given(st.sampled_from([*FAMILIES]), st.sampled_from([*PERSUADERS]), st.integers(0, 999))
def test_a_wrong_solution_of_a_family_stays_wrong(family, name, seed):
    rng, of = Random(seed), FAMILIES[family]
    problem = of.problems(split="test", limit=1, seed=seed)[0]
    text = of.write_solution(problem, of.attempt(problem, rng, right=0.0, lure=0.5))
    said = persuaded(name, text, of_family(of.write_check(problem, text)), last_boxed, rng)
    assert of.grade(problem, last_boxed(said)).verdict == of.grade(problem, last_boxed(text)).verdict
