r"""Split formulas into the signs, numbers, letters and commands of which ``expressions`` reads them."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<command>\\[A-Za-z]+)|(?P<name>[A-Za-z]+)|(?P<sign>[-+*/^!(){}\[\]|_'°]))",
    re.ASCII,
)
_PLAIN = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "·": "*",
        "×": "*",
        "÷": "/",
        "∗": "*",
        "π": r"\pi ",
        "²": "^2",
        "³": "^3",
        "√": r"\sqrt ",
    }
)
_TRIGONOMETRIC = ("arcsin", "arccos", "arctan", "sin", "cos", "tan", "cot", "sec", "csc")
_NAMES = frozenset((*_TRIGONOMETRIC, "sqrt", "ln", "exp", "abs", "pi"))
GREEK = frozenset(
    "\\" + name
    for name in (
        *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "lambda", "mu"),
        *("nu", "xi", "rho", "sigma", "tau", "phi", "varphi", "omega", "Delta", "Omega", "Gamma", "ell"),
    )
)
_HIDDEN = re.compile("pi|ln|exp|sin|cos|tan")
_RADICAL = re.compile(r"√\s?(\d+(?:\.\d+)?)", re.ASCII)  # a line over all digits, unlike \sqrt12


def tokens_of(text: str) -> list[str] | None:
    r"""Return the tokens in order; None where a sign is none of the grammar's.

    >>> tokens_of(r"2xy + \sqrt{3}"), tokens_of("5 & 6"), tokens_of("√12")
    (['2', 'x', 'y', '+', '\\sqrt', '{', '3', '}'], None, ['\\sqrt', '{', '12', '}'])
    """
    text = _RADICAL.sub(r"\\sqrt{\1}", text)
    text, found, at = text.translate(_PLAIN).replace("**", "^").rstrip(), [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        found.extend(_split_name(match["name"]) if match["name"] else [match.group().strip()])
    return found


def _split_name(letters: str) -> list[str]:
    """Return "xy" as two factors and "sqrt" as one function; a longer word is a token nothing knows."""
    if letters in _NAMES:
        return ["\\" + letters]
    return list(letters) if len(letters) <= 3 and not _HIDDEN.search(letters) else [letters]
