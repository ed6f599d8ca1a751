r"""Find false equations of plain numbers in a text: the visible sign of an arithmetic slip.

A part of a chain ``a = b = c`` is parsed if it is a sum, product, quotient or power of numerals, in plain
text or LaTeX. The text next to it must not belong to it: no letter, root, factorial or index, and no word
that multiplies (of, half, dozen). Parts that cannot be parsed are skipped. These equations also count as
true, because they may be meant in another way:

- a rounded or truncated result that is equal up to its last decimal place, or is within 1%, if decimals or
  quotients are involved (these may have been rounded before);
- running totals (``3 + 4 = 7 + 2 = 9``): a part may equal the first numeral of the next part;
- a difference without its sign, and a percentage with or without the percent sign;
- results in another unit (``2 * 30 = 1 hour``);
- equations on a line that asks, supposes or denies something, and congruences.

The text is scanned once, in time linear in its length.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

from debate.types import Span

LONGEST = 1 << 16  # number of characters of a text that are scanned
MOST_TOKENS, MOST_DIGITS, MOST_POWER = 120, 30, 64
"""Limits of a part's tokens, a numeral's digits and an exponent; a part beyond a limit is skipped."""
NEAR = Fraction(1, 100)  # relative error allowed if the operands may have been rounded
_RATIOS = (7, 10, 12, 16, 24, 36, 52, 60, 100, 365, 1000, 3600)
CONVERSIONS = frozenset(Fraction(*pair) for n in _RATIOS for pair in ((n, 1), (1, n)))
"""Ratios of units: a result with a unit that is off by one of these ratios may be in another unit."""
_GROUPS = {
    "number": r"(?:\d{1,3}(?:(?:,|\{,\}|\\,)\d{3})+(?!\d)|\d+)(?:\.\d+)?|(?<![\w.])\.\d+",
    "skip": r"<<[^<>\n]{0,200}>>|\\[,;! ()\[\]]|\\?\$|&|\\(?:left|right|displaystyle|q?quad)(?![A-Za-z])"
    r"|\*\*|[ \t\u00a0]",  # including the calculator annotations of grade-school-math
    "fraction": r"\\[dtc]?frac(?=\s?\{)",
    "times": r"\\times(?![a-z])|\\cdot(?![a-z])|[*×·⋅]|(?<=\d )x(?= \d)|(?<=\d)x(?=\d)",
    "divide": r"\\div(?![a-z])|[/÷]",
    "plus": r"\+",
    "minus": r"[-−–]",
    "power": r"\^",
    "open": r"[({]",
    "close": r"[)}]",
    "equals": r"=(?![=>])",
    "word": r"\\text\s?\{[^{}]{0,60}\}|[A-Za-z]{2,}(?:'[a-z]+)?|(?<![A-Za-z\\])[aAI](?![A-Za-z])",
    "end": r"\n|[,;.:](?!\d)|[?]",
    "other": r"\\[A-Za-z]+|.",
}
_TOKEN = re.compile("|".join(f"(?P<{name}>{form})" for name, form in _GROUPS.items()), re.DOTALL)
_PERCENT = re.compile(r"\s?\\?%")
_BOUND = re.compile(
    r"of|twice|thrice|double|triple|half|quarter|third|dozen|minus|plus|times|by|over|per|negative|squared?|root"
    r"|cubed|to|less|more|base|log|ln|sin|cos|tan|mod",
    re.IGNORECASE,
)
"""Words that change the meaning of the numbers after them."""
_DOUBTED = re.compile(
    r"\bmod\b|\\pmod|\\equiv|≡|\\neq|≠|\bnot\b|n't\b|\bincorrect|\bwrong|\bmistake|\bcontradict|\bsuppos|\bassum"
    r"|\bif\b|\bremainder\b|\?",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\s{0,2}(?:\\text\s?\{\s{0,2})?\\?([A-Za-z%$°¢]{1,12})")
_SIGNS = {"plus": "+", "minus": "-", "times": "*", "divide": "/", "power": "**"}
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda base, exponent: base**exponent.numerator,
}
_SCALE = re.compile(r"[kmb]|bn|thousand|[mbtr]+illion|hundred|dozen|lakh|crore", re.IGNORECASE)


class Term(NamedTuple):
    """A part of a chain of equations: its value, its first numeral, and how it is written.

    ``loose`` says whether the part has quotients or decimals. ``places`` is the number of digits after the
    decimal point if the part is a single numeral, else 0.
    """

    value: Fraction
    first: Fraction
    calculated: bool
    loose: bool
    percent: bool
    places: int
    start: int
    end: int


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    percent: bool


class _Unreadable(ValueError):
    """The tokens are not an expression of numbers."""


def false_equation(text: str) -> Span | None:
    r"""Return the position of the first false equation of plain numbers; None if none is found.

    >>> text = "First 12 * 4 = 48. Then 48 + 17 = 55, so the answer is 55."
    >>> false_equation(text).of(text)
    '48 + 17 = 55'
    >>> [false_equation(t) for t in ("10 / 3 = 3.33", "3 + 4 = 7 + 2 = 9", r"\frac{1}{2} + x + 3 = 4")]
    [None, None, None]
    """
    for chain in _chains(text[:LONGEST]):
        for left, right in pairwise(chain):
            if left and right and left.calculated and not _holds(text, left, right):
                return Span(left.start, right.end)
    return None


def _holds(text: str, left: Term, right: Term) -> bool:
    """Return whether two adjacent parts of a chain are equal, or may be meant to be equal."""
    values = {right.value, right.first}
    values |= {value * 100 for value in values} if right.percent or left.percent else set()
    for value in values:
        gap = abs(abs(left.value) - abs(value))  # a difference may be meant without its sign
        near = gap < Fraction(1, 10**right.places) or gap <= NEAR * abs(left.value)
        if gap == 0 or (near and (left.loose or right.loose)):
            return True
    unit = _UNIT.match(text, right.end)
    before = text[max(0, left.start - 200) : left.start].rpartition("\n")[2]
    line = before + text[left.start : right.end] + text[right.end : right.end + 60].partition("\n")[0]
    if _DOUBTED.search(line) or (unit and _SCALE.fullmatch(unit[1])):
        return True
    named = bool(unit) or right.percent or "$" in text[max(0, right.start - 2) : right.start]
    return named and bool(right.value) and left.value / right.value in CONVERSIONS


def _chains(text: str) -> Iterator[list[Term | None]]:
    """Yield the parts of each chain of equations; a part is None if it is not an expression of numbers."""

    def begins_line(at: int) -> bool:
        return not text[max(0, text.rfind("\n", 0, at) + 1) : at].strip(" \t*>")

    chain: list[Term | None] = []
    part: list[_Token] = []
    clean = True  # whether no text before the part may belong to the part
    for token in _tokens(text):
        if token.kind == "equals":
            chain.append(_term(part) if clean else None)
            part, clean = [], True
        elif token.kind in ("word", "end"):
            if chain:
                yield [*chain, _term(part) if clean else None]
            chain, part = [], []
            clean = not _BOUND.fullmatch(token.text)
        elif token.kind == "other":
            clean = False
        elif not part and not chain and token.kind in _SIGNS:
            first = token.kind != "power" and begins_line(token.start)
            bullet = first and not text[token.end : token.end + 1].isdigit()
            clean = bullet or (clean and token.kind == "minus" and first)
            part += [] if bullet else [token]
        else:
            part.append(token)
    if chain:
        yield [*chain, _term(part) if clean else None]


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while match := _TOKEN.match(text, at):
        kind, at = match.lastgroup or "other", match.end()
        percent = _PERCENT.match(text, at) if kind == "number" else None
        at = percent.end() if percent else at
        if kind != "skip":
            yield _Token(kind, match[0], match.start(), at, percent is not None)


def _term(tokens: Sequence[_Token]) -> Term | None:
    """Return the term of a part; None if the part is not an expression of numbers, or is too large."""
    if len(tokens) > MOST_TOKENS:
        return None
    while tokens and tokens[0].kind in ("open", "close") and not _balanced(tokens):
        tokens = tokens[1:]
    while tokens and tokens[-1].kind in ("open", "close") and not _balanced(tokens):
        tokens = tokens[:-1]
    numbers = [token for token in tokens if token.kind == "number"]
    if not numbers:
        return None
    try:
        numerals = [_numeral(token) for token in numbers]
        value = _value(ast.parse(_expression(tokens), mode="eval").body, numerals)
    except (_Unreadable, SyntaxError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    alone = len(numbers) == 1
    divided = any(token.kind in ("divide", "fraction") for token in tokens)
    return Term(
        value,
        value if alone and value < 0 else numerals[0],
        calculated=not alone,
        loose=divided or any("." in number.text for number in numbers),
        percent=any(number.percent for number in numbers),
        places=len(numbers[0].text.partition(".")[2]) if alone else 0,
        start=tokens[0].start,
        end=tokens[-1].end,
    )


def _balanced(tokens: Sequence[_Token]) -> bool:
    depths = list(accumulate((token.kind == "open") - (token.kind == "close") for token in tokens))
    return min(depths, default=0) >= 0 and depths[-1] == 0


def _numeral(token: _Token) -> Fraction:
    digits = re.sub(r"[^\d.]", "", token.text)
    if len(digits) > MOST_DIGITS:
        raise _Unreadable(digits)
    value = Fraction(f"0{digits}" if digits.startswith(".") else digits)
    return value / 100 if token.percent else value


def _expression(tokens: Sequence[_Token]) -> str:
    """Return a part as a Python expression in which ``x0`` is the first numeral.

    A bracket right after a value means multiplication: "2(3)" is a product, but "70 (70%)" is not an
    expression.
    """
    words: list[str] = []
    groups: list[str] = []  # role of each open bracket
    pending: list[str] = []  # role of the next bracket
    for before, token in zip([None, *tokens], tokens, strict=False):
        if pending and token.kind != "open":
            raise _Unreadable("a fraction without its parts")
        if token.kind == "open":
            touches = before is not None and before.kind in ("number", "close") and before.end == token.start
            words.append("*(" if touches and not pending else "(")
            groups.append(pending.pop() if pending else "")
        elif token.kind == "close":
            group = groups.pop() if groups else ""
            words.append({"over": ")/", "under": "))"}.get(group, ")"))
            pending += ["under"] if group == "over" else []
        elif token.kind == "fraction":
            words.append("(")
            pending.append("over")
        else:
            words.append(_SIGNS.get(token.kind) or f"x{sum(word[0] == 'x' for word in words)}")
    return " ".join(words)


def _value(node: ast.expr, numerals: list[Fraction]) -> Fraction:
    """Return the value of an expression of numerals."""
    match node:
        case ast.Name():
            return numerals[int(node.id[1:])]
        case ast.UnaryOp(ast.UAdd() | ast.USub()):
            value = _value(node.operand, numerals)
            return -value if isinstance(node.op, ast.USub) else value
        case ast.BinOp(op=op) if type(op) in _OPERATIONS:
            left, right = _value(node.left, numerals), _value(node.right, numerals)
            if isinstance(op, ast.Pow) and (right.denominator != 1 or abs(right) > MOST_POWER):
                raise _Unreadable("power")
            value = _OPERATIONS[type(op)](left, right)
            if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 4 * MOST_DIGITS:
                return value
    raise _Unreadable("too large, or no expression")
