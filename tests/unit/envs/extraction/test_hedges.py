"""An answer that is taken back, or offered beside another, is not the last number alone."""

import pytest

from envs import Grader, extract
from envs.extraction.statements import widened

HEDGED = [
    *(
        "3 or 5",
        "$3$ or $5$",
        r"\(3\) or \(5\)",
        "3 or **5**",
        "**3** or **5**",
        "3 or perhaps 5",
        "3 (or 5)",
    ),
    *(
        "3 or $5",
        "3 or $5$",
        "x = 3 or x = 5",
        "3 and 5",
        "so it is $3$ and $5$",
        "I get 3, or 5",
        "3\nor\n5",
    ),
    *("It is 3 or maybe even 5.", "It must be 3 or it is 5", "3, perhaps 5", "3 or else 5", "(3) or (5)"),
    *(
        "either 3 apples or 5 apples",
        r"It is $3$ or $\mathbf{5}$.",
        r"3 or \(x = 5\)",
        "so $3$ or perhaps $5$",
    ),
    *(
        "The answer is $5$ or $3$.",
        "The answer is $3$ or perhaps $5$.",
        "The answer is $5$, $3$.",
        "3 / 5 of it",
    ),
]
TAKEN_BACK = [
    *("not 5", "The answer isn't 5", "The answer isn’t 5", "It cannot be 5", "It's never 5", "it's not $5$"),
    *("the result does not equal 5", "The answer is not 5.", r"so $x \neq 5$", "It's not exactly **5**"),
]
MEANT = [
    *("not 3 but 5", "It is not 3, it is 5", "the answer isn't 3; it's 5.", "I think not, 5", "Why not? 5"),
    *("5 or so", "She sold 3 or more, in all 5", "For x or y we get 5", "greater than or equal to 5"),
    *("He has 2 and she has 3, so 5", "there are 3 red and 2 blue, that is 5", "2 boys and some: 5"),
    *(
        "The answer is $5$ dollars.",
        "The answer is $5$, or five in words.",
        "2 + 3 = 5",
        "a floor and 5",
        "It comes before 10 and is 5",
        "That way is wrong, so the answer is 5.",
        "If x is 3, the answer is 5.",
        "<think>5 or 6?</think><answer>5</answer>",
    ),
]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize("mode", ["lenient", "prm800k", "math_verify"])
@pytest.mark.parametrize("reply", HEDGED + TAKEN_BACK)
def test_a_hedge_is_wrong(grader, reply, mode):
    for gold in ("3", "5"):
        assert grader.grade(reply, gold, mode=mode).status == "wrong"


@pytest.mark.parametrize("mode", ["lenient", "math_verify"])
@pytest.mark.parametrize("reply", MEANT)
def test_what_is_meant_stays_right(grader, reply, mode):
    assert grader.grade(reply, "5", mode=mode).status == "correct"


@pytest.mark.parametrize("reply", ["3 and 5", "$3$ or $5$", "x = 3 or x = 5", "The answer is $5$, $3$."])
def test_two_answers_are_right_where_two_are_asked_for(grader, reply):
    assert grader.grade(reply, "3, 5").status == "correct"


@pytest.mark.parametrize(
    "reply", [r"\boxed{3}/\boxed{5}", r"\boxed{3} or perhaps \boxed{5}", r"**\boxed{3}** (or \boxed{5})"]
)
def test_boxes_side_by_side_are_one_list_where_math_verify_looks(grader, reply):
    assert grader.grade(reply, "5", mode="math_verify").status == "wrong"
    assert grader.grade(reply, "3, 5", mode="math_verify").status == "correct"
    assert grader.grade(reply, "5").status == "correct"  # else the last box counts, and nothing beside it


def test_the_span_is_the_answer_as_written():
    for reply in HEDGED + TAKEN_BACK:
        found = extract(reply)
        assert found.span is not None
        assert found.span.of(reply) == found.answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["or ", "and ", "not ", "3 or ", "3/", "$3$ or ", ", ", "is it ", "x = ", r"\text"]
)
@pytest.mark.usefixtures("ends")
def test_a_look_back_takes_linear_time(piece):
    text = piece * (1_000_000 // len(piece)) + "5"
    for mode in ("lenient", "math_verify"):
        extract(text, mode=mode)
        extract("The answer is $1$ " + text, mode=mode)
    found = extract("5").span
    assert found is not None
    assert widened("5", found) == found
