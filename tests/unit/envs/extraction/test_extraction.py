import pytest

from envs import extract
from envs.grading.extraction import boxes, counted, last_box


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
