r"""Compare as graders do that want one spelling: for figures beside published ones, not for rewards.

"literal" is lm-evaluation-harness's exact match of gsm8k: equal text but for commas, dollars and a last
point. "hendrycks" compares normalised spelling, as the MATH repository does: order counts in lists and sums.
"minerva" is the exact match of lm-evaluation-harness's minerva_math: equal as Minerva normalises text, or two
single formulas of the same value. "prm800k" takes equal values with two exceptions: a gold fraction and a
gold integer have one form each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from envs.answers.notation import clean, sides
from envs.answers.structures import out_of_order
from envs.grading.spellings import SpellingError, math_spelling
from envs.types import Mode

Strictness: TypeAlias = Literal["value", "literal", "hendrycks", "minerva", "prm800k"]

STRICTNESS: Mapping[Mode, Strictness] = {
    "gsm8k_strict_match": "literal",
    "gsm8k_flexible_extract": "literal",
    "hendrycks": "hendrycks",
    "minerva_exact": "minerva",
    "prm800k": "prm800k",
}
_FRACTION = re.compile(r"-?\\frac\{-?\d+\}\{\d+\}|-?\d+/\d+", re.ASCII)
_NO_FORMULA = re.compile(
    r"[%<>,;]|\\[{}()\[\]]|\\(?:text\w*|mbox|begin|in|cup|cap|pm|mp|infty|[lg]eq?|lt|gt|neq?|cfrac"
    r"|math(?:rm|bf)|operatorname)(?![A-Za-z])|^\[|\]$|(?<!\d)\.\d|\d\.(?!\d)|\\$|_\{?\d"
)
_INTEGER = re.compile(r"-?\d+(?:,\d{3})*", re.ASCII)


def literal(answer: str, gold: str) -> bool:
    r"""Return whether both are the same text but for commas, dollars, a last point and case.

    All up to the last ``#### `` is left out: the gold answer may be a whole solution of GSM8K.

    >>> literal("$1,200.", "1200"), literal("18.0", "18"), literal("1200", "2 + 2\n#### 1,200")
    (True, False, True)
    """
    return _literal(answer) == _literal(gold)


def same_spelling(answer: str, gold: str) -> bool:
    r"""Return whether both are spelled alike in the MATH repository's normal form.

    Where its rules trip over one of them, both are compared as they stand, as there.

    >>> same_spelling(r"10\text{ units}", "10"), same_spelling("4, 10", "10, 4"), same_spelling("1+x", "x+1")
    (True, False, False)
    >>> same_spelling("x/2", "x/2"), same_spelling("x / 2", "x/2")
    (True, False)
    """
    try:
        return math_spelling(answer) == math_spelling(gold)
    except SpellingError:
        return answer == gold


def is_formula(text: str) -> bool:
    r"""Return whether text in Minerva's normal form is one formula: no list, relation, unit, text or matrix.

    >>> [is_formula(text) for text in (r"\frac{1}{2}", "x+1", "2,1", "x<3", r"50\%")]
    [True, True, False, False, False]
    """
    return not _NO_FORMULA.search(text)


def breaks_form(answer: str, gold: str) -> bool:
    r"""Return whether an answer breaks the form of "prm800k": lowest terms, an integer, the order.

    >>> breaks_form(r"\frac{2}{4}", r"\frac{1}{2}"), breaks_form("0.5", "1/2"), breaks_form("8/2", "4")
    (True, False, True)
    >>> breaks_form("y,x", "x,y"), breaks_form("x,y", "x,y")
    (True, False)
    """
    plain, truth = sides(clean(answer))[-1], sides(clean(gold))[-1]
    if _FRACTION.fullmatch(truth) and _FRACTION.fullmatch(plain):
        return plain != truth
    if _INTEGER.fullmatch(truth):
        return not _INTEGER.fullmatch(plain.lstrip("$"))
    return out_of_order(clean(answer), clean(gold))


def _literal(text: str) -> str:
    plain = text.strip().replace(",", "").replace("$", "")
    return plain.rpartition("#### ")[2].removesuffix(".").lower()
