"""Laws of extraction and of the exact path, over arbitrary and over number-like text."""

import re
import sys
from contextlib import contextmanager, suppress
from fractions import Fraction
from math import inf, log2

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envs import Grader, extract
from envs.answers.formulas import MAX_BITS, NO_VALUE, parse_formula, same_value
from envs.answers.notation import clean, in_latex, sides, spelling
from envs.answers.numbers import _LARGE, _SMALL, _TENS, SCALES, parse_number, without_unit, words_value
from envs.answers.parts import parts_of
from envs.answers.structures import same_structure
from envs.answers.words import letter_of, normal_text, same_text, same_time
from envs.grading.exact import exact
from envs.grading.extraction import joined
from envs.grading.limits import heavier, refusal
from envs.grading.strictness import breaks_form, same_spelling
from envs.instructions.ifeval import bullets
from envs.types import MODES

PIECES = [
    "\\boxed{", "}", "{", "####", "answer is ", "The final answer: ", "<think>", "</think>", "5", " ",
    "-", "\n", "$", "\\frac{1}{2}", ",", "1,200", "%", "\\text{ cm}", "or", "=", "x", "^", "\\", "|", ".",
    "/", "!", "\x00", "５", "∞", "×", "½", "²", "*10^3", "°C", "\\approx ", "\\[", "\\]", "**", ", which ",
    " because ", "twenty ", "A1",
]  # fmt: skip
replies = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
integers = st.integers(-(10**9), 10**9)


def status_of(answer, gold):
    verdict = exact(answer, gold)
    assert verdict is not None
    return verdict.status


@given(replies, st.sampled_from(MODES))
def test_extract_never_raises_and_its_span_is_its_answer(text, mode):
    found = extract(text, mode=mode)
    assert (found.answer is None) == (found.span is None) == (found.method == "none")
    if found.span is not None:
        assert found.span.of(text) == found.answer


@given(replies, replies)
def test_structures_and_modes_never_raise_on_two_texts(answer, gold):
    for text in (answer, gold):
        parse_formula(clean(text))
        parts_of(clean(text))
        letter_of(text, ("1", "2"))
        joined(text)
    same_structure(clean(answer[:200]), clean(gold[:60]))
    heavier(answer, gold)
    same_spelling(answer, gold)
    breaks_form(answer, gold)
    if clean(gold):
        exact(answer, gold)


@pytest.mark.slow
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3), st.sampled_from(MODES))
def test_long_texts_of_any_repeated_piece_are_read(pieces, mode):
    text = "".join(pieces) * (30_000 // len("".join(pieces)))  # what is not linear does not come back
    extract(text, mode=mode)
    letter_of(text)
    exact(text, "5")


formulas = st.recursive(
    st.sampled_from(["x", "y", "2", "7", r"\pi", "x^{2}", "2^{-3}"]),
    lambda inner: st.one_of(
        st.builds("({}+{})".format, inner, inner),
        st.builds("({})({})".format, inner, inner),
        st.builds(r"\frac{{{}}}{{{}}}".format, inner, inner),
        st.builds(r"\sqrt{{{}}}".format, inner),
    ),
    max_leaves=6,
)


@given(formulas, formulas)
def test_sums_and_products_commute_and_an_added_one_is_seen(a, b):
    assert same_value(f"{a}+{b}", f"{b}+{a}") is True
    assert same_value(f"({a})({b})", f"({b})({a})") is True
    assert same_value(f"{a}+1", a) is False


SHAPES = {
    "tuple": "({},{})",
    "closed": "[{},{}]",
    "set": r"\{{{},{}\}}",
    "or": r"{} \text{{ or }} {}",
    "named": r"x={} \text{{ or }} x={}",
    "between": "{} < x < {}",
    "within": "{} \\leq x \\leq {}",
}
LISTS = {"set", "or", "named"}
parts = st.sampled_from(["3", "5", "100", "-7", r"\frac{1}{2}", r"\sqrt{2}", "x+1", "2a", r"\pi"])


@given(parts, parts, st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(SHAPES)))
@example("3", "100", "between", "set")  # 3,100 is a number elsewhere
def test_a_shape_is_never_another(a, b, answer, gold):
    """But for the kinds of lists, and for an interval and the inequality that says the same."""
    if answer == gold or {answer, gold} <= LISTS or (gold in ("between", "within") and answer not in LISTS):
        return
    if (answer, gold) in (("between", "tuple"), ("within", "closed")) or (
        a == b and "within" in (answer, gold)
    ):
        return
    assert status_of(SHAPES[answer].format(a, b), SHAPES[gold].format(a, b)) == "wrong"


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 23), st.integers(0, 59))
def test_a_time_is_itself_on_either_clock_and_no_other(hour, minute, other, late):
    halves = f"{(hour - 1) % 12 + 1}:{minute:02d} {'a.m.' if hour < 12 else 'p.m.'}"
    day = f"{other:02d}:{late:02d}"
    same = (hour, minute) == (other, late) or ((hour - 12, minute) == (other, late) and other > 0)
    same = same or (hour == 0 and (other, late) == (12, minute))  # 12:30 may be either half
    assert same_time(day, halves) is same
    assert same_time(halves, day) is same


