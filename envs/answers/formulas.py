r"""Parse LaTeX and plain formulas, and compare them by their values at a few points, to a hundred digits.

The parser is a recursive-descent parser over a fixed grammar: numbers, letters, ``+ - * / ^ !``, fractions,
roots, logarithms, trigonometric functions, absolute values, floors, binomials, remainders and undefined
functions. A letter is an undefined function if it is f, g or h before a bracket, or if ``called`` returns it.
The power -1 of a function is its inverse. Text outside the grammar is not a formula, and no text is ever
evaluated as code. Parsing takes time linear in the length, and the nesting depth is bounded. A value of more
than ``MAX_BITS`` bits raises ``TooLarge``.

Two formulas are different if their values differ at one point. They count as equal if their values agree at
three points. Formulas that round (floors and ceilings) are compared at an integer as well. Formulas that
agree at positive points only (``|x|`` and ``x``), or agree only approximately, are left to the symbolic
library. If both formulas are real at positive points but neither is real at the negative point (``\log x``),
that point is outside their domain and is ignored.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import cache, partial
from itertools import chain
from math import comb, factorial
from typing import Any, TypeAlias

from envs.answers.numbers import parse_number

Node: TypeAlias = Callable[[int], Any]
"""A formula as a function of a point's index.

Points 0, 1 and 3 are positive (3 is the mean of 0 and 1), point 2 is negative, and point 4 is an integer.
"""

DIGITS = 100
MAX_BITS = 40_000
MAX_TOKENS = 400
MAX_LEVELS = 32  # of nested brackets, exponents and arguments
_NEGATIVE, _MEAN, _INTEGER = 2, 3, 4
_POINTS = (0, 1, _NEGATIVE)


class Unknown(Exception):
    """The text is not in the grammar, or has no value at this point."""


class TooLarge(Unknown):
    """The value is larger than any answer needs."""


NO_VALUE = (Unknown, ArithmeticError, ValueError)  # the last two are mpmath's, at poles
_LOCK = threading.Lock()  # some mpmath functions temporarily change the precision of their context


@cache
def context() -> Any:
    """Return a private mpmath context, so that no other code changes its precision."""
    from mpmath.ctx_mp import MPContext

    mp = MPContext()
    mp.dps = DIGITS
    return mp


def _bounded(value: Any) -> Any:
    """Return the value; raise if it is too large or not a number."""
    mp = context()
    if not mp.isfinite(value):
        raise Unknown("not finite")
    if value and mp.mag(value) > MAX_BITS:
        raise TooLarge
    return value


@cache
def _drawn(seed: str) -> float:
    return random.Random(seed).uniform(0.3, 1.9)


def _at_point(name: str, point: int) -> Any:
    if point == _MEAN:
        return (_at_point(name, 0) + _at_point(name, 1)) / 2
    value = context().mpf(_drawn(f"{name} {point}"))
    if point == _INTEGER:
        return context().floor(20 * value)
    return -value if point == _NEGATIVE else value * (1 + 2 * point)


def _undefined(name: str) -> Callable[..., Any]:
    """Return an undefined function: a pseudorandom number that depends on its arguments alone."""

    def function(*values: Any) -> Any:
        mp = context()
        digits = (mp.nstr(value if abs(value) > mp.mpf(10) ** -50 else mp.mpf(0), 50) for value in values)
        return mp.mpf(_drawn(f"{name} of {' '.join(digits)}"))

    return function


def _power(base: Any, exponent: Any) -> Any:
    """Return base ** exponent, which is real if the base is real and the exponent is an integer."""
    mp = context()
    if base == 0 and not (mp.isint(exponent) and exponent.real > 0):
        raise Unknown("a power of zero")
    if base and abs(exponent) * max(1, abs(mp.mag(base))) > MAX_BITS:
        raise TooLarge
    return _bounded(mp.power(base, exponent))


def _root(value: Any, degree: Any) -> Any:
    """Return the real root if one exists, else the principal root."""
    mp = context()
    if not mp.isint(degree) or not 2 <= degree.real <= 100:
        raise Unknown("the degree of a root")
    if degree == 2:
        return mp.sqrt(value)
    if isinstance(value, mp.mpf) and value < 0 and int(degree.real) % 2:
        return -_power(-value, 1 / degree)
    return _power(value, 1 / degree) if value else value


def _natural(value: Any, largest: int) -> int:
    if not context().isint(value) or value.real < 0:
        raise Unknown("no natural number")
    if value.real > largest:
        raise TooLarge
    return int(value.real)


def _remainder(left: Any, right: Any) -> Any:
    mp = context()
    if not (mp.isint(left) and mp.isint(right) and right) or mp.mag(left) > 150:
        raise Unknown("a remainder of non-integers")
    return mp.mpf(int(left.real) % int(right.real))


def _library(name: str, value: Any) -> Any:
    """Return the value of the mpmath function ``name``; raise ``TooLarge`` for very large arguments."""
    mp = context()
    if value and (name == "exp" or name[-1] == "h") and abs(value) > MAX_BITS:
        raise TooLarge
    if value and mp.mag(value) > 64:
        raise TooLarge("an argument beyond the precision")
    return _bounded(getattr(mp, name)(value))


def _whole(name: str, value: Any) -> Any:
    mp = context()
    if not isinstance(value, mp.mpf) or mp.mag(value) > 150:
        raise Unknown("rounding")
    nearest = mp.nint(value)  # rounding errors in the last digits must not change an integer
    return nearest if abs(value - nearest) < mp.mpf(10) ** -40 else getattr(mp, name)(value)


_TRIGONOMETRIC = tuple(name + h for name in ("sin", "cos", "tan", "cot", "sec", "csc") for h in ("", "h"))
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "!": lambda value: context().mpf(factorial(_natural(value, 999))),
    "|": abs,
    r"\abs": abs,
    "°": lambda value: value * context().pi / 180,
    r"\lfloor": partial(_whole, "floor"),
    r"\lceil": partial(_whole, "ceil"),
    r"\ln": partial(_library, "log"),
    r"\exp": partial(_library, "exp"),
    r"\cis": partial(_library, "expj"),
    **{f"\\{name}": partial(_library, name) for name in _TRIGONOMETRIC},
    **{
        f"\\{arc}{name}": partial(_library, f"a{name}")
        for name in _TRIGONOMETRIC
        for arc in ("a", "ar", "arc")
    },
    r"\lg": lambda value: _bounded(context().log(value, 10)),
    "+": lambda a, b: _bounded(a + b),
    "-": lambda a, b: _bounded(a - b),
    "neg": lambda a: -a,
    "*": lambda a, b: _bounded(a * b),
    "/": lambda a, b: _bounded(a / b),
    r"\bmod": _remainder,
    r"\binom": lambda n, k: context().mpf(comb(_natural(n, 9_999), _natural(k, 9_999))),
    "log": lambda value, base: _bounded(context().log(value) / context().log(base)),
    "^": _power,
    "root": _root,
}

_TIMES = {
    "*": "*",
    r"\cdot": "*",
    r"\times": "*",
    "/": "/",
    r"\div": "/",
    r"\bmod": r"\bmod",
    r"\mod": r"\bmod",
}
_CLOSING = {"(": ")", "{": "}", "[": "]", "|": "|", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil"}
_BINDERS = {r"\sum": "=", r"\prod": "=", r"\lim": r"\to", r"\int": ""}
"""Commands that bind a variable, and the sign between the variable and its start."""
_END = "$"  # the end of an integral; this sign is not in the grammar
_MIXED = re.compile(r"(?:\{\d+\}|\d)(?:\{\d+\}|\d)")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<command>\\[A-Za-z]+)|(?P<name>[A-Za-z]+)"
    r"|(?P<sign>[-+*/^!(){}\[\]|_'°=]))",
    re.ASCII,
)
_NAMES = frozenset((*(name[1:] for name in _FUNCTIONS if name[0] == "\\"), "sqrt", "log", "pi"))
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta lambda mu nu xi rho sigma tau phi varphi omega "
    "Delta Omega Gamma ell"
)
GREEK = frozenset("\\" + name for name in _GREEK.split())
_OPENERS = frozenset((r"\pi", r"\sqrt", r"\log", "(", "{", r"\frac", r"\binom", *GREEK, *_BINDERS))
_COMMANDS = frozenset(_FUNCTIONS) - {"!", "|", "°", "+", "-", "*", "/", r"\bmod", "^"}
_WORDS = frozenset(("or", "and", "not", "nor", "if", "is", "no", "but", "to"))
_HIDDEN = re.compile("pi|ln|exp|sin|cos|tan")
_CALL = re.compile(r"(\\?[A-Za-z]+)(?:_\{?\w{1,4}\}?)?'*(?=\(((?:[^()]|\([^()]*\))*)\))")


def called(*texts: str) -> frozenset[str]:
    r"""Return the letters that are functions in these texts: nobody writes P(2x) for 2Px.

    Every text must have the letter before a bracket. In at least one such place, the bracket must hold
    neither a sum nor the letter itself: in n(n+1) the bracket is a factor.
    """

    def caller(word: str) -> str:  # the last letter; "" for a known function, and for e or i alone
        known = word in ("e", "i") or word in _NAMES or (word[0] == "\\" and word not in GREEK)
        return "" if known else word if word[0] == "\\" else word[-1]

    calls = [[(caller(word), inside) for word, inside in _CALL.findall(text)] for text in texts]
    names = set.intersection(*({name for name, _ in each} for each in calls)) - {""}
    bare = [name for name, inside in chain(*calls) if name not in inside and not re.search(".[+-]", inside)]
    return frozenset(names.intersection(bare))


def parse_formula(text: str, functions: frozenset[str] = frozenset()) -> Node | None:
    """Return the formula as a function of a point; None if it is not in the grammar."""
    tokens = tokens_of(text)
    if not tokens or len(tokens) > MAX_TOKENS:
        return None
    try:
        parser = _Parser(tokens, functions | frozenset("fgh"))
        node = parser.sum()
        return node if parser.at == len(tokens) else None
    except Unknown:
        return None


def tokens_of(text: str) -> list[str] | None:
    """Return the signs, numbers, letters and commands in order, or None if the text has an unknown sign."""
    text, tokens, at = text.replace("**", "^").rstrip(), [], 0
    while at < len(text):
        if (match := _TOKEN.match(text, at)) is None:
            return None
        at, word = match.end(), match["name"]
        if not word:
            tokens.append(match[0].strip())
        elif word in _WORDS:
            tokens.append(word + " ")
        elif word in _NAMES:
            tokens.append("\\" + word)
        else:  # "xy" is two factors; a longer word is one token, which is unknown
            tokens += list(word) if len(word) <= 3 and not _HIDDEN.search(word) else [word]
    return tokens


def _apply(name: str | Callable[..., Any], *parts: Node) -> Node:
    function = _FUNCTIONS[name] if isinstance(name, str) else name
    return lambda point: function(*(part(point) for part in parts))


def _constant(value: Any) -> Node:
    return lambda _: value


class _Parser:
    """A parser that passes over the tokens once; ``at`` is the index of the next token."""

    def __init__(self, tokens: list[str], functions: frozenset[str]) -> None:
        self.tokens = tokens
        self.functions = functions
        self.at = self.level = self.in_function = self.in_bounds = 0
        self.bound: dict[str, str] = {}

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Unknown(token)
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        """Consume the next token if it is ``token``, and return whether it was."""
        found = self.peek() == token
        self.at += found
        return found

    def sum(self) -> Node:
        negative = self.skip("-")
        if (negative or self.skip("+")) and self.peek() in ("+", "-"):
            raise Unknown("two signs")
        node = _apply("neg", self.product()) if negative else self.product()
        while self.peek() in ("+", "-"):
            node = _apply(self.take(), node, self.product())
        return node

    def product(self) -> Node:
        node = self.factor()
        while True:
            token = self.peek()
            if token in _TIMES:
                self.take()
                negative = self.skip("-")
                right = self.factor()
                node = _apply(_TIMES[token], node, _apply("neg", right) if negative else right)
            elif token[:1].isalpha() or token in _OPENERS or token in _COMMANDS:  # never a number
                node = _apply("*", node, self.factor())
            else:
                return node

    def factor(self) -> Node:
        node = self.deeper(self.atom)
        while (sign := self.peek()) in ("^", "!", "°"):
            self.take()
            if sign == "°" and not self.in_function:
                raise Unknown("degrees")  # outside a function the sign is a unit
            node = _apply("^", node, self.deeper(self.exponent)) if sign == "^" else _apply(sign, node)
        return node

    def exponent(self) -> Node:
        if self.peek() in ("{", "("):
            node = self.group()
        else:
            negative = self.skip("-")
            node = _apply("neg", self.deeper(self.atom)) if negative else self.deeper(self.atom)
        node = _apply("!", node) if self.skip("!") else node
        return _apply("^", node, self.deeper(self.exponent)) if self.skip("^") else node

    def group(self) -> Node:
        opening = self.take()
        node = self.sum()
        self.take(_CLOSING[opening])
        return node

    def argument(self) -> Node:
        if self.peek() == "{":
            return self.group()
        token = self.peek()
        if len(token) > 1 and token.isdigit():
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]  # \frac12 and \sqrt12 take one digit
        return self.deeper(self.atom)

    def deeper(self, rule: Callable[[], Node]) -> Node:
        self.level += 1
        if self.level > MAX_LEVELS:
            raise Unknown("nesting")
        node = rule()
        self.level -= 1
        return node

    def atom(self) -> Node:
        token = self.peek()
        if token[:1].isdigit() or token[:1] == ".":
            self.take()
            if self.peek() == "_":
                raise Unknown("another base")
            if self.peek() == r"\frac" and _MIXED.match("".join(self.tokens[self.at + 1 : self.at + 7])):
                raise Unknown("a mixed number or a product")
            return _constant(context().mpf(f"0{token}"))  # mpmath cannot parse ".0"
        if token in ("(", "{"):
            return self.group()
        if token in ("|", r"\lfloor", r"\lceil"):
            return _apply(token, self.group())
        return self.command() if token.startswith("\\") and token not in GREEK else self.letter()

    def letter(self) -> Node:
        letter = self.take()
        name = self.bound.get(letter, letter)
        if name in ("e", "i") and name not in self.functions:
            return _constant(+context().e if name == "e" else context().mpc(0, 1))
        if name == letter and letter not in GREEK and not (len(letter) == 1 and letter.isalpha()):
            raise Unknown(letter)
        if self.skip("_"):
            braced = self.skip("{")
            name += "_"
            while not (braced and self.skip("}")):
                name += self.bound.get(self.peek(), self.take())
                if not braced:
                    break
        while self.skip("'"):
            name += "'"
        inverse = self.inverted()
        if letter in self.functions and self.tokens[self.at + inverse :][:1] == ["("]:
            self.at += inverse
            return _apply(_undefined(f"{name} inverse" if inverse else name), self.group())
        return partial(_at_point, name)

    def inverted(self) -> int:
        """Return the number of tokens of the power -1 that comes next; 0 if none does."""
        ahead = self.tokens[self.at : self.at + 5]
        return 5 if ahead == list("^{-1}") else 3 * (ahead[:3] == list("^-1"))

    def command(self) -> Node:
        token = self.take()
        if token == r"\infty" and self.in_bounds:
            return partial(_at_point, token)
        if token in _BINDERS:
            return self.binder(token)
        if token == r"\pi":
            return _constant(+context().pi)
        if token in (r"\frac", r"\binom"):
            return _apply("/" if token == r"\frac" else token, self.argument(), self.argument())
        if token == r"\sqrt":
            degree = self.group() if self.peek() == "[" else _constant(2)
            return _apply("root", self.group() if self.peek() == "(" else self.argument(), degree)
        if token == r"\log":  # without a base: an unknown but fixed base
            base = self.argument() if self.skip("_") else partial(_at_point, r"\log")
            return _apply("log", self.operand(), base)
        if token in _COMMANDS:
            return self.function(token)
        raise Unknown(token)

    def function(self, token: str) -> Node:
        """Return a function of its argument, its inverse (for a power -1), or its power 2, 3 or 4."""
        if f"\\arc{token[1:]}" in _FUNCTIONS and self.inverted():
            self.at += self.inverted()
            token = f"\\arc{token[1:]}"
        exponent = ""
        if self.skip("^"):
            braced = self.skip("{")
            exponent = self.take()
            if exponent not in ("2", "3", "4"):
                raise Unknown("an inverse or a power")
            if braced:
                self.take("}")
        self.in_function += 1
        node = _apply(token, self.operand())
        self.in_function -= 1
        return _apply("^", node, _constant(context().mpf(exponent))) if exponent else node

    def operand(self) -> Node:
        """Return a function's argument: a bracket, or the numbers, letters and fractions up to a sign."""
        if self.peek() in ("(", "{", "["):
            return self.group()
        node = self.factor()
        while (token := self.peek()) and (token in GREEK or token in (r"\pi", r"\frac") or token.isalpha()):
            node = _apply("*", node, self.factor())
        if self.peek() in ("(", "["):
            raise Unknown("an argument that may go on")
        return node

    def binder(self, token: str) -> Node:
        """Return a sum, product, limit or integral as an undefined function of its term and bounds.

        The bound variable is renamed, so that its letter does not matter.
        """
        self.in_bounds += 1
        self.take("_")
        letter = ""
        if token == r"\int":
            ends = [self.argument()]
        else:
            self.take("{")
            letter = self.take()
            self.take(_BINDERS[token])
            ends = [self.sum()]
            self.take("}")
        if token != r"\lim":
            self.take("^")
            ends.append(self.argument())
        self.in_bounds -= 1
        outer, variable = self.bound, letter
        if not letter:  # the variable follows the next d; the two tokens become the end of the integral
            at = next((k for k in range(self.at, len(self.tokens) - 1) if self.tokens[k] == "d"), None)
            if at is None or not self.tokens[at + 1].isalpha():
                raise Unknown("an integral without a variable")
            variable, self.tokens[at : at + 2] = self.tokens[at + 1], [_END]
        self.bound = {**outer, variable: f"bound {len(outer)}"}
        term = self.product() if letter else self.sum()
        self.bound = outer
        if not letter:
            self.take(_END)
        return _apply(_undefined(token), term, *ends)


