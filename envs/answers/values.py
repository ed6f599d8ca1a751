r"""Decide whether two formulas are equal from their values at a few points, to a hundred digits.

Different values at a point where both have one prove two formulas different. Equal ones at three points, to
ninety digits, are taken as a proof of equality: an answer is short, and whoever builds a near miss knows the
answer. Rounding is compared at an integer as well. What is equal at positive points alone (``|x|`` and
``x``), or only nearly, is left to the library; but where both are real at positive points and neither is at a
negative one, as in ``\log x``, that point is outside of what they mean.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from envs.answers.arithmetic import TooLarge, Unknown, context
from envs.answers.expressions import Node, called, parse_formula
from envs.answers.numbers import parse_number

_NEGATIVE = 2
NO_VALUE = (Unknown, ArithmeticError, ValueError)  # the last two are mpmath's, at poles
_POINTS = (0, 1, _NEGATIVE)
_INTEGER = 4
_ROUNDING = ContextVar("rounding", default=False)
_DECIMAL = re.compile(r"\d?\.\d", re.ASCII)
_PLACES = re.compile(r"-?\d{0,30}\.(\d{2,60})", re.ASCII)
_ROUNDED = re.compile(r"\\l(?:floor|ceil)")
_FAMILY = re.compile(r"(?=[^a-z]*[a-z])(.*)\+ ?C")
_LOCK = threading.Lock()  # parts of mpmath change the precision of their context for a moment


def same_value(answer: str, gold: str) -> bool | None:
    r"""Return whether both formulas (in the form of ``notation.clean``) are equal; None if unknown.

    >>> same_value(r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"), same_value("x^2+2x+1", "(x+1)^2")
    (True, True)
    >>> same_value("x+1", "x+2"), same_value("|x|", "x"), same_value("e^{i\\pi}", "-1")
    (False, None, True)
    >>> same_value("9^{9^{9}}", "5"), same_value(r"\int x dx", "5")
    (False, None)
    >>> same_value("2F(x)", "F(2x)"), same_value(r"\log(x^3)", r"3\log x"), same_value("x^2+C", "x^2+1+C")
    (False, True, True)
    >>> same_value(r"\lceil x \rceil", r"\lfloor x \rfloor+1")
    False
    """
    families = [_FAMILY.fullmatch(text) for text in (answer, gold)]
    functions = called(answer, gold)
    if families[0] and families[1] and _differ_by_a_constant(families[0][1], families[1][1], functions):
        return True
    with _LOCK:
        truth, claim = parse_formula(gold, functions), parse_formula(answer, functions)
        if truth is None or claim is None:
            return None
        return _same(claim, truth, whole=bool(_ROUNDED.search(answer + gold)))


def _differ_by_a_constant(answer: str, gold: str, functions: frozenset[str]) -> bool:
    """Whether two formulas are antiderivatives of one: the constant of integration takes up the rest."""
    differences = differences_at(answer, gold, _POINTS, functions)
    return differences is not None and all(is_close(differences[0], other) for other in differences)


def _same(claim: Node, truth: Node, *, whole: bool) -> bool | None:
    verdicts = [_same_at(claim, truth, point) for point in (_POINTS + (_INTEGER,) * whole)]
    if False in (*verdicts[:_NEGATIVE], *verdicts[_NEGATIVE + 1 :]):
        return False
    return True if all(verdicts) else None


def _same_at(claim: Node, truth: Node, point: int) -> bool | None:
    try:
        right = truth(point)
    except NO_VALUE:
        return None
    try:
        left = claim(point)
        outside = point == _NEGATIVE and not (is_real(left) or is_real(right)) and is_real(truth(0))
        return outside or is_close(left, right)
    except TooLarge:
        return False
    except NO_VALUE:
        return None


def is_real(value: Any) -> bool:
    """Whether a value is real, but for the noise of its last digits."""
    return abs(value.imag) < context().mpf(10) ** -70


def differences_at(
    left: str, right: str, points: Sequence[int], functions: frozenset[str] = frozenset()
) -> list[Any] | None:
    """Return the first formula's values less the second's; None where one is not read or has no value."""
    with _LOCK:
        a, b = parse_formula(left, functions), parse_formula(right, functions)
        try:
            return [a(point) - b(point) for point in points] if a and b else None
        except NO_VALUE:
            return None


def constant_of(text: str) -> Any:
    r"""Return the value of a formula without variables; None for any other text.

    >>> [str(constant_of(text))[:4] for text in (r"\frac{3}{2}", r"\sqrt{2}", "x", "1/0")]
    ['1.5', '1.41', 'None', 'None']
    """
    with _LOCK:
        if number := parse_number(text):
            return (
                context().mpf(number.value.numerator) / number.value.denominator
                if not number.measure
                else None
            )
        node = parse_formula(text)
        if node is None:
            return None
        try:
            first, second = node(0), node(1)
        except NO_VALUE:
            return None
        return first if is_close(first, second) else None


@contextmanager
def rounding(on: bool) -> Iterator[None]:
    """Let decimals stand for what they round (``same_rounded``), within a ``with`` of one thread."""
    token = _ROUNDING.set(on)
    try:
        yield
    finally:
        _ROUNDING.reset(token)


def same_rounded(left: str, right: str) -> bool:
    r"""Return whether a decimal of two places or more rounds the other closed form, under ``rounding``.

    >>> with rounding(True):
    ...     [same_rounded(*pair) for pair in (("0.33", "1/3"), ("1.42", r"\sqrt{2}"), ("0.3", "1/3"))]
    [True, False, False]
    >>> same_rounded("0.33", "1/3")
    False
    """
    if not _ROUNDING.get() or (_DECIMAL.search(left) is None) == (_DECIMAL.search(right) is None):
        return False
    decimal, form = (left, right) if _DECIMAL.search(left) else (right, left)
    places = _PLACES.fullmatch(decimal.replace(" ", ""))
    value = constant_of(form) if places else None
    if places is None or value is None or value.imag:
        return False
    return abs(context().mpf(places[0]) - value.real) <= context().mpf(10) ** -len(places[1]) / 2


def is_close(left: Any, right: Any) -> bool | None:
    """Return whether two values are equal to ninety digits; None where they are too near to tell."""
    mp = context()
    scale = max(abs(left), abs(right))
    difference = abs(left - right)
    if difference <= scale * mp.mpf(10) ** -90:
        return True
    if scale < mp.mpf(10) ** -70:
        return None  # a hundred digits do not separate zero from a small number
    return False if difference > scale * mp.mpf(10) ** -80 else None
