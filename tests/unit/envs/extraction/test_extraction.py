import pytest

from envs import extract
from envs.extraction.replies import boxes, counted, last_box


@pytest.mark.parametrize(
    ("text", "answer", "method"),
    [
        (r"\boxed{1} then \boxed{2}", "2", "boxed"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", "boxed"),
        (r"\boxed{\{8, 11\}}", r"\{8, 11\}", "boxed"),
        (r"\boxed{x = \boxed{5}}", "5", "boxed"),
        (r"\boxed{ 11 8}", " 11 8", "boxed"),
        (r"\boxed{3} ... \boxed{5", "3", "boxed"),  # cut off: the last closed box counts
        (r"the answer is 4 but \boxed{}", "", "boxed"),  # an empty box is an answer
        (r"#### 12 and \boxed{13}", "13", "boxed"),
        ("work\n#### 1,200", "1,200", "####"),
        ("The final answer is: **42**.", "42", "answer_is"),
        ("Answer: The final answer is 12,000,023. I hope it is correct.", "12,000,023", "answer_is"),
        ("She has 16 - 3 = 13 left\nA: 224", "224", "last_number"),
        ("it went from 5 to -3", "-3", "last_number"),
        ("that is 8-3", "3", "last_number"),
        ("so it is 3/4 of them", "3/4", "last_number"),
        ("either 3 or 5", "3 or 5", "last_number"),
        ("It takes 2 1/2 hours", "2 1/2", "last_number"),
        ("from 12/5 1/2 is left", "1/2", "last_number"),
        ("It weighs 1.5e3 grams", "1.5e3", "last_number"),
        ("it weighs 1.5 × 10^3 grams", "1.5 × 10^3", "last_number"),
        (r"it weighs $1.5 \times 10^{-3}$ grams", r"1.5 \times 10^{-3}", "last_number"),
        ("there are 3 times 10 of them", "10", "last_number"),
        ("2 million people live there", "2", "last_number"),  # the question may ask for millions
        ("he saves 12 1/2% of it", "12 1/2%", "last_number"),
        ("a total of 1\u202f234 people", "1\u202f234", "last_number"),
        ("with 3 100 dollar bills", "100", "last_number"),
        ("They meet at 12:30 that day", "12:30", "last_number"),
        ("They meet at 4:51:06 pm.", "4:51:06 pm", "last_number"),
        ("a ratio of 3:4", "4", "last_number"),
        (r"$\frac{1}{2}+x$", r"$\frac{1}{2}+x$", "bare"),
    ],
)
def test_lenient(text, answer, method):
    found = extract(text, mode="lenient")
    assert (found.answer, found.method) == (answer, method)
    assert found.span is not None
    assert found.span.of(text) == answer


@pytest.mark.parametrize("text", ["", "no idea", "AZYUK2A", "item x27b", "().__class__[0]$ is 5"])
def test_lenient_finds_nothing(text):
    assert extract(text, mode="lenient").answer is None


@pytest.mark.parametrize(
    ("mode", "own"), [("boxed", r"\boxed{5}"), ("gsm8k_strict", "#### 5"), ("answer_is", "The answer is 5")]
)
def test_strict_modes_refuse_all_other_forms(mode, own):
    forms = {r"\boxed{5}", "#### 5", "The answer is 5", "it must be 5", "5"}
    assert extract(own, mode=mode).answer == "5"
    assert all(extract(text, mode=mode).answer is None for text in forms - {own})


def test_unknown_mode_names_the_valid_ones():
    with pytest.raises(ValueError, match="boxed, gsm8k_strict, answer_is, lenient"):
        extract("5", mode="loose")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"<think>\boxed{4}</think> \boxed{5}", "5"),
        (r"<think>\boxed{4}</think> I do not know", None),
        (r"\boxed{5} <think>or \boxed{6}", "5"),
        (r"<think>still \boxed{4}", None),
        (r"no opening tag \boxed{4}</think>\boxed{5}", "5"),
        (r"\boxed{5}<|im_end|>\boxed{6}", "5"),
        ("#### 5\n\nQuestion: what is 2+2?\n#### 4", "5"),
        ("Let me restate.\nProblem: 2+3?\nThe answer is 5.", "5"),
    ],
)
def test_thinking_and_invented_questions_do_not_count(text, answer):
    assert extract(text).answer == answer


def test_letters():
    assert extract("I think it is B, not C.", letters="ABCD").answer == "not C"  # no letter, and wrong
    assert extract("A dog is big: (B)", letters="ABCD").answer == "B"
    assert extract("A dog", letters="ABCD").answer is None


def test_boxes_ignore_stray_braces():
    text = r"{ { \boxed{a} } \boxed{b} }}} \boxed{c"
    assert [span.of(text) for span in boxes(text)] == ["a", "b"]
    assert last_box("}}}{{{") is None


@pytest.mark.slow
@pytest.mark.usefixtures("ends")
def test_a_megabyte_of_anything_is_read_in_linear_time():
    for piece in (*"{} 1-$.", "\\boxed{", "answer is ", "#### ", "\\boxed ", "1,", "<think>"):
        extract("answer is" + piece * (1_000_000 // len(piece)))


def test_counted_is_a_range_of_the_text():
    assert counted("") == (0, 0)
    assert counted("abc") == (0, 3)
