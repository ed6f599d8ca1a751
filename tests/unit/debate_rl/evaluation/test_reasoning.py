"""What of a solution a reader sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.types import Problem
from debate_rl.evaluation.grading import gold_of, reasoning_of

SUM = Problem("p", "3 + 4?", "7", kind="number")


@pytest.mark.parametrize(
    ("mode", "text", "seen"),
    [
        ("boxed", r"3 + 4 = 7. \boxed{7}", "3 + 4 = 7."),
        ("boxed", r"So the final answer is $\boxed{7}$.", ""),
        ("boxed", r"First \boxed{6}, no: 3 + 4 = 7. Hence \(\boxed{7}\)", r"First \boxed{6}, no: 3 + 4 = 7."),
        ("boxed", "3 + 4 = 7", "3 + 4 = 7"),
        ("boxed", "", ""),
        ("lenient", "3 + 4 = 7\n#### 7", "3 + 4 = 7"),
        ("lenient", "We add. The answer is 7.", "We add."),
        ("lenient", "So we have 7", "So we have"),
    ],
)
def test_the_final_answer_and_what_leads_to_it_are_left_out(mode, text, seen):
    assert reasoning_of(text, SUM, mode) == seen


def test_a_letter_of_options_is_found_as_the_grader_finds_it():
    problem = Problem("p", "Which?", "B", kind="choice", choices=("red", "blue"))
    assert reasoning_of("The sky is blue. Answer: B", problem, "lenient") == "The sky is blue."


@given(st.text(max_size=300))
def test_it_is_the_beginning_of_the_solution_and_never_raises(text):
    for mode in ("boxed", "lenient"):
        assert text.startswith(reasoning_of(text, SUM, mode))


@given(st.sampled_from(["the answer is ", "$", "{", "so, ", r"\boxed", " "]), st.integers(1, 20_000))
def test_long_leads_cost_linear_time(piece, count):
    assert reasoning_of(piece * count + r"\boxed{1}", SUM) is not None


def test_the_gold_answer_is_that_of_the_problem_or_the_first_of_several():
    assert gold_of(SUM) == "7"
    assert gold_of(Problem("p", "?", "Paris\nparis, France", kind="text")) == "Paris"
    assert gold_of(Problem("p", "?", "rules", kind="instructions")) is None
    assert gold_of(Problem("p", "?", kind="open")) is None
