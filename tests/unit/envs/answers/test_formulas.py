"""Formulas by value, structures by part, and the bounds that keep both cheap."""

import pytest

from envs.answers.formulas import NO_VALUE, TooLarge, parse_formula
from envs.answers.parts import parts_of
from envs.answers.structures import same_structure
from envs.grading.limits import heavier, refusal


@pytest.mark.parametrize(
    "text", ["((2^{9999})^{9999})^{9999}", r"\exp(\exp(\exp(9)))", "99999!", r"\binom{10^9}{5}"]
)
def test_what_would_grow_without_bound_is_too_large(text):
    formula = parse_formula(text)
    assert formula is not None
    with pytest.raises(TooLarge):
        formula(0)


def test_what_has_no_value_is_unknown():
    for text in ("1/(2-2)", r"\log_{1} 5", r"\ln 0", "(x+1)!", "(-1)!"):
        formula = parse_formula(text)
        assert formula is not None
        with pytest.raises(NO_VALUE):
            formula(0)


def test_parts():
    for text in ("5", "(5)", "f(x, y)", "1,200"):
        assert parts_of(text) is None
    assert parts_of(r"\{(1,2),(3,4)\}").items == ("(1,2)", "(3,4)")
    assert parts_of("(1,2),(3,4)").kind == "list"
    assert parts_of(r"\begin{pmatrix}1&2\\3&4\\\end{pmatrix}").kind == "matrix 2"
    assert parts_of(r"\pm 3").items == ("+ 3", "- 3")


def test_an_answer_far_heavier_than_the_gold_answer():
    assert heavier("(a+b)^{9} < 1", "x < 1") == "power"
    assert heavier("(a+b)^{9} < 1", "(a+c)^{9} < 1") is None
    assert heavier("x^x < 1", "x < 1") == "variable exponent"
    assert heavier("((((((x))))))<1", "x<1") == "nesting"
    assert heavier("x" * 400, "x<1") == "length"
    assert heavier(r"\sin\sin\sin\sin\sin\sin\sin x<1", "x<1") == "functions"
    assert heavier(r"-\frac{7}{2} \leq x < \sqrt{3}", "x<1") is None


def test_texts_beyond_the_bounds():
    assert parse_formula("x" * 401) is None
    assert refusal("x" * 1001) == "length"
    many = ",".join("1" * 30)
    assert same_structure(f"({many})", f"({','.join('2' * 30)})") is None
