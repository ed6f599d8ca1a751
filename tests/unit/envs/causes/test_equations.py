"""False equations in texts: found where they are plain, and never where something else may be meant."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from envs.causes.equations import CONVERSIONS, false_equation

FALSE = {
    "So 48 + 17 = 55 apples.": "48 + 17 = 55",
    "She pays $210 - $100 = $120": "210 - $100 = $120",
    "\\[\n49{,}994 + 20{,}006 = 69{,}999\n\\]": "49{,}994 + 20{,}006 = 69{,}999",
    r"The area is \(\frac{1}{2} \times 24 \times 26 = 156\).": r"\frac{1}{2} \times 24 \times 26 = 156",
    "725 x 1,000 = 72500": "725 x 1,000 = 72500",
    "3 * 2 = <<3*2=7>>7 miles": "3 * 2 = <<3*2=7>>7",
    "12*(2/3)=24 puppies": "12*(2/3)=24",
    "5 + 2(3) = 9": "5 + 2(3) = 9",
    "First 1 + 1 = 2. Then 2 + 2 = 5. Then 3 + 3 = 7.": "2 + 2 = 5",
    "- 7 * 8 = 54": "7 * 8 = 54",
    "2^5 = 64": "2^5 = 64",
    "x = 3 + 4 = 8": "3 + 4 = 8",
    "3 + 4 = 7 = 8 - 2": None,  # 7 is not calculated
    "172-47+13 = 130 people": "172-47+13 = 130",
    "20% * 50 = 12": "20% * 50 = 12",
}
MEANT_OTHERWISE = (
    *("10 / 3 = 3.33", "10 / 3 = 3", "17 / 5 = 3 remainder 2", "3.33 * 3 = 10", "3 + 4 = 7 + 2 = 9"),
    *("12 / 60 = 20%", "15 / 60 * 100 = 25%", "2 * 30 = 1 hour", "3 * 25 = $0.75", "1800 - 2000 = 200"),
    *("5 * 1000 = 5 thousand", "7 + 8 = 3 (mod 12)", r"7 + 8 = 3 \pmod{12}", "Is 2 + 2 = 5?"),
    *("If 2 + 2 = 5, then", "2 + 2 = 5 is wrong", "2 + 2 = 4", "2x + 3 = 7", "x + 2 + 3 = 7"),
    *("20% of 50 * 2 = 20", "half of 10 + 2 = 7", "2 hours + 30 minutes = 150 minutes", "3 1/2 + 1 = 4.5"),
    *("5! + 1 + 1 = 122", r"\sqrt{9} + 1 = 4 and \sqrt 16 + 1 = 5", "a_2 + 3 = 9", "log 2 + 3 = 5"),
    *("1 + 2 = 3x", "10:30 + 2 = 12:30", "70 (70%) - 60 (60%) = 10", "f(2) = 3 + 1 = 4"),
    *("1 + 1 >= 3 and 2 + 2 => 5", "1 + 1 ≈ 3", r"2 \cdot 3 = 6, \quad \text{so } 6 / 4 = 1.5"),
    *("(3 + 4) * 2 = 14", "2,000 + 500 = 2,500", "9" * 50 + " + 1 = 3", "2^1000 + 1 = 3"),
)


@pytest.mark.parametrize(("text", "quote"), FALSE.items())
def test_a_false_equation_is_quoted(text, quote):
    where = false_equation(text)
    assert (where and where.of(text)) == quote


@pytest.mark.parametrize("text", MEANT_OTHERWISE)
def test_what_may_be_meant_otherwise_is_passed_over(text):
    assert false_equation(text) is None


SIGNS = {"+": ("+",), "-": ("-", "−"), "*": ("*", "×", r"\times", r"\cdot")}


@st.composite
def sums(draw):
    """Return an expression of whole numbers and its value."""
    numbers = draw(st.lists(st.integers(0, 5000), min_size=2, max_size=4))
    signs = draw(
        st.lists(st.sampled_from(sorted(SIGNS)), min_size=len(numbers) - 1, max_size=len(numbers) - 1)
    )
    value = eval("".join(f"{n}{sign}" for n, sign in zip(numbers, [*signs, ""], strict=True)))
    written = [draw(st.sampled_from(SIGNS[sign])) for sign in signs]
    grouped = draw(st.booleans())
    shown = [f"{n:,}" if grouped else f"{n}" for n in numbers]
    return " ".join(f"{n} {sign}" for n, sign in zip(shown, [*written, ""], strict=True)).strip(), value


FRAMES = st.sampled_from(
    ["{}", "So {} apples.", "We get ${}$.", r"\({}\)", "- {}", "1. {}\n2. Done", "**{}**"]
)


@given(sums(), FRAMES)
def test_a_true_equation_is_never_false(found, frame):
    text, value = found
    assert false_equation(frame.format(f"{text} = {value}")) is None


@given(sums(), st.integers(-50, 50).filter(bool), FRAMES)
@example(("3 + 4", 7), 1, "{}")
def test_a_wrong_result_is_found(found, off, frame):
    text, value = found
    wrong = value + off
    assume(abs(value) != abs(wrong))
    assume(not wrong or Fraction(value, wrong) not in CONVERSIONS)  # which may be a result in another unit
    where = false_equation(frame.format(f"{text} = {wrong}"))
    assert where is not None
    assert where.of(frame.format(f"{text} = {wrong}")) == f"{text} = {wrong}"


@given(st.text("0123456789+-*/^=(){}.,$% \\frac\ntimesofx<>", max_size=200))
def test_no_text_raises(text):
    where = false_equation(text)
    assert where is None or "=" in where.of(text)


@pytest.mark.parametrize(
    "text",
    ["1+" * 200_000, "(" * 60_000 + "1+1=3", "1=" * 200_000, "1 + 1 = " * 8000, "2^" * 90_000, "<<" * 90_000],
)
def test_hostile_texts_take_linear_time(text):
    false_equation(text)