scales = st.lists(st.sampled_from(sorted(SCALES)), min_size=1, max_size=2)
others = st.sampled_from(
    ["tenths", "thirds", "out of six", "divided by two", "base seven", "wrong", "below zero"]
)


@given(st.integers(1, 999), scales, st.booleans(), others)
def test_scales_multiply_and_other_words_are_no_unit(n, names, plural, words):
    value = n
    for name in names:
        value *= SCALES[name]
    text = f"{n} {' '.join(names)}{'s' if plural else ''}"
    for answer, gold, right in ((text, value, True), (text, n, False), (f"{n} {words}", n, False)):
        assert (status_of(answer, str(gold)) == "correct") is right


@given(integers, st.integers(1, 10**6), st.integers(1, 50))
def test_a_fraction_is_its_multiples(top, bottom, factor):
    forms = (f"{top * factor}/{bottom * factor}", rf"\frac{{{top * factor}}}{{{bottom * factor}}}")
    for form in forms:
        number = parse_number(form)
        assert number is not None
        assert number.value == Fraction(top, bottom)


@given(integers, st.integers(0, 99))
def test_money_and_units_do_not_change_a_number(whole, cents):
    plain = f"{abs(whole)}.{cents:02d}"
    for form in (
        *(f"${plain}", rf"\${plain}", f"{plain} dollars", rf"{plain}\text{{ cm}}", f"x = {plain}"),
        f"${plain}$",
    ):
        assert status_of(form, plain) == "correct"


@given(integers, integers)
def test_a_chain_of_different_numbers_is_never_right(a, b):
    if a != b:
        for gold in (a, b):
            assert status_of(f"{a}={b}", str(gold)) == "wrong"


@given(st.integers(0, 999_999))
def test_words_of_a_number_are_that_number(n):
    def below(m: int) -> str:
        hundreds, rest = divmod(m, 100)
        tens = [word for word, value in _TENS.items() if value == rest - rest % 10]
        small = [word for word, value in _SMALL.items() if value == (rest % 10 if tens else rest)]
        said = f"{tens[0]}-{small[0]}" if tens and rest % 10 else (tens or small)[0]
        front = f"{list(_SMALL)[hundreds]} hundred" if hundreds else ""
        return f"{front} and {said}" if front and rest else front or said

    thousands, rest = divmod(n, 1000)
    said = f"{below(thousands)} thousand{' ' + below(rest) if rest else ''}" if thousands else below(rest)
    assert words_value(said) == n


@given(integers)
def test_a_percent_is_its_number_and_not_a_hundredth(n):
    assert status_of(rf"{n}\%", str(n)) == "correct"
    assert (status_of(rf"{n}\%", f"{n}/100") == "correct") == (n == 0)


BRACKETS = [
    ("(", ")"), ("[", "]"), ("{", "}"), (r"\{", r"\}"), (r"\left(", r"\right)"),
    (r"\langle ", r"\rangle "), (r"\sqrt{", "}"), (r"\frac{1}{", "}"), (r"\text{", "}"),
    (r"\boxed{", "}"), ("|", "|"), ("x^{", "}"), (r"\lfloor ", r"\rfloor "), (r"\lceil ", r"\rceil "),
    ("2^", ""), ("-", ""), ("(-", ")"), (r"\sin ", ""), ("1,(", ")"), (r"\log_{", "}(2)"),
    (r"\frac", "{1}{2}"), (r"\begin{pmatrix}", r"\end{pmatrix}"), ("x=(", ")"), (r"\sqrt[3]{", "}"),
    ("1+(", ")"), (r"\pm ", ""), (r"\cup(", ")"), ("f(", ")"), ("x_{", "}"), (r"\binom{9}{", "}"),
]  # fmt: skip


@contextmanager
def shallow_stack(frames):
    """Let nothing inside call deeper than some frames from here."""
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(BRACKETS), st.integers(1, 60)), min_size=1, max_size=4),
    st.sampled_from([1, 1, 3, 50]),
    st.sampled_from(["5", "x", "x+1", "1,2", "", r"\text{cm}"]),
)
def test_nestings_of_any_kind_and_depth_are_graded_in_bounded_depth(kinds, times, core):
    opening = "".join(left * (count * times) for (left, _), count in kinds)
    closing = "".join(right * (count * times) for (_, right), count in reversed(kinds))
    nested = f"{opening}{core}{closing}"
    with shallow_stack(700):
        for answer, gold in ((nested, "5"), ("5", nested), (nested, f"{nested}+x"), (nested, nested)):
            exact(answer, gold)
        node = parse_formula(nested)
        with suppress(*NO_VALUE):
            assert node is None or node(0) is not None


