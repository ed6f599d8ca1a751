"""Formulas by value, structures by part, and the bounds that keep both cheap."""

import pytest

from envs.answers.formulas import NO_VALUE, TooLarge, parse_formula, same_value
from envs.answers.notation import clean
from envs.answers.parts import parts_of
from envs.answers.structures import same_structure
from envs.grading.limits import heavier

EQUAL = [
    *((r"\sqrt{117}", r"3\sqrt{13}"), (r"\frac12+\frac{\sqrt5}{2}", r"\frac{1+\sqrt{5}}{2}")),
    *(("2*sqrt(3)", r"2\sqrt{3}"), ("√12", r"2\sqrt3"), (r"\sqrt[3]{-8}", "-2"), ("(a+b)(a-b)", "a^2-b^2")),
    *((r"\frac{\sin x}{\cos x}", r"\tan x"), (r"2\sin x\cos x", r"\sin 2x"), (r"\sec^2(y)", r"\tan^2(y)+1")),
    *((r"\sin 30°", r"\frac{1}{2}"), (r"\log_2(8)", "3"), (r"\frac{\ln 3}{\ln 2}", r"\log_2 3")),
    *((r"e^{2x}", r"\exp(2x)"), (r"\sqrt{2}e^{i\pi/4}", "1+i"), (r"\binom{5}{2}", "10"), ("5!", "120")),
    *((r"17 \bmod 5", "2"), (r"\lfloor \pi \rfloor", "3"), ("|3-5|", "2"), ("x_1+x_2", "x_{2}+x_{1}")),
    *(("x+.0", "x"), ("x+.50", r"x+\frac12"), ("2^{-n}", r"\frac{1}{2^n}"), (r"x\sqrt{x}", "x^{3/2}")),
]
DIFFERENT = [
    *(("x+1", "x+2"), ("x", "y"), ("R", "r"), ("x_1", "x_2"), ("3.14159265358979", r"\pi"), ("-i", "i")),
    *(("2x-3", "2x+3"), ("9^{9^{9}}", "5"), ("10^{9999}!", "x"), (r"\sin(10^{5000})", "5")),
    ("1." + "0" * 58 + "1", "1"),
]
UNDECIDED = [
    ("|x|", "x"),  # equal where x is positive alone
    *((r"\sqrt{x^2}", "x"), ("1/0", "5"), ("0^0", "1"), (r"\int x dx", "5"), ("f()", "f()")),
    *(("x < 1", "x < 1"), ("sinx", "x")),
    (r"2\frac{1}{2}", "1"),  # a mixed number or a product
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal(left, right):
    left, right = clean(left), clean(right)
    assert same_value(left, right) is True
    assert same_value(right, left) is True


@pytest.mark.parametrize(("answer", "gold"), DIFFERENT)
def test_different(answer, gold):
    assert same_value(answer, gold) is False


@pytest.mark.parametrize(("answer", "gold"), UNDECIDED)
def test_undecided(answer, gold):
    assert same_value(answer, gold) is None


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


@pytest.mark.parametrize(
    "text", ["", "+", "2+", "(1", "1)", "5 5", "--5", "5^", r"\frac{1}", "x" * 401, "5_6", "5,6", "5}"]
)
def test_not_of_the_grammar(text):
    assert parse_formula(text) is None


def test_parts():
    assert parts_of("5") is None
    assert parts_of("(5)") is None
    assert parts_of("f(x, y)") is None
    assert parts_of("1,200") is None
    assert parts_of(r"\{(1,2),(3,4)\}").items == ("(1,2)", "(3,4)")
    assert parts_of("(1,2),(3,4)").kind == "list"
    assert parts_of(r"\begin{pmatrix}1&2\\3&4\\\end{pmatrix}").kind == "matrix 2"
    assert parts_of(r"\pm 3").items == ("+ 3", "- 3")


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        *(("(1,2),(3,4)", "(3,4),(1,2)", True), ("(1,2),(4,3)", "(3,4),(1,2)", False)),
        *(("(1,2)", "(1,2),(3,4)", False), ("1,1,2", "2,1", True), ("1,2,x<3", "1,2", False)),
        *((r"\{81,256\}", "81, 256", True), (r"\{1,200\}", r"\{1,200\}", True)),
        (r"\{(-\infty,0),(1,\infty)\}", r"(-\infty,0)\cup(1,\infty)", False),
        *((r"x=2, y=\infty", r"(2,\infty)", False), ("(1,x<2)", "(1,2)", False)),
        ("(2,x<2)", "(1,2)", False),  # one part that differs is enough
        *((r"(-\infty,0)", r"(\infty,0)", False), (r"[1,2] \cup [3,4]", r"[3,4] \cup [1,2]", True)),
        *((",".join("1" * 30), "1,2", False), ("5", r"\begin{pmatrix}1\\2\end{pmatrix}", None)),
        *(("(200,100)", "(100,200)", False), ("100,200", "(100,200)", True)),
        *((r"\{100,200\}", "(100,200)", False), ("((1,2))", "(1,2)", True), ("y=2, x=1", "(1,2)", True)),
        *(("y=1, x=2", "(1,2)", False), ("x=1 and y=2", "(1,2)", True), ("(2,1)", "y=1, x=2", True)),
        *(("1 and 2", "(1,2)", False), ("AB=4, CD=9", "AB=9, CD=4", False)),
        *(("CD=4, AB=9", "AB=9, CD=4", True), (r"r=2, \theta=\pi", r"(2,\pi)", True)),
        *(("x_{10}=3, x_9=2", "(2,3)", True), ("(y,x)=(1,2)", "(x,y)=(1,2)", False)),
        *(("(y,x)=(2,1)", "(1,2)", True), ("(m,k)=(2,1)", "(2,1)", True), ("10,000", "(10,0)", False)),
        *(("3<x<100", r"\{3,100\}", False), (r"x \notin (3,5)", "(3,5)", False)),
        *((r"\{3\}\cup\{5\}", "(3,5)", False), (r"1 \pm 2", "(3,-1)", False), ("(3,-3)", r"\pm 3", False)),
        *(("5,2,7", "p=5,q=2;p=7,q=2", False), ("q=2,p=5 or q=2,p=7", "p=5,q=2;p=7,q=2", True)),
        *(("(5,2),(2,7)", "p=5,q=2;p=7,q=2", False), (r"(1,2)\cup(3,4)", "(1,2),(3,4)", False)),
        *((r"(1,2],(3,4)", r"(1,2]\cup(3,4)", True), (r"\langle 1,2\rangle", "(1,2)", False)),
        *(("(1,2) is wrong", "(1,2)", False), (r"\{0,1\}", "x<0 or x>1", False), ("x>3", "3", False)),
        *(("3", "x>3", False), (r"(-\infty,\infty)", r"\mathbb{R}", None)),
        *((r"\mathbb{R}", r"(-\infty,\infty)", None), (r"(-\infty,3)\cup(3,\infty)", r"x \neq 3", None)),
        *(("(3,5)", "3<x<5", None), ("x>3, x<5", "3<x<5", None), ("(1,2,3)", "1<x<3", False)),
        (",".join("1" * 30), f"({','.join('1' * 30)})", False),
        (f"({','.join('1' * 30)})", f"({','.join('2' * 30)})", None),
    ],
)
def test_structures(answer, gold, same):
    assert same_structure(answer, gold) is same


def test_an_answer_far_heavier_than_the_gold_answer():
    assert heavier("(a+b)^{9} < 1", "x < 1") == "power"
    assert heavier("(a+b)^{9} < 1", "(a+c)^{9} < 1") is None
    assert heavier("x^x < 1", "x < 1") == "variable exponent"
    assert heavier("((((((x))))))<1", "x<1") == "nesting"
    assert heavier("x" * 400, "x<1") == "length"
    assert heavier(r"\sin\sin\sin\sin\sin\sin\sin x<1", "x<1") == "functions"
    assert heavier(r"-\frac{7}{2} \leq x < \sqrt{3}", "x<1") is None
