"""The normal forms of two published graders, worked out by hand from their rules."""

import pytest

from envs import Grader
from envs.grading.strictness import math_spelling, minerva_spelling


@pytest.mark.parametrize(
    ("text", "form"),
    [
        *((r"\dfrac{1}{2}", r"\frac{1}{2}"), (r"\frac1b", r"\frac{1}{b}"), (r"\frac1{72}", r"\frac{1}{72}")),
        *((r"2\sqrt3", r"2\sqrt{3}"), ("k = 5", "5")),
        ("sum = 5", "sum=5"),  # a name of more than two characters stays
        *(("a=b=5", "a=b=5"), ("-1/2", r"\frac{-1}{2}"), ("1/2/3", "1/2/3"), (".5", r"\frac{1}{2}")),
        *((r"50\%", "50"), ("50%", "50%"), (r"12\text{ cm}^2", "12"), (r"12\text{cm}", r"12\text{cm}")),
        *((r"\left( 1, 2 \right)", "(1,2)"), (r"90^\circ", "90"), (r"\$5", "5"), ("", "")),
    ],
)
def test_maths_own_form(text, form):
    assert math_spelling(text) == form


@pytest.mark.parametrize("text", [r"3\text{ cm}\text{ wide}", r"5\sqrt", r"\frac", "x/2"])
def test_text_that_maths_rules_trip_over(text):
    with pytest.raises(ValueError, match=r"unit|nothing|int"):
        math_spelling(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        *(("$x = 5$", "5"), (r"$\frac12$", r"\frac{1}{2}"), (r"\sqrt3", r"\sqrt{3}")),
        *((r"\sqrt[3]8", r"\sqrt[3]{8}"), ("12 square units", "12"), (r"2\pi cm", r"2\pi")),
        (r"\left(1,2\right)", r"\left(1,2\right)"),  # "ft" of \left stays
        *((r"12\text{ m}", "12"), (r"\text{Evelyn}", "Evelyn"), (r"90^{\circ}", "90"), ("1,200", "1200")),
        *(("1,20", "1,20"), ("0,1", "0,1")),
        ("it is $5$ and $6$", "5"),  # the first formula of the line
        *((r"$\boxed{7}.$", "7"), ("1{,}200", "1200"), (r"50\%", r"50\%")),
        ("$$5$$", ""),  # nothing stands between the first two dollars
        (r"\text{\text{a}b}", r"\text{ab}"),  # up to the first closing brace
        (r"\textbf{a}\overline{b}\text{c", r"ab\text{c"),
        (r"\boxed{a}\boxed{b}c", r"a}\boxed{bc"),  # up to the last one
        (r"sqrt[sqrt[3]8sqrt[2]", "sqrt[sqrt[3]{8}sqrt[2]"),
        ("\\text{a\nb}", "\\text{a\nb}"),  # within a line
    ],
)
def test_minervas_form(text, form):
    assert minerva_spelling(text) == form


@pytest.mark.parametrize(
    ("answer", "gold", "mode", "status"),
    [
        ("9 units", "9", "hendrycks", "wrong"),  # only "\text{ units}" is a unit there
        *((r"\frac{10}{9}", "10/9", "hendrycks", "correct"), ("x/2", "x/2", "hendrycks", "correct")),
        *(("9 units", "9", "minerva_exact", "correct"), (r"\frac{2}{4}", "0.5", "minerva_exact", "correct")),
        *(("x+1", "1+x", "minerva_exact", "correct"), (r"50\%", "50", "minerva_exact", "wrong")),
        *(("2,1", "1,2", "minerva_exact", "wrong"), ("(1,2)", "(1,2)", "minerva_exact", "correct")),
        (r"(1,2)", r"\left(1,2\right)", "minerva_exact", "wrong"),
        ("$$5$$", "$$5$$", "minerva_exact", "wrong"),  # both normalise to nothing
        ("9^9^9^9", "9^9^9^9", "minerva_exact", "wrong"),
        ("$1,200.,", "1200", "gsm8k_flexible_extract", "correct"),  # commas go first, then one last point
        ("1,200..", "1200", "gsm8k_flexible_extract", "wrong"),
        ("5", "2 + 3 = 5\n#### 5", "gsm8k_strict_match", "correct"),
        ("5.0", "5", "prm800k", "correct"),  # it writes a whole decimal as an integer first
        ("1/2", r"\frac{1}{2}", "prm800k", "correct"),  # two ways to write one form
        *(("2/4", r"\frac{1}{2}", "prm800k", "wrong"), ("5.1", "5", "prm800k", "wrong")),
        (r"x \approx 11", "11", "math_verify", "correct"),
    ],
)
def test_verdicts_of_published_graders(answer, gold, mode, status):
    with Grader(workers=1) as grader:
        assert grader.same_answer(answer, gold, mode=mode).status == status
