r"""What the principles of docs/grading.md say of each kind of answer: other ways to write it, near misses.

A near miss is a sign, a bracket, a unit, a bound, a letter or a word away.
"""

from pathlib import Path

import pytest

from envs import Grader


def _pairs(name: str) -> list[tuple[str, ...]]:
    """Return the pairs of a table: a gold answer and an answer."""
    table = (Path(__file__).parents[3] / "data" / name).read_text(encoding="utf-8").partition("\n")[2]
    return [tuple(text.strip() for text in pair.split("::")) for pair in table.split(";;")]


SAME, DIFFERENT = _pairs("same_answers.txt"), _pairs("different_answers.txt")
DIFFERENT += [("5", "5\n6"), ("5", ""), ("5", "5\x00"), ("5", "\u202e5")]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_same(grader, gold, answer):
    assert grader.same_answer(answer, gold).status == "correct"


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_different(grader, gold, answer):
    assert grader.same_answer(answer, gold).status == "wrong"
