r"""Parse LaTeX and plain formulas into functions that can be evaluated at a point; nothing is decided here.

A hand-written recursive-descent parser over a fixed grammar: numbers, letters, ``+ - * / ^ !``,
fractions, roots, logarithms, trigonometric functions, absolute values, floors, binomials, remainders, and
functions that nobody defined: f, g and h before a bracket, and the letters that are ``called``. The power -1
of a function is its inverse, never its reciprocal. For anything else ``parse_formula`` returns None: it never
guesses, and it never evaluates text. Linear in the length, and bounded in depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeAlias

from envs.answers.arithmetic import (
    BINARY,
    FUNCTIONS,
    Unknown,
    constant,
    number,
    power,
    root,
    unknown_function,
    variable,
)

Point: TypeAlias = int
Node: TypeAlias = Callable[[Point], Any]

MAX_TOKENS = 400
MAX_LEVELS = 32
"""Of brackets, exponents and arguments in each other; an answer has fewer brackets (``envs.grading``)."""

_FRACTIONS = (r"\frac", r"\dfrac", r"\tfrac", r"\cfrac")
_BINOMIALS = (r"\binom", r"\dbinom", r"\tbinom")
_TIMES = {"*": "*", r"\cdot": "*", r"\times": "*", "/": "/", r"\div": "/", r"\bmod": "mod", r"\mod": "mod"}
_CLOSING = {"(": ")", "{": "}", "[": "]", "|": "|", r"\lfloor": r"\rfloor", r"\lceil": r"\rceil"}
_ROUNDING = {"|": "abs", r"\lfloor": "floor", r"\lceil": "ceil"}
_FUNCTION_LETTERS = frozenset("fgh")  # before a bracket
_CALL = re.compile(r"(\\?[A-Za-z]+)(?:_\{?\w{1,4}\}?)?'*(?=\(((?:[^()]|\([^()]*\))*)\))")
_MIXED = re.compile(r"(?:\{\d+\}|\d)(?:\{\d+\}|\d)")
_ATOM_SIGNS = frozenset("({")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<command>\\[A-Za-z]+)|(?P<name>[A-Za-z]+)"
    r"|(?P<sign>[-+*/^!(){}\[\]|_'°=]))",
    re.ASCII,
)
_NAMES = frozenset((*(name[1:] for name in FUNCTIONS if name[0] == "\\"), "sqrt", "log", "pi"))
GREEK = frozenset(
    "\\" + name
    for name in (
        *("alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "lambda", "mu"),
        *("nu", "xi", "rho", "sigma", "tau", "phi", "varphi", "omega", "Delta", "Omega", "Gamma", "ell"),
    )
)
_BINDERS = {r"\sum": "=", r"\prod": "=", r"\lim": r"\to", r"\int": ""}
"""What binds a letter, and the sign between the letter and where it starts."""
_OPENERS = frozenset(
    (r"\pi", r"\sqrt", r"\log", r"\lfloor", r"\lceil", *_FRACTIONS, *_BINOMIALS, *GREEK, *_BINDERS)
)
_END = "$"  # of an integral: no sign of the grammar
_WORDS = frozenset(("or", "and", "not", "nor", "if", "is", "no", "but", "to"))
_HIDDEN = re.compile("pi|ln|exp|sin|cos|tan")


def called(*texts: str) -> frozenset[str]:
    r"""Return the letters that all texts put before a bracket, and one calls: nobody writes P(2x) for 2Px.

    A bracket that holds a sum or the letter itself, as in n(n+1), is a factor.

    >>> [sorted(called("F(2x)", text)) for text in ("2F(x)", "2xF")], called("a(b+c)", "a(c+b)")
    ([['F'], []], frozenset())
    """
    calls = [[(_caller(word), inside) for word, inside in _CALL.findall(text)] for text in texts]
    names = set.intersection(*({name for name, _ in each} for each in calls)) - {""}
    bare = [name for name, inside in chain(*calls) if name not in inside and not re.search(".[+-]", inside)]
    return frozenset(names.intersection(bare))


def _caller(word: str) -> str:
    """Return the letter that a word before a bracket ends in; "" for a known function, and e and i alone."""
    known = word in ("e", "i") or word in _NAMES or (word[0] == "\\" and word not in GREEK)
    return "" if known else word if word[0] == "\\" else word[-1]


def parse_formula(text: str, functions: frozenset[str] = frozenset()) -> Node | None:
    r"""Return the formula as a function of a point; None where it is not in the grammar.

    >>> [int(parse_formula(t)(0)) for t in (r"\frac{12}{3}", r"2\sqrt{16}", r"17 \bmod 5", r"\log_2(8)")]
    [4, 8, 2, 3]
    >>> [parse_formula(t) for t in ("", "2+", "204_5", "(1,2)", "f()", "not 5", r"2\frac{1}{2}", "1 000")]
    [None, None, None, None, None, None, None, None]
    """
    tokens = tokens_of(text)
    if not tokens or len(tokens) > MAX_TOKENS:
        return None
    try:
        parser = _Parser(tokens, functions | _FUNCTION_LETTERS)
        node = parser.sum()
        return node if parser.at == len(tokens) else None
    except Unknown:
        return None


class _Parser:
    """One pass over the tokens; ``at`` is the index of the next one."""

    def __init__(self, tokens: list[str], functions: frozenset[str]) -> None:
        self.tokens = tokens
        self.functions = functions
        self.at = 0
        self.level = 0
        self.in_function = 0
        self.in_bounds = 0
        self.bound: dict[str, str] = {}

    def deeper(self, parse: Callable[[], Node]) -> Node:
        """Parse one level down: nothing here calls itself any deeper than ``MAX_LEVELS``."""
        if self.level >= MAX_LEVELS:
            raise Unknown("nesting")
        self.level += 1
        node = parse()
        self.level -= 1
        return node

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise Unknown(token)
        self.at += 1
        return token

    def sum(self) -> Node:
        node = self.signed()
        while self.peek() in ("+", "-"):
            node = _apply(BINARY[self.take()], node, self.product())
        return node

    def signed(self) -> Node:
        if self.peek() in ("+", "-"):
            negative = self.take() == "-"
            if self.peek() in ("+", "-"):
                raise Unknown("two signs")
            node = self.product()
            return _apply(BINARY["neg"], node) if negative else node
        return self.product()

    def product(self) -> Node:
        node = self.factor()
        while True:
            token = self.peek()
            if token in _TIMES:
                self.take()
                right = self.signed_factor()
                node = _apply(BINARY[_TIMES[token]], node, right)
            elif self.starts_factor(token):
                node = _apply(BINARY["*"], node, self.factor())
            else:
                return node

    def signed_factor(self) -> Node:
        if self.peek() != "-":
            return self.factor()
        self.take()
        return _apply(BINARY["neg"], self.factor())

    def starts_factor(self, token: str) -> bool:
        """Whether a factor begins without a sign before it: never a number right after another factor."""
        if token[:1].isdigit() or token[:1] == ".":
            return False
        return token[:1].isalpha() or token in _ATOM_SIGNS or token in FUNCTIONS or token in _OPENERS

    def factor(self) -> Node:
        node = self.atom()
        while self.peek() in ("^", "!", "°"):
            sign = self.take()
            if sign == "°":
                node = self.degrees(node)
            elif sign == "!":
                node = _apply(FUNCTIONS["!"], node)
            else:
                node = _apply(power, node, self.exponent())
        return node

    def degrees(self, node: Node) -> Node:
        """Return an angle in radians; outside a function the degree sign is a unit, and Unknown."""
        if not self.in_function:
            raise Unknown("degrees")
        return _apply(FUNCTIONS["°"], node)

    def exponent(self) -> Node:
        return self.deeper(self._exponent)

    def _exponent(self) -> Node:
        if self.peek() in ("{", "("):
            node = self.group()
        else:
            sign = self.peek() == "-" and bool(self.take())
            node = self.atom()
            node = _apply(BINARY["neg"], node) if sign else node
        if self.peek() == "!":
            self.take()
            node = _apply(FUNCTIONS["!"], node)
        return _apply(power, node, self.exponent()) if self.peek() == "^" and self.take() else node

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
        return self.atom()

    def atom(self) -> Node:
        return self.deeper(self._atom)

    def _atom(self) -> Node:
        token = self.peek()
        if token[:1].isdigit() or token[:1] == ".":
            return self.numeral()
        if token in _ATOM_SIGNS:
            return self.group()
        if token in _ROUNDING:
            return _apply(FUNCTIONS[_ROUNDING[token]], self.group())
        if token.startswith("\\"):
            return self.command()
        return self.letter()

    def numeral(self) -> Node:
        value = number(self.take())
        if self.peek() == "_":
            raise Unknown("another base")
        if self.peek() in _FRACTIONS and _MIXED.match("".join(self.tokens[self.at + 1 : self.at + 7])):
            raise Unknown("a mixed number or a product")
        return lambda _: value

    def letter(self) -> Node:
        name = letter = self.take()
        if name in self.bound:
            name = self.bound[name]
        elif name in ("e", "i") and name not in self.functions:
            return constant(name)
        elif name not in GREEK and not (len(name) == 1 and name.isalpha()):
            raise Unknown(name)
        name += self.subscript()
        while self.peek() == "'":
            name += self.take()
        inverse = self.inverted()
        if letter in self.functions and self.tokens[self.at + inverse :][:1] == ["("]:
            self.at += inverse
            return _apply(unknown_function(f"{name} inverse" if inverse else name), self.group())
        return variable(name)

    def inverted(self) -> int:
        """Return how many tokens are the power -1 that stands next, or 0."""
        ahead = self.tokens[self.at : self.at + 5]
        return 5 if ahead == list("^{-1}") else 3 * (ahead[:3] == list("^-1"))

    def subscript(self) -> str:
        if self.peek() != "_":
            return ""
        self.take()
        if self.peek() != "{":
            return "_" + self.bound.get(self.peek(), self.take())
        self.take()
        name = "_"
        while self.peek() != "}":
            name += self.bound.get(self.peek(), self.take())
        self.take()
        return name

    def command(self) -> Node:
        token = self.peek()
        if token in GREEK:
            return self.letter()
        self.take()
        if token == r"\infty" and self.in_bounds:
            return variable(token)
        if token in _BINDERS:
            return self.binder(token)
        if token in (r"\pi", r"\infty"):
            return constant(token)
        if token in _FRACTIONS:
            return _apply(BINARY["/"], self.argument(), self.argument())
        if token in _BINOMIALS:
            return _apply(BINARY["binom"], self.argument(), self.argument())
        if token == r"\sqrt":
            return self.radical()
        if token == r"\log":
            return self.logarithm()
        if token in FUNCTIONS:
            return self.function(self.inverse(token))
        raise Unknown(token)

    def inverse(self, token: str) -> Callable[..., Any]:
        """Return the function of a command, or its inverse behind a power -1."""
        inverse = FUNCTIONS.get(f"\\arc{token[1:]}")
        if inverse is None or not self.inverted():
            return FUNCTIONS[token]
        self.at += self.inverted()
        return inverse

    def binder(self, token: str) -> Node:
        """Return what nobody evaluates: some fixed number for the ends and the term, its letter nameless."""
        self.in_bounds += 1
        self.take("_")
        letter = "" if token == r"\int" else self.take("{") and self.take()
        ends = [self.argument() if token == r"\int" else self.start(_BINDERS[token])]
        if token != r"\lim":
            self.take("^")
            ends.append(self.argument())
        self.in_bounds -= 1
        outer = self.bound
        self.bound = {**outer, letter or self.variable_of_integral(): f"bound {len(outer)}"}
        term = self.product() if letter else self.sum()
        self.bound = outer
        if not letter:
            self.take(_END)
        return _apply(unknown_function(token), term, *ends)

    def start(self, sign: str) -> Node:
        self.take(sign)
        node = self.sum()
        self.take("}")
        return node

    def variable_of_integral(self) -> str:
        """Return the letter behind the next d, both of which become the end of the integral."""
        at = next((k for k in range(self.at, len(self.tokens) - 1) if self.tokens[k] == "d"), None)
        if at is None or not self.tokens[at + 1].isalpha():
            raise Unknown("an integral without a variable")
        letter, self.tokens[at : at + 2] = self.tokens[at + 1], [_END]
        return letter

    def radical(self) -> Node:
        degree: Node = self.group() if self.peek() == "[" else lambda _: number("2")
        return _apply(root, self.group() if self.peek() == "(" else self.argument(), degree)

    def logarithm(self) -> Node:
        """Return a logarithm; without a base it is that of some fixed number that nobody named."""
        base = self.argument() if self.peek() == "_" and self.take() else variable(r"\log")
        return _apply(BINARY["log"], self.operand(), base)

    def function(self, function: Callable[..., Any]) -> Node:
        exponent = self.exponent_of_name()
        self.in_function += 1
        node = _apply(function, self.operand())
        self.in_function -= 1
        return _apply(power, node, exponent) if exponent else node

    def exponent_of_name(self) -> Node | None:
        if self.peek() != "^":
            return None
        self.take()
        exponent = self.take() if self.peek() != "{" else self.tokens[self.at + 1 : self.at + 2][0]
        if exponent not in ("2", "3", "4"):
            raise Unknown("an inverse or a power")
        if self.peek() == "{":
            self.at += 2
            self.take("}")
        return lambda _: number(exponent)

    def operand(self) -> Node:
        """Return a function's argument: a bracket, or numbers, letters and fractions up to the next sign."""
        if self.peek() in ("(", "{", "["):
            return self.group()
        node = self.factor()
        while self.peek() and (
            self.peek() in GREEK or self.peek() in (r"\pi", *_FRACTIONS) or self.peek().isalpha()
        ):
            node = _apply(BINARY["*"], node, self.factor())
        if self.peek() in ("(", "["):
            raise Unknown("an argument that may go on")
        return node


def _apply(function: Callable[..., Any], *parts: Node) -> Node:
    return lambda point: function(*(part(point) for part in parts))


def tokens_of(text: str) -> list[str] | None:
    r"""Return the signs, numbers, letters and commands in order; None for a sign that is not in the grammar.

    >>> tokens_of(r"2xy + \sqrt{3}"), tokens_of("5 & 6")
    (['2', 'x', 'y', '+', '\\sqrt', '{', '3', '}'], None)
    """
    text, tokens, at = text.replace("**", "^").rstrip(), [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        tokens.extend(_split_name(match["name"]) if match["name"] else [match.group().strip()])
    return tokens


def _split_name(letters: str) -> list[str]:
    """Return "xy" as two factors and "sqrt" as one function; a longer word stays one unknown token."""
    if letters in _WORDS:
        return [letters + " "]
    if letters in _NAMES:
        return ["\\" + letters]
    return list(letters) if len(letters) <= 3 and not _HIDDEN.search(letters) else [letters]
