"""Where the modes of other harnesses look, and that a grader compares under each as under its name."""

import pytest

from envs import Grader
from envs.grading.extraction import formulas, joined, last_run
from envs.grading.strictness import math_spelling


def test_formulas_and_their_delimiters():
    text = r"$a$ and \(b\), \[c\] $$d$$ costs \$5, $unclosed"
    assert [span.of(text) for span in formulas(text)] == ["a", "b", "c", "d"]


def test_a_run_of_boxes():
    text = r"\boxed{1}, \boxed{\frac{1}{2}} \text{ and } \boxed{3}."
    assert joined(last_run(text).of(text)) == r"1, \frac{1}{2}, 3"
    assert joined("no box") == "no box"
    assert last_run("no box") is None


def test_a_gold_answer_of_several_boxes_is_a_list():
    with Grader(workers=1) as grader:
        assert grader.same_answer("1,2", r"\boxed{2} and \boxed{1}").status == "correct"
        assert grader.same_answer("1", r"\boxed{2} and \boxed{1}").status == "wrong"
        assert grader.same_answer("(x+1)^2, 2x", "y_1 = x^2+2x+1, y_2 = 2x").status == "correct"


def test_modes_of_comparison_do_not_share_a_cache_and_an_unknown_one_is_named():
    with Grader(workers=1) as grader:
        for mode, status in (("lenient", "correct"), ("hendrycks", "wrong"), ("lenient", "correct")):
            assert grader.same_answer("2,1", "1,2", mode=mode).status == status
        assert grader.same_answer("8/2", "4").status == "correct"
        assert grader.same_answer("8/2", "4", mode="prm800k").status == "wrong"
        assert grader.same_answer("5.0", "5", mode="gsm8k_strict_match").status == "wrong"
        with pytest.raises(ValueError, match="mode: 'boxes' is not known"):
            grader.same_answer("5", "5", mode="boxes")


def test_texts_that_the_rules_of_hendrycks_trip_over():
    for text in (r"3\text{ cm}\text{ wide}", r"5\sqrt", r"\frac", "x/2"):
        with pytest.raises(ValueError, match=r"unit|nothing|int"):
            math_spelling(text)
