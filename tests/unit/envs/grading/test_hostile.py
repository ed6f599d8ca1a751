"""Hostile answers: none is right, none stays ungraded, and the grader works as before when they are over."""

import importlib.util
from pathlib import Path

import pytest

from envs import Grader

_SPEC = importlib.util.spec_from_file_location("hostile", Path(__file__).with_name("hostile.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
hostile = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(hostile)
ROWS = hostile.rows()


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        grader.warm()
        yield grader


def test_there_are_many():
    assert len(ROWS) >= 200
    assert len({answer for _, answer in ROWS}) >= 200


def test_none_is_right_and_none_is_left_ungraded(grader):
    found = [(gold, answer[:80], grader.same_answer(answer, gold).status) for gold, answer in ROWS]
    assert [row for row in found if row[2] != "wrong"] == []


@pytest.mark.slow
def test_none_is_right_in_a_box(grader):
    balanced = [(gold, answer) for gold, answer in ROWS if answer.count("{") == answer.count("}")]
    replies = [
        (gold, rf"so the result is \boxed{{{answer}}}.") for gold, answer in balanced if ")5(" not in answer
    ]
    found = [(gold, reply[:80], grader.grade(reply, gold, mode="boxed").status) for gold, reply in replies]
    assert [row for row in found if row[2] not in ("wrong", "missing")] == []


@pytest.mark.slow
def test_none_is_right_under_the_rules_of_math_verify(grader):
    found = [(gold, a[:80], grader.grade(rf"\boxed{{{a}}}", gold, mode="math_verify")) for gold, a in ROWS]
    whole = [row for row in found if row[2].method.startswith("boxed")]
    assert len(whole) >= 200
    right = [row[:2] for row in whole if row[2].status == "correct" and row[1] != "5}"]
    assert right == [(r"\frac{100}{3}", "33.333333"), (r"\pi", "3.14159265358979")]  # that mode's rounding


@pytest.mark.slow
def test_the_grader_works_as_before_after_the_storm(grader):
    assert grader.same_answer("2 > x", "x < 2").status == "correct"
    assert grader.same_answer(r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}").status == "correct"