ROUNDED = ContextVar("rounded", default=False)
"""Whether a decimal is accepted for the exact value that it rounds (``same_rounded``)."""
_DECIMAL = re.compile(r"\d?\.\d", re.ASCII)
_PLACES = re.compile(r"-?\d{0,30}\.(\d{2,60})", re.ASCII)
_FAMILY = re.compile(r"(?=[^a-z]*[a-z])(.*)\+ ?C")


def same_value(answer: str, gold: str) -> bool | None:
    r"""Return whether two formulas (as ``notation.clean`` returns them) are equal; None if unknown.

    >>> same_value(r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"), same_value("x^2+2x+1", "(x+1)^2")
    (True, True)
    >>> same_value("x+1", "x+2"), same_value("|x|", "x"), same_value("e^{i\\pi}", "-1")
    (False, None, True)
    >>> same_value("9^{9^{9}}", "5"), same_value(r"\int x dx", "5")
    (False, None)
    >>> same_value("2F(x)", "F(2x)"), same_value(r"\log(x^3)", r"3\log x"), same_value("x^2+C", "x^2+1+C")
    (False, True, True)
    """
    functions = called(answer, gold)
    left, right = _FAMILY.fullmatch(answer), _FAMILY.fullmatch(gold)
    if left and right:  # the constant of integration absorbs any other constant
        differences = differences_at(left[1], right[1], _POINTS, functions)
        if differences is not None and all(is_close(differences[0], other) for other in differences):
            return True
    with _LOCK:
        truth, claim = parse_formula(gold, functions), parse_formula(answer, functions)
        if truth is None or claim is None:
            return None
        whole = re.search(r"\\l(?:floor|ceil)", answer + gold)
        verdicts = [_same_at(claim, truth, point) for point in (*_POINTS, *((_INTEGER,) if whole else ()))]
    if False in (*verdicts[:_NEGATIVE], *verdicts[_NEGATIVE + 1 :]):
        return False
    return True if all(verdicts) else None