AROUND = [
    "{}", "x = {}", r"{} \text{{ m}}", "1, {}", "({}, 2)", r"\sqrt{{{}}}", r"\frac{{1}}{{{}}}", "${}$",
    r"\boxed{{{}}}", r"{} \cdot \text{{a}}", "y < {}", r"\left({}\right)", "-{}", r"\{{{}\}}", "2+{}",
    r"\sin({})", r"|{}|",
]  # fmt: skip
POWERS = [
    "{}^{{{}}}", "{}^{}", "{}**{}", "{} ^ {{ {} }}", r"\left({}\right)^{{{}}}", "{{{}}}^{{{}}}", "({})^({})",
]  # fmt: skip


@given(
    st.lists(st.integers(2, 99), min_size=3, max_size=5),
    st.lists(st.sampled_from(POWERS), min_size=4, max_size=4),
    st.sampled_from(AROUND),
)
@example([2, 2, 6], POWERS[:1] * 4, r"\sin({})")  # an argument beyond the precision, and not large
def test_a_tower_is_refused_by_its_value_whatever_it_is_written_in(numbers, powers, around):
    """2^(b^c) has b^c + 1 bits: beyond the bound it is refused, and far below it is not for its size."""
    *bases, exponent = numbers
    bits: float = exponent
    for base in reversed(bases):
        bits = bits * log2(base) if bits < 1e6 else inf
        bits, value = (2**bits if bits < 64 else inf), bits
    text = str(exponent)
    for base, power in zip(reversed(bases), powers, strict=False):
        text = power.format(base, text)
    if value > 2 * MAX_BITS and powers[0] != "{}**{}":
        assert refusal(around.format(text))
    elif value < MAX_BITS / 2:
        assert refusal(around.format(text)) != "size"


@given(replies)
def test_lenient_finds_what_a_strict_mode_finds(text):
    if any(extract(text, mode=mode).answer is not None for mode in ("boxed", "gsm8k_strict", "answer_is")):
        assert extract(text, mode="lenient").answer is not None


said = st.lists(st.sampled_from([*_SMALL, *_TENS, *_LARGE, "and", "half", "minus"])).map(" ".join)


@given(replies | said, st.sampled_from(["5", "x+1", r"\frac{1}{2}", r"\text{odd}", "(1,2)", "50%"]))
def test_the_exact_path_never_raises(answer, gold):
    for step in (clean, spelling, without_unit, sides, refusal, parse_number, words_value, in_latex):
        step(answer)
    exact(answer, gold)


@given(st.permutations(["1", r"\sqrt{2}", "x+1", "7"]), st.permutations(["1", r"\sqrt{2}", "x+1", "7"]))
def test_order_counts_in_tuples_alone(left, right):
    assert same_structure(", ".join(left), ",".join(right)) is True
    assert same_structure(f"({', '.join(left)})", f"({','.join(right)})") is (left == right)


letters = st.sampled_from("ABCD")


joints = st.sampled_from(
    [" or ", " OR ", " and ", ", ", "; ", " | ", "/", r" \cup ", " ", " as well as ", ") or (", "+"]
)


@given(letters, letters, joints, st.booleans())
def test_two_letters_are_no_letter(a, b, joint, small):
    both = f"{a}{joint}{b}"
    if a != b:
        assert letter_of(both.lower() if small else both, ("1", "2", "3", "4")) is None


@given(replies)
def test_every_readable_answer_is_itself(answer):
    if clean(answer):
        assert status_of(answer, answer) == "correct"


@given(integers, integers)
def test_integers_are_equal_when_they_are(a, b):
    assert (status_of(f"{a:,}", str(b)) == "correct") == (a == b)


@pytest.mark.parametrize("gold", ["9^{9^9}", "(" * 500 + "5" + ")" * 500, "7" * 100, "(9^9)!"])
def test_of_a_gold_beyond_the_bounds_nothing_but_its_spelling_is_compared(gold):
    """It is of an environment that checks none: no verdict, at once, and not a wrong one."""
    with Grader(workers=1, limit_s=0.001) as grader:
        found = grader.same_answer("5", gold)
        assert (found.verdict, found.method[:13]) == (None, "gold refused:")
        assert grader.same_answer(gold, gold).verdict is True


TEXT = st.text(st.characters() | st.sampled_from("*-<>[].?!\"'\n ,pPsS"))


@given(TEXT, TEXT)
def test_text_answers_are_compared_without_an_exception(answer, gold):
    assert same_text(gold.split("\n")[0], gold)
    assert same_text(answer, gold) == any(normal_text(answer) == normal_text(one) for one in gold.split("\n"))
    assert normal_text(normal_text(answer)) == normal_text(answer)


@given(st.text(st.sampled_from("*-a \n\t\r\x1d"), max_size=30))
def test_bullets_are_those_of_the_published_expressions(response):
    published = (r"^\s*\*[^\*].*$", r"^\s*-.*$")
    found = sum(len(re.findall(pattern, response, flags=re.MULTILINE)) for pattern in published)
    assert bullets(response) == found
