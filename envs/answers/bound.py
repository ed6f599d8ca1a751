r"""Bound letters: the index of a sum or a product and the variable of a definite integral have no name.

The principle: two formulas are the same where one becomes the other by renaming bound letters. A letter is
renamed in its scope alone: after a sum up to the next plus, minus, comma or relation outside brackets, in an
integral up to its ``dx``. Bounds are outside of it, so that in ``\int_0^x f(x)dx`` the bound is free.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)
_SUM = re.compile(r"\\(?:sum|prod)_\{([A-Za-z])=[^{}]{1,40}\}\^(?:\{[^{}]{1,40}\}|\\infty|\w)")
_INTEGRAL = re.compile(r"\\int_(?:\{[^{}]{1,40}\}|\\\w+|\w)\s?\^(?:\{[^{}]{1,40}\}|\\infty|\w)")
_ENDS = frozenset(("+", "-", ",", ";", "=", "<", ">", r"\le", r"\ge", r"\neq", r"\approx"))
_OPENING = frozenset(("(", "[", "{", r"\{"))
_CLOSING = frozenset((")", "]", "}", r"\}"))
_FIRST_NAME = 0xE000
"""The first of the private characters that stand for bound letters, in the order of what binds them."""
MAX_BOUND = 8


def without_bound_names(text: str) -> str:
    r"""Return a formula (in the form of ``clean``) with one name for each bound letter.

    >>> def same(a, b): return without_bound_names(a) == without_bound_names(b)
    >>> same(r"\sum_{k=1}^{n}k^2", r"\sum_{i=1}^{n}i^2"), same(r"\sum_{k=1}^{n}k+k", r"\sum_{i=1}^{n}i+i")
    (True, False)
    >>> same(r"\int_0^1 f(x)dx", r"\int_0^1 f(t)dt"), same(r"\int_0^x f(x)dx", r"\int_0^t f(t)dt")
    (True, False)
    """
    at = 0
    for name in range(_FIRST_NAME, _FIRST_NAME + MAX_BOUND):
        match = _SUM.search(text, at)
        if match is None:
            break
        end = _end_of_term(text, match.end())
        scope = _renamed(text[match.end() : end], match[1], chr(name))
        text = text[: match.start(1)] + chr(name) + text[match.end(1) : match.end()] + scope + text[end:]
        at = match.end()
    return _without_name_of_integral(text)


def _without_name_of_integral(text: str) -> str:
    """Rename the variable of the one integral of a text, up to the one ``dx`` that closes it."""
    match = _INTEGRAL.search(text)
    if match is None or text.count(r"\int") != 1:
        return text
    end = _end_of_brackets(text, match.end())
    closing = list(re.finditer(r"(?<![A-Za-z\\])d\s?([A-Za-z])(?![A-Za-z(])", text[match.end() : end]))
    if len(closing) != 1:
        return text
    stop = match.end() + closing[0].end()
    scope = _renamed(text[match.end() : stop], closing[0][1], chr(_FIRST_NAME + MAX_BOUND))
    return text[: match.end()] + scope + text[stop:]


def _end_of_term(text: str, start: int) -> int:
    """Return where the term after a sum ends; a sign right behind the sum is the term's own."""
    depth, empty = 0, True
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        depth += (token in _OPENING) - (token in _CLOSING)
        if depth < 0 or (depth == 0 and token in _ENDS and not empty):
            return match.start()
        empty = empty and token.isspace()
    return len(text)


def _end_of_brackets(text: str, start: int) -> int:
    depth = 0
    for match in _TOKEN.finditer(text, start):
        depth += (match[0] in _OPENING) - (match[0] in _CLOSING)
        if depth < 0:
            return match.start()
    return len(text)


def _renamed(text: str, letter: str, name: str) -> str:
    return "".join(name if token == letter else token for token in _TOKEN.findall(text))