def _same_at(claim: Node, truth: Node, point: int) -> bool | None:
    def is_real(value: Any) -> bool:  # up to rounding errors in the last digits
        return abs(value.imag) < context().mpf(10) ** -70

    try:
        right = truth(point)
    except NO_VALUE:
        return None
    try:
        left = claim(point)
        outside = point == _NEGATIVE and not (is_real(left) or is_real(right)) and is_real(truth(0))
        return outside or is_close(left, right)
    except TooLarge:
        return False
    except NO_VALUE:
        return None


def is_close(left: Any, right: Any) -> bool | None:
    """Return whether two values are equal to ninety digits; None if they are too close to tell."""
    mp = context()
    scale, difference = max(abs(left), abs(right)), abs(left - right)
    if difference <= scale * mp.mpf(10) ** -90:
        return True
    if scale < mp.mpf(10) ** -70:
        return None  # a hundred digits do not separate zero from a small number
    return False if difference > scale * mp.mpf(10) ** -80 else None


def differences_at(
    left: str, right: str, points: Sequence[int], functions: frozenset[str] = frozenset()
) -> list[Any] | None:
    """Return the first formula's value minus the second's at each point.

    Return None if one of the formulas cannot be parsed or has no value at a point.
    """
    with _LOCK:
        a, b = parse_formula(left, functions), parse_formula(right, functions)
        try:
            return [a(point) - b(point) for point in points] if a and b else None
        except NO_VALUE:
            return None


def constant_of(text: str) -> Any:
    """Return the value of a formula without variables; None for any other text."""
    with _LOCK:
        if number := parse_number(text):
            value = context().mpf(number.value.numerator) / number.value.denominator
            return None if number.measure else value
        node = parse_formula(text)
        try:
            first, second = (node(0), node(1)) if node else (0, 1)
        except NO_VALUE:
            return None
        return first if is_close(first, second) else None


def same_rounded(left: str, right: str) -> bool:
    """Return whether one answer is a decimal, with at least two places, that rounds the other answer.

    Return False unless ``ROUNDED`` is set, or if both answers or neither are decimals.
    """
    if not ROUNDED.get() or (_DECIMAL.search(left) is None) == (_DECIMAL.search(right) is None):
        return False
    decimal, form = (left, right) if _DECIMAL.search(left) else (right, left)
    places = _PLACES.fullmatch(decimal.replace(" ", ""))
    value = constant_of(form) if places else None
    if places is None or value is None or value.imag:
        return False
    return abs(context().mpf(places[0]) - value.real) <= context().mpf(10) ** -len(places[1]) / 2
