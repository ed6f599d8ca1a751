"""Where the modes of other harnesses look, and that a grader compares under each as under its name."""

import pytest

from envs import Grader, extract
from envs.extraction.replies import formulas, joined, last_run


@pytest.mark.parametrize(
    ("text", "mode", "answer"),
    [
        ("#### 5\n#### 6", "gsm8k_strict_match", "5"),  # the first, as lm-eval takes it
        ("#### -1,200.50 dollars", "gsm8k_strict_match", "-1,200.50"),
        ("####5", "gsm8k_strict_match", None),
        ("5 apples, $3.20 each", "gsm8k_flexible_extract", "$3.20"),
        ("Final Answer: The final answer is $5$. I hope it is correct.", "minerva_exact", "$5$"),
        ("Final Answer: The final answer is $5$. I hope it is correct", "minerva_exact", "$5$"),
        ("Final Answer: The final answer is $5$. ", "minerva_exact", "$5$"),  # lm-eval adds the hope itself
        ("Final Answer: The final answer is\n$5$. I hope it is correct.", "minerva_exact", None),
        ("Final Answer: The final answer is 4. I hope it is correct. " * 2, "minerva_exact", "4"),
        ("Question: 3? #### 5", "gsm8k_strict_match", None),  # nothing was generated from "Question:" on
        ("Final Answer: The final answer is 4. Problem: 5", "minerva_exact", "4"),
        (r"\boxed{4} Final Answer: The final answer is $5$. I hope it is correct.", "math_verify", "$5$"),
        (r"\boxed{4} Final Answer: The final answer is $5$. I hope it is correct.", "lenient", "4"),
        (r"$y_1 = \boxed{4}$ and $y_2 = \boxed{5}$", "math_verify", r"\boxed{4}$ and $y_2 = \boxed{5}"),
        (r"\boxed{4} but then \boxed{5}", "math_verify", r"\boxed{5}"),
        ("the matrix is $x$, with $y>2$.", "math_verify", "y>2"),
        ("we know $x>2$, so there are 7", "math_verify", "7"),
        ("cela fait 2,74 $ a..", "math_verify", "2,74"),
        ("it pays $5 and then $6", "math_verify", "6"),
        ("it pays $5 and $6", "math_verify", "$5 and $6"),
        ("Answer: B", "first_letter", "A"),
        ("The final answer is 4.<|im_start|>user\nThe final answer is 5.", "math_verify", "4"),
        ("The answer is 7. Question: What is 2+2? Answer: 4", "lenient", "7"),
        ("Is the solution (1,3) or is it 5?", "lenient", None),
        ("It asks whether the solution is $(1,3)$ or not", "lenient", None),
        (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", "lenient", r"\begin{pmatrix} 1 & 2 \end{pmatrix}"),
    ],
)
def test_where_a_mode_looks(text, mode, answer):
    assert extract(text, mode=mode).answer == answer


def test_formulas_and_their_delimiters():
    text = r"$a$ and \(b\), \[c\] $$d$$ costs \$5, $unclosed"
    assert [span.of(text) for span in formulas(text)] == ["a", "b", "c", "d"]


def test_a_run_of_boxes():
    text = r"\boxed{1}, \boxed{\frac{1}{2}} \text{ and } \boxed{3}."
    group = last_run(text)
    assert group is not None
    assert joined(group.of(text)) == r"1, \frac{1}{2}, 3"
    assert joined("no box") == "no box"
    assert last_run("no box") is None


def test_a_gold_answer_of_several_boxes_is_a_list():
    with Grader(workers=1) as grader:
        assert grader.same_answer("1,2", r"\boxed{2} and \boxed{1}").status == "correct"
        assert grader.same_answer("1", r"\boxed{2} and \boxed{1}").status == "wrong"
        assert grader.same_answer("(x+1)^2, 2x", "y_1 = x^2+2x+1, y_2 = 2x").status == "correct"


def test_modes_of_comparison_do_not_share_a_cache():
    with Grader(workers=1) as grader:
        for mode, status in (("lenient", "correct"), ("hendrycks", "wrong"), ("lenient", "correct")):
            assert grader.same_answer("2,1", "1,2", mode=mode).status == status
        assert grader.same_answer("8/2", "4").status == "correct"
        assert grader.same_answer("8/2", "4", mode="prm800k").status == "wrong"
        assert grader.same_answer("5.0", "5", mode="gsm8k_strict_match").status == "wrong"


@pytest.mark.parametrize(
    ("answer", "gold", "status"),
    [
        (r"\sqrt{2}, 1", r"1, \sqrt{2}", "wrong"),
        (r"1, 2^{1/2}", r"1, \sqrt{2}", "correct"),
        ("y,x", "x,y", "wrong"),
        ("x<1, x>2", "x>2, x<1", "wrong"),
        ("(3,4), (1,2)", "(1,2), (3,4)", "wrong"),
        ("(1,2), (3.0,4)", "(1,2), (3,4)", "correct"),
        ("1,1,2", "1,2", "wrong"),
        (r"\{2,1\}", r"\{1,2\}", "wrong"),
        (r"(0,1) \cup (-3,-2)", r"(-3,-2) \cup (0,1)", "correct"),
    ],
)
def test_order_in_prm800k(answer, gold, status):
    with Grader(workers=1) as grader:
        assert grader.same_answer(answer, gold, mode="prm800k").status == status


def test_an_unknown_mode_is_named():
    with Grader(workers=1) as grader, pytest.raises(ValueError, match="mode: 'boxes' is not known"):
        grader.same_answer("5", "5", mode="boxes")
