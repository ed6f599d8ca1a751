r"""What math-verify may be asked: only what it reads to the last sign.

The library builds a formula of what it knows and drops the rest: bounds of sums, negations, primes,
units, all behind ``\not``, "and" for "or". So the principle: it is asked only about texts of a fixed
alphabet, and only where whatever it may drop is the same on both sides: the letters, the names of
functions, primes, subscripts, relation signs, commas and unions. Two texts that differ in these are
different here, whatever a library would say.
"""

from __future__ import annotations

import re
from collections import Counter

from envs.answers.formulas import GREEK, called

_COMMAND_NAMES = (
    "frac sqrt pi infty cdot times div le ge cup cap setminus mathbb sin cos tan cot sec csc "
    "arcsin arccos arctan sinh cosh tanh ln log exp binom lfloor rfloor lceil rceil begin end pm bmod "
    "langle rangle"
)
_COMMANDS = frozenset(_COMMAND_NAMES.split())
_TOKEN = re.compile(
    r"\\[A-Za-z]+|\\\\|\\[{}]|\d+(?:\.\d+)?|\.\d+|[A-Za-z]+|\s+|[-+*/^!(){}\[\]|_'°=<>,;&.:%]", re.ASCII
)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{([pb]matrix)\}")
_FUNCTIONS = frozenset(("sqrt", "sin", "cos", "tan", "ln", "log", "exp", "pi"))
_CALL = re.compile(r"(?<![A-Za-z\\])([A-Za-z]'*)(\^\{?-\d+\}?)?\(")
_SUBSCRIPT = re.compile(r"_(?:\{[^{}]{0,20}\}|.)")
_INVERSE = re.compile(r"\^\{?-1\}?\(")
_NUMBERS = re.compile(r"\d\s+\.?\d", re.ASCII)
"""Numbers with nothing but a blank between them, which the library adds."""
_DIRECTIONS = str.maketrans(">", "<")


def may_decide(answer: str, gold: str) -> bool:
    """Return whether the library may be asked about two texts in the form of ``clean``."""
    read = _is_read(answer) and _is_read(gold) and _marks(answer) == _marks(gold)
    return read and not called(answer, gold)  # what is called it multiplies


def _is_read(text: str) -> bool:
    """Whether all of a text is of the alphabet, its braces in pairs."""
    if text.count("{") != text.count("}") or text.find("}") < text.find("{"):
        return False
    at, bare = 0, _ENVIRONMENT.sub(" ", text)
    while at < len(bare):
        match = _TOKEN.match(bare, at)
        if match is None or not _is_known(match[0]):
            return False
        at = match.end()
    return not (_INVERSE.search(bare) or _NUMBERS.search(text) or text.count(":") > 1)  # 1:2:3 is no number


def _is_known(token: str) -> bool:
    if token.startswith("\\") and token[1:].isalpha():
        return token[1:] in _COMMANDS or token in GREEK
    return not token.isalpha() or len(token) <= 3 or token in _FUNCTIONS


def _marks(text: str) -> object:
    """Return what must be the same in two texts."""
    bare = _ENVIRONMENT.sub(lambda match: rf"\{match[1]} ", text).replace(r"\ge", r"\le")
    letters = {t for t in re.findall(r"\\[A-Za-z]+|[A-Za-z]", bare) if len(t) == 1 or t in GREEK}
    signs = Counter(
        re.findall(r"\\le|\\cup|\\cap|\\in(?![a-z])|\\setminus|[<=,;]", bare.translate(_DIRECTIONS))
    )
    calls = frozenset(match[1] for match in _CALL.finditer(bare))
    marks = Counter(re.findall(r"\\[{}]|(?<!\\sqrt)\[|[|']", bare))
    return letters, signs, calls, marks, frozenset(_SUBSCRIPT.findall(bare))
