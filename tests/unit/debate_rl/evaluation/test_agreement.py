"""Who agrees: the answers that are graded, by the keys of a majority."""

from __future__ import annotations

import asyncio

import pytest

from debate import DebateConfig, Problem, hold_debate
from debate.policies import ScriptedPolicy
from debate_rl.evaluation.grading import agreement, grade_debate
from envs import load_environment
from envs.registry import Mixture

DATA = load_environment("gsm8k")
NUMBER = Problem("p", "How many?", "1200", kind="number")


def spoken(solutions, problem, **config):
    """The turns of a round in which the agents write these solutions."""
    settings = DebateConfig(num_agents=len(solutions), num_rounds=1, final_ballot=False, **config)
    policy = ScriptedPolicy(lambda request: solutions[request.turn.agent])
    return asyncio.run(hold_debate(problem, policy, settings, seed=0))


@pytest.mark.parametrize(
    ("answers", "problem", "expected"),
    [
        (("1,200", "1200.0", "x = 1200"), NUMBER, True),
        (("1,200", "1200.5"), NUMBER, False),
        ((r"\dfrac{1}{2}", "0.5"), NUMBER, True),
        ((r"\sqrt{8}", r"2\sqrt{2}"), NUMBER, False),
        (("(B)", "b"), Problem("c", "?", "B", kind="choice", choices=("1", "2", "3")), True),
        (("Paris ", "the paris"), Problem("t", "?", "Paris", kind="text"), True),
        (("Paris", "paris"), Problem("v", "?", "Paris", kind="verbatim"), False),
    ],
)
def test_boxes_agree_where_a_majority_counts_them_together(answers, problem, expected):
    debate = spoken([f"<solution>\\boxed{{{answer}}}</solution>" for answer in answers], problem)
    assert agreement(DATA)(problem, debate.turns) is expected
    assert agreement(Mixture({"a": DATA}, {problem.id: "a"}))(problem, debate.turns) is expected


def test_an_answer_is_what_the_graders_mode_finds():
    texts = ["<solution>It is \\boxed{3}.\n#### 7</solution>", "<solution>\\boxed{4}\n#### 7.0</solution>"]
    debate = spoken(texts, NUMBER)
    assert not agreement(DATA)(NUMBER, debate.turns)
    assert agreement(DATA, "gsm8k_strict_match")(NUMBER, debate.turns)
    graded, _ = grade_debate(DATA, debate, mode="gsm8k_strict_match")
    assert [turn.parsed.answer for turn in graded.turns] == ["7", "7.0"]


def test_whole_responses_agree_as_texts_and_a_missing_answer_with_nobody():
    essay = Problem("e", "Write.", "a text", kind="overlap")
    same = ["<solution>A poem.</solution>", "<solution> A poem. </solution>"]
    assert agreement(DATA)(essay, spoken(same, essay).turns)
    assert not agreement(DATA)(essay, spoken([same[0], "<solution>A song.</solution>"], essay).turns)
    for missing in ("<solution>no box</solution>", "nothing", "<solution>\\boxed{1200}"):
        debate = spoken(["<solution>\\boxed{1200}</solution>", missing], NUMBER)
        agreed = agreement(DATA)(NUMBER, debate.turns)
        assert agreed is (debate.turns[1].parsed.answer is not None)
    assert not agreement(DATA)(NUMBER, spoken(["nothing", "nothing"], NUMBER).turns)


def test_untagged_replies_agree_by_what_is_graded_of_them():
    debate = spoken(["It is \\boxed{5}.", "\\boxed{5.0} it is"], NUMBER, untagged=True)
    assert agreement(DATA)(NUMBER, debate.turns)


@pytest.mark.parametrize("gold", ["3, 5", "5"])
def test_the_answer_of_a_hidden_problem_is_the_same_whatever_its_gold_answer(gold):
    """All boxes are the answer where the gold answer has as many parts: that tells who is right."""
    problem = Problem("p", "Which two?", gold, kind="expression")
    text = "<solution>One is \\boxed{3}. It takes more to see that the other one is \\boxed{5}.</solution>"
    debate = spoken([text], problem)
    seen, hidden = (grade_debate(DATA, debate, mode="lenient", hidden=hidden) for hidden in (False, True))
    assert seen[1] == hidden[1] == ((True,),)
    assert seen[0].turns[0].parsed.answer == gold
    assert hidden[0].turns[0].parsed.answer == "5"
