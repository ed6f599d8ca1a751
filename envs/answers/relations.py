r"""Relations and names: an equation, an inequality or a chain of them, and what a value is said of.

The principle of relations: two are the same where one is a constant multiple of the other, all moved to one
side. So ``y=2x+1``, ``x=\frac{y-1}{2}`` and ``2x-y+1=0`` are one line, and ``-x>-3`` is ``x<3``; for an
inequality the constant is positive. Relations that are both linear and no such multiples are different,
and so are two without a variable that differ by more than a sign: ``f(3)=5`` and ``f(3)=6``. Nothing else is
decided here, and a sign of negation that has no inverse in the grammar (``\not<``) makes no relation.

The principle of names: ``AB=5`` and ``AC=5`` are of two things, as they are written alike, letter for letter
and digit for digit, and some of these differ. Names of different forms may be of one thing: ``\angle A`` and
``\angle BAC``. What is done to a letter that has a value is not the letter: ``x^2``, ``-x``, ``|z|``; so with
``AB^2``, but the length of a segment has its name. A derivative is not its function, nor an inverse what it
inverts. Nothing is said of a letter alone, as ``y=2x`` may be solved for x, of words and of sums.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from envs.answers.formulas import called, differences_at, is_close
from envs.answers.notation import DERIVATIVE, name_of, spelling, statement
from envs.answers.parts import split_at

T = TypeVar("T")

MAX_RELATIONS = 8
_SIGNS = {"=": "=", "<": "<", ">": ">", r"\le": "<=", r"\ge": ">=", r"\neq": "!="}
_MIRRORED = {">": "<", ">=": "<="}
_UNREAD = re.compile(r"\\not(?![A-Za-z])|\\n?(?:subset|supset|in|ni|mid|parallel)(?:eq)?(?![A-Za-z])|[≮≯≰≱∤]")
"""What no rule here may read over."""
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"(?<![A-Za-z\\])(?![a-z]{2,3}\()[A-Za-z]*[a-z]{2,}")
_FUNCTION = re.compile(r"(?:[A-Za-z]|\\[A-Za-z]{2,7})(?:\^\{?-1\}?|'*)(?:\([a-z]\))?")
_VARIABLE = re.compile(r"(?<![A-Za-z\\])(?![ei])[A-Za-z](?![A-Za-z])")
_SAME = r"(?:m\s?)?(?:\\(?:vec|angle|triangle|overrightarrow|hat)\s?)?\{?%s\}?(?:_\{?\w+\}?|\([^()]*\))*"
_LENGTH = r"(?:\||\\overline\{)?%s[|}]?"
_OF = re.compile(r"(?:P|E|D|V|Var|Cov|Pr|\\Pr|\\mathbb\{[EP]\})\s?[(\[].+")


class Relation(NamedTuple):
    """``left`` and ``right`` of one sign: "=", "<", "<=" or "!=": greater is written as less."""

    sign: str
    left: str
    right: str


def relations_of(text: str) -> tuple[Relation, ...]:
    """Return the relations of a chain from left to right; none for a text without a sign, or not read."""
    if _UNREAD.search(text):
        return ()
    sides, signs = split_at(text, frozenset(_SIGNS))
    if not signs or len(signs) > MAX_RELATIONS or not all(sides):
        return ()
    found = [Relation(_SIGNS[sign], *sides[k : k + 2]) for k, sign in enumerate(signs)]
    return tuple(
        Relation(_MIRRORED[sign], right, left) if sign in _MIRRORED else Relation(sign, left, right)
        for sign, left, right in found
    )


def same_relations(answer: Sequence[Relation], gold: Sequence[Relation]) -> bool | None:
    r"""Return whether two chains say the same, each relation of one with one of the other; None if unknown.

    >>> def same(a, b): return same_relations(relations_of(a), relations_of(b))
    >>> same("y=2x+1", r"x=\frac{y-1}{2}"), same("y=2x+1", "y=2x-1"), same("-x>-3", "x<3"), same("x>3", "x<3")
    (True, False, True, False)
    """
    if len(answer) != len(gold) or not gold:
        return None
    return matched(answer, gold, same_relation)


def matched(left: Sequence[T], right: Sequence[T], same: Callable[[T, T], bool | None]) -> bool | None:
    """Return whether each of one side is one of the other; None if unknown."""
    table = [[same(a, b) for b in right] for a in left]
    lines = [*table, *([row[k] for row in table] for k in range(len(right)))]
    if any(all(verdict is False for verdict in line) for line in lines):
        return False
    return True if all(True in line for line in lines) else None


def same_relation(answer: Relation, gold: Relation) -> bool | None:
    """Return whether two relations are one, moved to one side, up to a constant; None if unknown."""
    functions = called(f"{answer.left}={answer.right}", f"{gold.left}={gold.right}")
    above, below = (differences_at(side.left, side.right, (0, 1, 2, 3), functions) for side in (answer, gold))
    if above is None or below is None:
        return None
    # linear where the value in the midst of two points is the mean of theirs
    linear = all(is_close(2 * values[3], values[0] + values[1]) is True for values in (above, below))
    if answer.sign != gold.sign or not all((*above, *below)):
        return False if linear and answer.sign != gold.sign else None
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    if all(is_close(values[0], values[1]) is not False for values in (above, below)):
        if not is_close(abs(ratios[0]), 1):  # any two constants are multiples: f(3)=5 and f(3)=6
            return False
        if not functions:
            return None
    if all(is_close(ratio, ratios[0]) for ratio in ratios):
        positive = ratios[0].imag == 0 and ratios[0].real > 0
        return bool(positive) or gold.sign in ("=", "!=")
    return False if linear else None


def names_differ(answer: str, gold: str) -> bool:
    """Return whether two texts (in the form of ``clean``) state values of two things."""
    left, right, done = name_of(answer), name_of(gold), statement(answer)
    alone = re.search(rf"(?<![A-Za-z\\]){re.escape(right)}(?![A-Za-z])", done) and not _WORD.search(done)
    if right and alone and not _VARIABLE.search(gold[len(right) :]):
        same = (_SAME,) if len(right) == 1 else (_SAME, _LENGTH)
        return not any(re.fullmatch(form % re.escape(right), done) for form in same)
    if not left or not right or left in gold[len(right) :] or right in answer[len(left) :] or left == right:
        return False
    if _FUNCTION.fullmatch(left) and _FUNCTION.fullmatch(right) and "(" in left and "(" in right:
        return left.casefold() != right.casefold()
    if _OF.fullmatch(left) and _OF.fullmatch(right) and left[0] == right[0]:
        left, right = (
            name.replace("[", "(").replace("]", ")").replace(r"\mid", "|") for name in (left, right)
        )
        same_signs = _form(left) == _form(right) and _signs(left) == _signs(right) and "|" not in left
        return not same_signs and spelling(left) != spelling(right)
    derived = [DERIVATIVE.fullmatch(name) is not None for name in (left, right)]
    if any(derived):
        return not all(derived) and bool(_FUNCTION.fullmatch(right if derived[0] else left))
    if min(len(left), len(right)) < 2 or _WORD.search(left) or _WORD.search(right):
        return False
    if ("^{-1}" in left) != ("^{-1}" in right):
        return left.replace("^{-1}", "") == right.replace("^{-1}", "")
    return _form(left) == _form(right) and (r"\angle" in left or _signs(left) != _signs(right))


def _form(name: str) -> str:
    """Return what is not of one thing or another in a name: all but its letters and digits."""
    plain = re.sub(r"\d+", "0", re.sub(r"[a-z]", "a", re.sub(r"[A-Z]", "A", _COMMAND.sub("\\\\", name))))
    return spelling(plain) + " ".join(_COMMAND.findall(name))


def _signs(name: str) -> Counter[str]:
    return Counter(re.findall(r"[A-Za-z]|\d+", _COMMAND.sub(" ", name)))
