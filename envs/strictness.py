r"""Compare as graders do that want one spelling: for figures beside published ones, not for rewards.

"literal" is lm-evaluation-harness's exact match of gsm8k: equal text but for commas, dollars and a last
point. "hendrycks" compares normalised spelling, as the MATH repository does: order counts in lists and sums.
"prm800k" takes equal values with two exceptions: a gold fraction and a gold integer have one form each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from envs.notation import clean, sides, spelling, without_unit
from envs.numbers import parse_number
from envs.structures import parts_of
from envs.types import Mode

Strictness: TypeAlias = Literal["value", "literal", "hendrycks", "prm800k"]

STRICTNESS: Mapping[Mode, Strictness] = {
    "gsm8k_strict_match": "literal",
    "gsm8k_flexible_extract": "literal",
    "hendrycks": "hendrycks",
    "prm800k": "prm800k",
}
_FRACTION = re.compile(r"-?\\frac\{-?\d+\}\{\d+\}|-?\d+/\d+", re.ASCII)
_INTEGER = re.compile(r"-?\d+(?:,\d{3})*", re.ASCII)


def literal(answer: str, gold: str) -> bool:
    """Return whether both are the same text but for commas, dollars, a last point and case.

    >>> literal("$1,200.", "1200"), literal("18.0", "18")
    (True, False)
    """
    return _literal(answer) == _literal(gold)


def same_spelling(answer: str, gold: str) -> bool:
    r"""Return whether both are spelled alike once notation is normalised.

    >>> same_spelling(r"10\text{ units}", "10"), same_spelling("4, 10", "10, 4"), same_spelling("1+x", "x+1")
    (True, False, False)
    """
    return _spelled(answer) == _spelled(gold)


def breaks_form(answer: str, gold: str) -> bool:
    r"""Return whether an answer breaks the form of "prm800k": lowest terms, an integer, the order.

    >>> breaks_form(r"\frac{2}{4}", r"\frac{1}{2}"), breaks_form("0.5", "1/2"), breaks_form("8/2", "4")
    (True, False, True)
    """
    plain, truth = sides(clean(answer))[-1], sides(clean(gold))[-1]
    if _FRACTION.fullmatch(truth) and _FRACTION.fullmatch(plain):
        return plain != truth
    if _INTEGER.fullmatch(truth):
        return not _INTEGER.fullmatch(plain.lstrip("$"))
    left, right = parts_of(clean(answer)), parts_of(clean(gold))
    return bool(left and right) and _disordered(left.items if left else (), right.items if right else ())


def _disordered(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    numbers = [[parse_number(item) for item in items] for items in (left, right)]
    known = all(number for side in numbers for number in side)
    return known and [n.value for n in numbers[0] if n] != [n.value for n in numbers[1] if n]


def _literal(text: str) -> str:
    return re.sub(r"[,$]|\.$", "", text.strip()).casefold()


def _spelled(text: str) -> str:
    plain = without_unit(sides(clean(text))[-1]).removesuffix("%")
    return r"\frac12" if plain == "0.5" else spelling(plain).replace("/", "")
