r"""Decide whether two formulas are equal from their values at a few points, to a hundred digits.

Different values at a point where both have one prove two formulas different. Equal ones at three points, to
ninety digits, are taken as a proof of equality: an answer is short, and whoever builds a near miss knows the
answer. What is equal at positive points alone (``|x|`` and ``x``), or only nearly, is left to the library.
"""

from __future__ import annotations

import threading
from typing import Any

from envs.answers.arithmetic import TooLarge, Unknown, context
from envs.answers.expressions import Node, parse_formula

_NEGATIVE = 2
_NO_VALUE = (Unknown, ArithmeticError, ValueError)  # the last two are mpmath's, at poles
_POINTS = (0, 1, _NEGATIVE)
_LOCK = threading.Lock()  # parts of mpmath change the precision of their context for a moment


def same_value(answer: str, gold: str) -> bool | None:
    r"""Return whether both formulas (in the form of ``notation.clean``) are equal; None if unknown.

    >>> same_value(r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"), same_value("x^2+2x+1", "(x+1)^2")
    (True, True)
    >>> same_value("x+1", "x+2"), same_value("|x|", "x"), same_value("e^{i\\pi}", "-1")
    (False, None, True)
    >>> same_value("9^{9^{9}}", "5"), same_value(r"\int x dx", "5")
    (False, None)
    """
    with _LOCK:
        truth, claim = parse_formula(gold), parse_formula(answer)
        if truth is None or claim is None:
            return None
        return _same(claim, truth)


def _same(claim: Node, truth: Node) -> bool | None:
    verdicts = [_same_at(claim, truth, point) for point in _POINTS]
    if verdicts[0] is False or verdicts[1] is False:
        return False
    return True if verdicts[0] and verdicts[1] and verdicts[2] else None


def _same_at(claim: Node, truth: Node, point: int) -> bool | None:
    try:
        right = truth(point)
    except _NO_VALUE:
        return None
    try:
        return _close(claim(point), right)
    except TooLarge:
        return False
    except _NO_VALUE:
        return None


def _close(left: Any, right: Any) -> bool | None:
    mp = context()
    scale = max(abs(left), abs(right))
    difference = abs(left - right)
    if difference <= scale * mp.mpf(10) ** -90:
        return True
    if scale < mp.mpf(10) ** -70:
        return None  # a hundred digits do not separate zero from a small number
    return False if difference > scale * mp.mpf(10) ** -80 else None
