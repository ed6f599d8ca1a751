import pytest

from envs import Grade, Grader, GradeStatus, grade, same_answer
from envs.answers.words import letter_of

NO_FORMULAS = ["wrong", "million", "tenths", "divided by two", "below", "is false"]


@pytest.mark.parametrize("words", NO_FORMULAS)
def test_words_that_are_no_unit_are_left_on_a_formula(words):
    for formula in (r"\sqrt{2}", "x+1"):
        assert same_answer(rf"{formula} \text{{ {words}}}", formula).status == "wrong"


def test_words_with_the_same_letters_are_not_the_same():
    assert same_answer("3 enlists + 2 silent", "3 listens + 2 silent").status == "wrong"


def test_choice():
    options = ("10 cm", "12 cm", "14 cm")
    assert same_answer("(b)", "B", kind="choice", choices=options).status == "correct"
    assert same_answer("12 cm", "B", kind="choice", choices=options).status == "correct"
    assert same_answer("14 cm", "B", kind="choice", choices=options).status == "wrong"
    assert same_answer("D", "B", kind="choice", choices=options).status == "wrong"
    assert grade("I pick B.", "B", choices=options).method == "last_letter/letter"
    assert grade(r"\boxed{\text{(B) } 12 cm}", "B", choices=options).status == "correct"
    letters = ("C", "A", "B")
    assert same_answer("A", "A", kind="choice", choices=letters).status == "correct"  # the letter, not B
    assert same_answer("B", "A", kind="choice", choices=letters).status == "wrong"
    assert same_answer("A) C", "A", kind="choice", choices=letters).status == "correct"
    assert grade(r"\boxed{(a)}", "A", choices=letters).status == "correct"
    assert same_answer("O", "D", kind="choice", choices=("A", "E", "I", "O")).status == "correct"
    with pytest.raises(ValueError, match="none of the 3 choices"):
        same_answer("A", "E", kind="choice", choices=options)


def test_an_article_is_taken_off_words_alone():
    assert letter_of("a b", ("b", "c")) is None
    assert letter_of("ruler", ("a ruler", "the ruler")) is None
    assert letter_of("the 12", ("12", "13")) == "A"


def test_grade_of_a_whole_reply():
    assert grade(r"so \boxed{18}", "18").status == "correct"
    assert grade("#### 17", "18").status == "wrong"
    assert grade("no number", "18").status == "missing"
    assert grade(r"the answer is 18, \boxed{}", "18").status == "wrong"  # the empty box is the answer
    assert grade("it is 18", "18", mode="boxed").status == "missing"
    assert grade("it is 18", r"\boxed{18}").extracted == "18"
    assert grade("odd $n$", "odd $n$").status == "correct"
    assert grade("odd $n$", "odd $n$", mode="boxed").status == "missing"
    assert grade("it is 18", "It weighs more. " * 70 + "The answer is 18. So it is.").status == "correct"


def test_verdicts_keep_not_graded_apart_from_wrong():
    assert Grade(GradeStatus.TIMEOUT, "").verdict is None
    assert Grade(GradeStatus.CRASH, "").verdict is None
    assert Grade(GradeStatus.MISSING, "").verdict == "missing"
    assert Grade(GradeStatus.WRONG, "").verdict is False


@pytest.mark.parametrize(("kind", "gold"), [("open", "5"), ("auto", ""), ("auto", "  ")])
def test_what_cannot_be_graded_is_an_error_of_the_caller(kind, gold):
    with pytest.raises(ValueError, match=r"kind|gold"):
        same_answer("5", gold, kind=kind)


def test_grader_bounds():
    with pytest.raises(ValueError, match="workers"):
        Grader(workers=0)


def test_a_reply_without_content_is_missing():
    for kind in ("auto", "number", "text", "instructions"):
        assert grade(None, "5", kind=kind).status is GradeStatus.MISSING
    assert grade(None, "B", choices=("4", "5")).status is GradeStatus.MISSING


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: grade(5, "5"), "text: needs a text, got 5 of type int"),  # pyright: ignore[reportArgumentType]
        (lambda: grade("5", 5), "gold: needs a text, got 5 of type int"),  # pyright: ignore[reportArgumentType]
        (lambda: grade(None, None), "gold: needs a text, got None"),  # pyright: ignore[reportArgumentType]
        (lambda: same_answer(None, "5"), "answer: needs a text, got None"),  # pyright: ignore[reportArgumentType]
        (lambda: same_answer("5", ["5"]), "gold: needs a text"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_is_no_text_is_named(call, argument):
    with pytest.raises(TypeError, match=argument):
        call()
