r"""The pre-filter: refuse texts that no sane answer contains, before any expensive code parses them.

A refusal means "wrong", not "timeout": writing ``9^{9^{9^9}}`` must not be worth more than a wrong number.
All rules take time linear in the length of the answer, except for the size rule, which is limited to short
answers. The size rule evaluates each power, each factorial, each bracketed group and the whole answer
separately, in bounded arithmetic, so that the text around a part cannot hide the part's size.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from envs.answers.formulas import TooLarge, Unknown, parse_formula
from envs.answers.notation import clean

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
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])")
_SELF_POWER = re.compile(r"([A-Za-z])\s{0,3}(?:\^|\*\*)\s{0,3}[{(]?\s{0,3}\1")
_GROWS = re.compile(r"\^|\*\*|!|\\(?:exp|sinh|cosh|[dt]?binom)(?![A-Za-z])")
_POWER = re.compile(r"\s*(?:\^|\*\*)\s*[-+]?\s*")
_BEFORE = re.compile(r"(?:\d[\d.]*|[A-Za-z]|\\[A-Za-z]+)!?\Z", re.ASCII)
_ATOM = re.compile(r"\d[\d.]*|[A-Za-z]|\\[A-Za-z]+", re.ASCII)


def refusal(answer: str) -> str | None:
    r"""Return the name of the bound that ``answer`` breaks; None if the answer may be parsed.

    >>> refusal(r"\frac{1}{2}"), refusal("9^9^9^9"), refusal("1000000!"), refusal("5\x00")
    (None, 'tower', 'factorial', 'characters')
    >>> refusal("9^{9^9}"), refusal("2^{2^{2}}")
    ('size', None)
    """
    if len(answer) > MAX_CHARS:
        return "length"

    def is_strange(c: str) -> bool:  # a control or format character, or a digit that is not ASCII
        kind = unicodedata.category(c)
        control = kind == "Cc" and c not in "\t\n\r"
        return kind in ("Cf", "Cs", "Co", "Cn") or control or (kind == "Nd" and not c.isascii())

    sum_power = _largest(_GROUP_EXPONENT, answer) > MAX_SYMBOLIC_EXPONENT and _LETTER.search(answer)
    rules = (
        ("characters", any(map(is_strange, set(answer)))),
        ("code", "__" in answer),
        ("digits", _DIGITS.search(answer)),
        ("nesting", _depth(answer) > MAX_DEPTH),
        ("tower", _TOWER.search(answer)),
        ("exponent", _largest(_EXPONENT, answer) > MAX_EXPONENT),
        ("power of a sum", sum_power),
        ("factorial", _FACTORIAL.search(answer)),
        ("binomial", _BINOMIAL.search(answer)),
        ("items", answer.count(",") > MAX_ITEMS),
        ("cells", answer.count("&") > MAX_CELLS),
        ("functions", len(_FUNCTION.findall(answer)) > MAX_FUNCTIONS),
    )
    bound = next((name for name, broken in rules if broken), None)
    return bound or ("size" if _is_too_large(answer) else None)


def heavier(answer: str, gold: str) -> str | None:
    r"""Return the name of a bound if the answer is far more complex than the gold answer; else None.

    This applies to answers that the exact rules cannot decide. A library may never finish expanding or
    solving a complex answer, and an answer that is never graded would be worth more than a wrong answer.
    """
    if len(answer) > MAX_HEAVY_CHARS + 2 * len(gold):
        return "length"
    rules: tuple[tuple[str, int, Callable[[str], int]], ...] = (
        ("nesting", MAX_HEAVY_DEPTH, _depth),
        ("power", MAX_HEAVY_EXPONENT, lambda text: _largest(_GROUP_EXPONENT, text)),
        ("functions", MAX_HEAVY_FUNCTIONS, lambda text: len(_FUNCTION.findall(text))),
        ("variable exponent", 0, lambda text: bool(_SELF_POWER.search(text))),
    )
    return next((name for name, most, weigh in rules if weigh(answer) > max(most, weigh(gold))), None)


def _depth(answer: str) -> int:
    depth = deepest = 0
    for c in _FENCE.sub(lambda fence: "(" if fence[1] == "l" else ")", answer):
        depth = max(0, depth + (c in "({[") - (c in ")}]"))
        deepest = max(deepest, depth)
    return deepest


def _largest(pattern: re.Pattern[str], answer: str) -> int:
    return max((int(digits[:12]) for digits in pattern.findall(answer)), default=0)


def _is_too_large(text: str) -> bool:
    """Return whether a part of a formula has a value of more than ``formulas.MAX_BITS`` bits."""
    if not _GROWS.search(text):
        return False
    for part, unread in dict.fromkeys(_parts(clean(text))):
        node = parse_formula(part)
        try:
            if unread if node is None else node(0) is None:
                return True
        except TooLarge as error:
            if not error.args:  # with a message, an argument was too large, not the value
                return True
        except (Unknown, ArithmeticError, ValueError):
            continue
    return False


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each part of a formula, and whether the part counts as too large if it cannot be parsed."""
    closing: dict[int, int] = {}
    open_: list[int] = []
    for at, sign in enumerate(text):
        if sign in "({[":
            open_.append(at)
        elif sign in ")}]" and open_:
            closing[open_.pop()] = at
    opening = {end: start for start, end in closing.items()}
    yield text, False
    yield from ((text[start + 1 : end], False) for start, end in closing.items())
    read = -1
    for sign in _GROWS.finditer(text):
        base = _base(text, sign.start(), opening)
        if sign[0] == "!":
            yield f"{base}!", False
        elif sign[0] in ("^", "**") and sign.start() >= read:
            read = _end_of_power(text, sign.start(), closing)
            exponent = text[sign.end() : read]
            yield f"{base}^{exponent}", False
            yield f"2^{exponent}", bool(_GROWS.search(exponent))  # for any base


def _base(text: str, end: int, opening: dict[int, int]) -> str:
    """Return the group, number, letter or command right before a sign."""
    stripped = text[:end].rstrip()
    start = opening.get(len(stripped.removesuffix("!")) - 1)
    match = _BEFORE.search(stripped[-64:])
    return stripped[start:] if start is not None else match[0] if match else ""


def _end_of_power(text: str, at: int, closing: dict[int, int]) -> int:
    """Return the end of the chain of exponents (``^a^{b}!``) that starts at position ``at``."""
    while sign := _POWER.match(text, at):
        at = sign.end()
        atom = _ATOM.match(text, at)
        if at not in closing and atom is None:
            break
        at = closing[at] + 1 if at in closing else atom.end() if atom else at
        at += text[at : at + 1] == "!"
    return at
