import pytest

from envs import Grade, Grader, GradeStatus, grade, same_answer
from envs.answers.words import letter_of, same_time
from envs.grading.limits import refusal

NO_FORMULAS = ["wrong", "million", "tenths", "divided by two", "below", "is false"]


@pytest.mark.parametrize("words", NO_FORMULAS)
def test_words_that_are_no_unit_are_left_on_a_formula(words):
    for formula in (r"\sqrt{2}", "x+1"):
        assert same_answer(rf"{formula} \text{{ {words}}}", formula).status == "wrong"


def test_words_with_the_same_letters_are_not_the_same():
    assert same_answer("3 enlists + 2 silent", "3 listens + 2 silent").status == "wrong"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("9^9^9^9", "tower"),
        (r"2^{2^{2^{2}}}", "tower"),
        (r"7^{999999999} \bmod 13", "exponent"),
        ("(1/3)^{-99999999}", "exponent"),
        ("1000000!", "factorial"),
        ("3!!", "factorial"),
        (r"\binom{100000000}{50000000}", "binomial"),
        ("(x+y+z+w)^{200}", "power of a sum"),
        ("1" * 61, "digits"),
        ("(" * 15 + "1" + ")" * 15, "nesting"),
        ("x" * 1001, "length"),
        ("1," * 65, "items"),
        ("&" * 37, "cells"),
        (r"\sin x" * 17, "functions"),
        ('__import__("os")', "code"),
    ],
)
def test_prefilter_names_the_bound(answer, reason):
    assert refusal(answer) == reason


@pytest.mark.parametrize(
    "answer",
    [
        "2^{1000}",
        "x^{20}",
        "5x^{26}-15x^9-35x^4",
        "x^2y^2z^2",
        "100!",
        r"\sqrt{1+\sqrt{2+\sqrt{3}}}",
        "10^{100}",
    ],
)
def test_prefilter_lets_sane_answers_through(answer):
    assert refusal(answer) is None


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


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("0:00", "12:00 a.m.", True),
        ("24:00", "12:00 p.m.", False),
        ("24:30", "12:30 a.m.", False),
        ("00:30", "12:30 p.m.", False),
        ("00:30", "12:30 a.m.", True),
        ("12:30 a.m.", "00:30", True),
        ("16:51 p.m.", "4:51 p.m.", True),
        ("4:51 a.m.", "16:51 a.m.", False),
        ("17:00", "5 pm", True),
        ("6:00", "5 pm", False),
        ("5 am", "5 pm", False),
        ("5", "5 pm", True),
        ("12 noon", "12:00 p.m.", True),
        ("12 midnight", "12:00 p.m.", False),
        ("4:61 pm", "5:01 pm", False),
        ("00:30", "12:30", None),
        ("5 p.m.", "5", None),
        ("5a", "5am", None),
    ],
)
def test_times(answer, gold, same):
    assert same_time(answer, gold) is same


TOOLS = ("magnet", "thermometer", "ruler", "balance")
HEDGES = ["B A", "B OR A", "B AND A", "B | A", "B+A", "b or a", "(b)(a)", "b) a", "B, A", "B; A", "B not A"]
HEDGES += [r"B \lor A", "A as well as B", "A: or B", "A B", "B and a", r"B \text{ or } A", "Between A and B"]
NO_LETTERS = [
    r"a \leq 3",
    r"A \leq 3",
    "A + 3",
    "A thing",
    "B is not correct",
    "B isn't right",
    "not B",
    "B cannot be",
]


@pytest.mark.parametrize("answer", [*HEDGES, *NO_LETTERS])
def test_what_is_no_letter(answer):
    assert letter_of(answer, TOOLS) is None


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("The ruler", "C"),
        ("A thermometer", "B"),
        ("B) 12 and a half", "B"),
        (r"\text{B) A thing for heat}", "B"),
        ("B because A is cold", "B"),
        ("A magnet", "A"),
        ("a.", "A"),
    ],
)
def test_what_is_a_letter(answer, letter):
    assert letter_of(answer, TOOLS) == letter


def test_an_article_is_taken_off_words_alone():
    assert letter_of("a b", ("b", "c")) is None
    assert letter_of("ruler", ("a ruler", "the ruler")) is None
    assert letter_of("the 12", ("12", "13")) == "A"


@pytest.mark.parametrize(
    ("reply", "gold", "status"),
    [
        ("The answer is a thermometer.", "B", "correct"),
        ("The answer is a thermometer.", "A", "wrong"),
        ("The answer is a bit hard to find. I choose C", "A", "wrong"),
        ("I pick B or C.", "C", "wrong"),
        ("It is not C.", "C", "wrong"),
        ("(B) rather than (C)", "C", "wrong"),
        ("We eliminate C.", "C", "wrong"),
        ("It cannot be C.", "C", "wrong"),
        ("It isn't C.", "C", "wrong"),
        ("I pick C.", "C", "correct"),
    ],
)
def test_letters_of_replies(reply, gold, status):
    assert grade(reply, gold, choices=TOOLS).status == status


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
