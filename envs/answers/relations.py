r"""Relations: an equation, an inequality or a chain of them, compared by what satisfies it.

The principle: two relations are the same where one is a constant multiple of the other, all moved to one
side. So ``y=2x+1``, ``x=\frac{y-1}{2}`` and ``2x-y+1=0`` are one line, and ``-x>-3`` is ``x<3``; for an
inequality the constant is positive. Relations that are both linear and no such multiples are different,
and so are two without a variable that differ by more than a sign: ``f(3)=5`` and ``f(3)=6``.
Nothing else is decided here. A sign of negation that has no inverse in the grammar (``\not<``) makes no
relation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envs.answers.expressions import called
from envs.answers.parts import split_at
from envs.answers.values import differences_at, is_close

_SIGNS = {"=": "=", "<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", r"\neq": "!="}
_MIRRORED = {">": "<", ">=": "<="}
SIGN = re.compile(r"\\not(?![A-Za-z])|\\n?(?:subset|supset|in|ni|mid|parallel)(?:eq)?(?![A-Za-z])|[≮≯≰≱∤]")
"""What no rule here may read over."""
_POINTS = (0, 1, 2, 3)
MAX_RELATIONS = 8


@dataclass(frozen=True, slots=True)
class Relation:
    """``left`` and ``right`` of one sign: "=", "<", "<=" or "!=": greater is written as less."""

    sign: str
    left: str
    right: str


def relations_of(text: str) -> tuple[Relation, ...]:
    r"""Return the relations of a chain from left to right; none for a text without a sign, or one not read.

    >>> relations_of(r"1<x\le 3")
    (Relation(sign='<', left='1', right='x'), Relation(sign='<=', left='x', right='3'))
    >>> relations_of("3>x"), relations_of("x+1"), relations_of("<3"), relations_of(r"x \not< 3")
    ((Relation(sign='<', left='x', right='3'),), (), (), ())
    """
    if SIGN.search(text):
        return ()
    sides, signs = split_at(text, frozenset(_SIGNS))
    if not signs or len(signs) > MAX_RELATIONS or not all(sides):
        return ()
    return tuple(_relation(_SIGNS[sign], *sides[k : k + 2]) for k, sign in enumerate(signs))


def _relation(sign: str, left: str, right: str) -> Relation:
    return Relation(_MIRRORED[sign], right, left) if sign in _MIRRORED else Relation(sign, left, right)


def same_relations(answer: Sequence[Relation], gold: Sequence[Relation]) -> bool | None:
    r"""Return whether two chains say the same, each relation of one with one of the other; None if unknown.

    >>> def same(a, b): return same_relations(relations_of(a), relations_of(b))
    >>> same("y=2x+1", r"x=\frac{y-1}{2}"), same("2x-y+1=0", "y=2x+1"), same("y=2x+1", "y=2x-1")
    (True, True, False)
    >>> same("-x>-3", "x<3"), same("x>3", "x<3"), same(r"x\le 3", "x<3"), same("1<x<3", "3>x>1")
    (True, False, False, True)
    >>> same("y^2=x", "y=x^{1/2}") is None, same("f(3)=5", "f(3)=6")
    (True, False)
    """
    if len(answer) != len(gold) or not gold:
        return None
    table = [[same_relation(a, b) for b in gold] for a in answer]
    rows = [*table, *([row[k] for row in table] for k in range(len(gold)))]
    if any(all(verdict is False for verdict in row) for row in rows):
        return False
    return True if all(any(verdict is True for verdict in row) for row in rows) else None


def same_relation(answer: Relation, gold: Relation) -> bool | None:
    """Return whether two relations are one, moved to one side, up to a constant; None if unknown."""
    functions = called(f"{answer.left}={answer.right}", f"{gold.left}={gold.right}")
    above, below = (differences_at(side.left, side.right, _POINTS, functions) for side in (answer, gold))
    if above is None or below is None:
        return None
    linear = _is_linear(above) and _is_linear(below)
    if answer.sign != gold.sign or not all((*above, *below)):
        return False if linear and answer.sign != gold.sign else None
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    if _is_constant(above) and _is_constant(below):  # any two are multiples: f(3)=5 and f(3)=6
        if not is_close(abs(ratios[0]), 1):
            return False
        if not functions:
            return None
    if all(is_close(ratio, ratios[0]) for ratio in ratios):
        positive = ratios[0].imag == 0 and ratios[0].real > 0
        return bool(positive) or gold.sign in ("=", "!=")
    return False if linear else None


def _is_constant(values: Sequence[Any]) -> bool:
    """Whether the value is the same at two points: no variable stands in it, but a function may."""
    return is_close(values[0], values[1]) is not False


def _is_linear(values: Sequence[Any]) -> bool:
    """Whether the value in the midst of two points is the mean of theirs."""
    return is_close(2 * values[3], values[0] + values[1]) is True
