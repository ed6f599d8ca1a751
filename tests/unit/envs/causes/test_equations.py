"""False equations in texts: found where they are plain, and never where something else may be meant."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from envs.causes.equations import CONVERSIONS, false_equation

TABLE = Path(__file__).parents[3] / "data" / "equations.jsonl"
ROWS = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("text", "quote"), ROWS)
def test_a_false_equation_is_quoted_and_what_may_be_meant_otherwise_passed_over(text, quote):
    where = false_equation(text)
    assert (where and where.of(text)) == quote


SIGNS = {"+": ("+",), "-": ("-", "−"), "*": ("*", "×", r"\times", r"\cdot")}


@st.composite
def sums(draw):
    """Return an expression of whole numbers and its value."""
    numbers = draw(st.lists(st.integers(0, 5000), min_size=2, max_size=4))
    count = len(numbers) - 1
    signs = draw(st.lists(st.sampled_from(sorted(SIGNS)), min_size=count, max_size=count))
    value = eval("".join(f"{n}{sign}" for n, sign in zip(numbers, [*signs, ""], strict=True)))
    written = [draw(st.sampled_from(SIGNS[sign])) for sign in signs]
    grouped = draw(st.booleans())
    shown = [f"{n:,}" if grouped else f"{n}" for n in numbers]
    return " ".join(f"{n} {sign}" for n, sign in zip(shown, [*written, ""], strict=True)).strip(), value


FRAMES = st.sampled_from(["{}", "So {} apples.", "We get ${}$.", r"\({}\)", "- {}", "1. {}\n2. So", "**{}**"])


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
    shown = frame.format(f"{text} = {wrong}")
    assert false_equation(shown).of(shown) == f"{text} = {wrong}"


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
