import pytest

from envs import Grader, extract
from envs.extraction.replies import extract_text


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("is:\n\\[\n5\n\\]", "5"),
        ("is:\n\\[\n5\n\\].\nI am sure.", "5"),
        ("is\n\n\\(5\\)", "5"),
        ("is therefore:\n$$\nx = 5\n$$\nSo 6 is not.", "x = 5"),
        ("is:\n\n**5**", "5"),
        (": **5** apples.", "5"),
        ("is **$5$** apples", "$5$"),
        ("is $12.50, no more", "$12.50, no more"),
        ("is **5.** That is all.", "5"),
        ("is $s=5$, regardless of $n$.", "s=5"),
        ("is $5$ (independent of $n$).", "5"),
        ("is $5.$ Note that 6 is even.", "5."),
        ("is\n\\[5.\\] Now 6 is even", "5."),
        ("is\n\\[3 = \\frac{6}{2}\\] where 3 is a prime", "3 = \\frac{6}{2}"),
        ("is 5, which is odd.", "5"),
        ("is 5 which is odd.", "5"),
        ("is 5, because 2+3=5.", "5"),
        ("is 5 since 2+3 is 5", "5"),
        ("is 5, not 6.", "5"),
        ("is 5 rather than 6.", "5"),
        ("is x = 5, where y = 2.", "x = 5"),
        ("is 12 (twelve).", "12"),
        ("is twelve (12).", "twelve"),
        ("is 5, or five in words.", "5"),
        ("is $5$, or five.", "5"),
        ("is simply 5.", "5"),
        ("is 3/4 of a cup.", "3/4"),
        ("is that she has 5 apples left.", "5 apples left"),
        ("is: the volume is 120.", "120"),
        ("is $x$ = 5", "$x$ = 5"),
        ("is $5$ million", "$5$ million"),
        ("is 10/2, which is 5.", "5"),
        ("is half of 12, which is six.", "six"),
        ("is x<5", "x<5"),
        ("is 5</s>", "5"),
        ("is 5<|im_end|>", "5"),
        ("is 5<end_of_turn>", "5"),
    ],
)
def test_an_answer_ends_where_its_sentence_goes_on_to_something_else(said, answer):
    found = extract(f"The answer {said}")
    assert (found.answer, found.method) == (answer, "answer_is")


@pytest.mark.parametrize(
    "said",
    [
        "3 or 5",
        "$5$ or $6$",
        "**5** or **6**",
        "5 or maybe 6",
        "5, or 6",
        "5, maybe 6",
        "5, which could be 6",
        "5, which is wrong",
        "5, not sure",
        "not 5",
        "5 (or 6)",
        "5, or six",
        "$5$, or six in words",
        "5, or apples",
        "5, or perhaps five",
        "5 (wrong)",
        "5 (six)",
        "5 (million)",
        "$5$ million",
        "**5** squared",
        "5 of twelve",
        "5 of x",
        "5 of a dozen",
        "the square root of 5",
        "half as many as she has 5",
        "nobody has 5 apples",
        "she has half of 5",
        "less than 5",
        "at most 5",
        "5, because of x or 6",
        "10/5 which is 2",
        "5, as well as 6",
        "5, not counting the 3",
        "5, and not only 5",
        "5, which I doubt",
        "5, which isn't right",
        "5 (not exact)",
        "**5** x",
        "$5$ factorial",
    ],
)
def test_what_hedges_denies_or_counts_further_is_no_5(grader, said):
    assert grader.grade(f"The answer is {said}.", "5").status == "wrong"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("St. Louis. It lies in Missouri.", "St. Louis"),
        ("Dr. Strangelove.", "Dr. Strangelove"),
        ("George W. Bush.", "George W. Bush"),
        ("J. K. Rowling. She wrote it.", "J. K. Rowling"),
        ("Vitamin C. It is found in fruit.", "Vitamin C"),
        ("C. It is a note.", "C"),
        ("Wall St. It is in New York.", "Wall St"),
        ("Paris, which lies in France.", "Paris"),
        ("Paris, not London.", "Paris"),
        ("Paris or London.", "Paris or London"),
        ("just war theory.", "just war theory"),
        ("the 2 of hearts.", "the 2 of hearts"),
    ],
)
def test_texts_keep_their_abbreviations(said, answer):
    assert extract_text(f"The answer is {said}").answer == answer


def test_letters(grader):
    options = ("12 cm", "Paris", "Plan A", "4")
    right = ("The answer is B because A is wrong", "the correct answer is option (B), not A.")
    right += (
        "The answer is 12 cm, which is option B.",
        "The answer is:\n\n**B**",
        "b",
        "(B)",
        "paris.",
        "B.\n",
    )
    for reply in right:
        assert grader.grade(reply, "B", choices=options).status == "correct", reply
    for reply in ("The answer is B or A", "The answer is not B", "4", "Plan A", "The answer is A, not B"):
        assert grader.grade(reply, "B", choices=options).status == "wrong", reply
    assert grader.grade("Plan A", "C", choices=options).status == "correct"
    assert grader.grade("4", "D", choices=options).status == "correct"
    for reply in ("5", "because", "none of them"):
        assert grader.grade(reply, "B", choices=options).status == "missing", reply
    assert grader.grade("B", "B", choices=options, mode="answer_is").status == "missing"


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        ", which ",
        " because",
        "\\(",
        "$",
        "**",
        "she has ",
        "St. ",
        "A. ",
        "(a",
        " of a",
        " is",
        ", not",
        "simply ",
    ],
)
@pytest.mark.usefixtures("ends")
def test_a_megabyte_of_anything_is_read_in_linear_time(piece):
    text = "The answer is " + piece * (1_000_000 // len(piece))
    extract(text)
    extract_text(text)
