"""Which wrong answers a majority counts together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Problem
from envs import load_environment
from envs.answers.keys import key_of, plain_key
from envs.grading.grader import exact

OPEN = Problem("p", "How many?", answer="9", kind="number")
CHOICE = Problem("c", "Which?", answer="A", kind="choice", choices=("10 cm", "12 cm", "14 cm"))
PAIR = Problem("s", "Target 19. Numbers 3 8 5 11 10 9.", kind="expression")


@pytest.mark.parametrize(
    "same",
    [
        ("7", " 7 ", "7.0", "$7$", "x = 7", "7 apples", "14/2", r"\frac{14}{2}", r"\boxed{7}"),
        ("-0.5", "-1/2", r"-\dfrac12", "−0.5"),
        (r"\sqrt{2}", r"$\sqrt 2$", r"\left.\sqrt{2}\right."),
        ("(1,2)", "( 1, 2 )", r"\left(1,2\right)"),
    ],
)
def test_spellings_of_one_answer_have_one_key(same):
    assert len({plain_key(OPEN, text) for text in same}) == 1


def test_other_answers_have_other_keys():
    texts = ["7", "8", "-7", "7=8", "7 or 8", r"\sqrt{7}", "x", "X", "", "seventy"]
    assert len({plain_key(OPEN, text) for text in texts}) == len(texts)


def test_a_choice_is_its_letter_and_a_pair_has_no_order():
    key = key_of(load_environment("aqua"))
    assert [key(CHOICE, text) for text in ("B", "(b)", r"\text{B}", "12 cm", "B) 12 cm")] == ["B"] * 5
    assert key(CHOICE, "12 cm or 14") not in ("A", "B", "C")
    assert key(OPEN, "7.0") == key(OPEN, "7")
    key = key_of(load_environment("pair_sum"))
    assert {key(PAIR, text) for text in (" 8 3", "3, 8", r"\{8, 3\}", "3 + 8")} == {"3 8"}
    assert key(PAIR, "8") != key(PAIR, "3")
    key = key_of(load_environment("words"))
    assert {key(OPEN, text) for text in (" 7", "7 apples", "7.")} == {"7"}
    assert key(OPEN, "seven pens") != key(OPEN, "7")


def test_an_environment_of_ones_own_need_not_have_a_key():
    assert key_of(object()) is plain_key


@given(st.text(max_size=60) | st.text("0123456789.,/=x\\{} -", max_size=20))
def test_no_answer_raises_and_one_key_means_one_grade_by_number_and_spelling(text):
    for name, problem in (("pair_sum", PAIR), ("words", OPEN), ("aqua", CHOICE)):
        assert isinstance(key_of(load_environment(name))(problem, text), str)
    key = plain_key(OPEN, text)
    grade = exact(key, text) if key and text.strip() else None
    if grade is not None and grade.method in ("spelling", "number"):
        assert grade.status == "correct"
