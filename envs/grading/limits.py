r"""The pre-filter: refuse what no sane answer contains before anything costly reads it.

A refusal means "wrong", not "timeout": writing ``9^{9^{9^9}}`` must not be worth more than a wrong number.
All rules are linear in the length of the answer, but that of the size, which reads each part of a short one.
"""

from __future__ import annotations

import re
import unicodedata

from envs.grading.sizes import is_too_large

MAX_CHARS = 1000
MAX_DIGITS = 60
MAX_DEPTH = 9
MAX_EXPONENT = 10_000
MAX_SYMBOLIC_EXPONENT = 40
MAX_FACTORIAL = 999
MAX_ITEMS = 64
MAX_CELLS = 36
MAX_FUNCTIONS = 16
MAX_HEAVY_CHARS = 300
MAX_HEAVY_DEPTH = 5
MAX_HEAVY_EXPONENT = 8
MAX_HEAVY_FUNCTIONS = 6

_DIGITS = re.compile(rf"\d{{{MAX_DIGITS + 1}}}", re.ASCII)
_EXPONENT = re.compile(r"(?:\^|\*\*)\s*[{(]*\s*-?\s*(\d+)", re.ASCII)
_GROUP_EXPONENT = re.compile(r"[)}\]A-Za-z]\s*(?:\^|\*\*)\s*[{(]*\s*-?\s*(\d+)", re.ASCII)
_FACTORIAL = re.compile(rf"\d{{{len(str(MAX_FACTORIAL)) + 1},}}\s*[)}}]*!|!\s*[)}}]*!", re.ASCII)
_TOWER = re.compile(r"(?:(?:\^|\*\*)\s{0,4}(?:\d{1,60}|[A-Za-z]|[{(][^})^*]{0,30})\s{0,4}(?=\^|\*\*)){2}")
_FENCE = re.compile(r"\\(l|r)(?:floor|ceil|angle|vert|Vert|brace|brack)(?![A-Za-z])")
_BINOMIAL = re.compile(r"\\[dt]?binom\s*\{\s*\d{5,}", re.ASCII)
_FUNCTION = re.compile(
    r"\\(?:sin|cos|tan|cot|sec|csc|arc[a-z]+|log|ln|exp|sqrt|left\||min|max|gcd)(?![A-Za-z])"
)
_SELF_POWER = re.compile(r"([A-Za-z])\s{0,3}(?:\^|\*\*)\s{0,3}[{(]?\s{0,3}\1")


def refusal(answer: str) -> str | None:
    r"""Return the name of the bound that ``answer`` breaks; None if it may be read.

    >>> refusal(r"\frac{1}{2}"), refusal("9^9^9^9"), refusal("1000000!"), refusal("5\x00")
    (None, 'tower', 'factorial', 'characters')
    >>> refusal("9^{9^9}"), refusal("2^{2^{2}}")
    ('size', None)
    >>> refusal("x^2y^2z^2 + 6z^5+15z^4-22z^3"), refusal("2^{2^{2^{2}}}")
    (None, 'tower')
    """
    if len(answer) > MAX_CHARS:
        return "length"
    rules = (
        ("characters", _has_strange_characters(answer)),
        ("code", "__" in answer),
        ("digits", _DIGITS.search(answer) is not None),
        ("nesting", _depth(answer) > MAX_DEPTH),
        ("tower", _TOWER.search(answer) is not None),
        ("exponent", _largest(_EXPONENT, answer) > MAX_EXPONENT),
        (
            "power of a sum",
            _largest(_GROUP_EXPONENT, answer) > MAX_SYMBOLIC_EXPONENT and not _plain_base(answer),
        ),
        ("factorial", _FACTORIAL.search(answer) is not None),
        ("binomial", _BINOMIAL.search(answer) is not None),
        ("items", answer.count(",") > MAX_ITEMS),
        ("cells", answer.count("&") > MAX_CELLS),
        ("functions", len(_FUNCTION.findall(answer)) > MAX_FUNCTIONS),
    )
    bound = next((name for name, broken in rules if broken), None)
    return bound or ("size" if is_too_large(answer) else None)


def heavier(answer: str, gold: str) -> str | None:
    r"""Return the name of the bound by which an answer is far heavier than the gold answer, if it is.

    For answers that the exact rules cannot decide: a library may never finish expanding or solving them, and
    an answer that is never graded would be worth more than a wrong one.
    """
    rules = (
        ("length", len(answer) > MAX_HEAVY_CHARS + 2 * len(gold)),
        ("nesting", _depth(answer) > max(MAX_HEAVY_DEPTH, _depth(gold))),
        (
            "power",
            _largest(_GROUP_EXPONENT, answer) > max(MAX_HEAVY_EXPONENT, _largest(_GROUP_EXPONENT, gold)),
        ),
        (
            "functions",
            len(_FUNCTION.findall(answer)) > max(MAX_HEAVY_FUNCTIONS, len(_FUNCTION.findall(gold))),
        ),
        ("variable exponent", bool(_SELF_POWER.search(answer)) and not _SELF_POWER.search(gold)),
    )
    return next((name for name, broken in rules if broken), None)


def _has_strange_characters(answer: str) -> bool:
    """Whether there are control or format characters, or digits that are not ASCII digits."""
    if answer.isascii():
        return any((ord(c) < 32 and c not in "\t\n\r") or ord(c) == 127 for c in answer)
    return any(
        (kind := unicodedata.category(c)) in ("Cf", "Cs", "Co", "Cn")
        or (kind == "Cc" and c not in "\t\n\r")
        or (kind == "Nd" and not c.isascii())
        for c in answer
    )


def _depth(answer: str) -> int:
    depth = deepest = 0
    for c in _FENCE.sub(lambda fence: "(" if fence[1] == "l" else ")", answer):
        if c in "({[":
            depth += 1
            deepest = max(deepest, depth)
        elif c in ")}]":
            depth = max(0, depth - 1)
    return deepest


def _largest(pattern: re.Pattern[str], answer: str) -> int:
    return max((int(digits[:12]) for digits in pattern.findall(answer)), default=0)


def _plain_base(answer: str) -> bool:
    """Whether the answer has no letter, so that every power is one of numbers."""
    return not re.search(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])", answer)
