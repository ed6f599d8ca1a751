"""The arithmetic of formulas: a hundred digits, and nothing that can grow without bound.

Every result whose size passes ``MAX_BITS`` raises ``TooLarge``, so that no chain of powers costs more than a
few multiplications. Values are mpmath numbers, real where they can be and complex where they must.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

DIGITS = 100
MAX_BITS = 40_000
MAX_FACTORIAL = 999
MAX_BINOMIAL = 9_999


class Unknown(Exception):
    """The text is not in the grammar, or has no value at this point."""


class TooLarge(Unknown):
    """The value is beyond what any answer needs."""


@cache
def context() -> Any:
    """Return the arithmetic: mpmath's, in a context of its own whose precision nobody else sets."""
    from mpmath.ctx_mp import MPContext

    mp = MPContext()
    mp.dps = DIGITS
    return mp


def bounded(value: Any) -> Any:
    """Return the value; raise if it is too large or not a number."""
    mp = context()
    if not mp.isfinite(value):
        raise Unknown("not finite")
    if value and mp.mag(value) > MAX_BITS:
        raise TooLarge
    return value


def number(digits: str) -> Any:
    """Return a decimal numeral's value."""
    return context().mpf(f"0{digits}" if digits[0] == "." else digits)  # it cannot read ".0"


def constant(name: str) -> Callable[[int], Any]:
    r"""Return the constant e, i or ``\pi`` as a function of the point."""
    mp = context()
    known = {"e": +mp.e, "i": mp.mpc(0, 1), r"\pi": +mp.pi}
    if name not in known:
        raise Unknown(name)
    return lambda _: known[name]


def variable(name: str) -> Callable[[int], Any]:
    """Return the variable: positive at points 0 and 1, their mean at 3, negative at 2, an integer at 4.

    >>> variable("x")(0) == variable("x")(0), variable("x")(0) == variable("y")(0), variable("x")(2) < 0
    (True, False, True)
    >>> float(variable("x")(3) * 2 - variable("x")(0) - variable("x")(1))
    0.0
    """
    return lambda point: _value_at(name, point)


@cache
def _value_at_seed(seed: str) -> float:
    return random.Random(seed).uniform(0.3, 1.9)


def _value_at(name: str, point: int) -> Any:
    if point == 3:
        return (_value_at(name, 0) + _value_at(name, 1)) / 2
    value = context().mpf(_value_at_seed(f"{name} {point}"))
    if point == 4:
        return context().floor(20 * value)
    return -value if point == 2 else value * (1 + 2 * point)


def unknown_function(name: str) -> Callable[..., Any]:
    """Return a function that nobody defined: some fixed number for the values of its arguments.

    >>> f = unknown_function("f")
    >>> f(2) == f(1 + 1), f(2) == f(3), f(2) == unknown_function("g")(2)
    (True, False, False)
    """

    def function(*values: Any) -> Any:
        mp = context()
        digits = (mp.nstr(value if abs(value) > mp.mpf(10) ** -50 else mp.mpf(0), 50) for value in values)
        return mp.mpf(_value_at_seed(f"{name} of {' '.join(digits)}"))

    return function


def power(base: Any, exponent: Any) -> Any:
    """Return base ** exponent, real where a real base and an integer exponent allow it."""
    mp = context()
    if base == 0 and not (mp.isint(exponent) and exponent.real > 0):
        raise Unknown("a power of zero")
    size = abs(exponent) * max(1, abs(mp.mag(base))) if base else 0
    if size > MAX_BITS:
        raise TooLarge
    return bounded(mp.power(base, exponent))


def root(value: Any, degree: Any) -> Any:
    """Return the real root where there is one, else the principal one."""
    mp = context()
    if not mp.isint(degree) or not 2 <= degree.real <= 100:
        raise Unknown("the degree of a root")
    if degree == 2:
        return mp.sqrt(value)
    if isinstance(value, mp.mpf) and value < 0 and int(degree.real) % 2:
        return -power(-value, 1 / degree)
    return power(value, 1 / degree) if value else value


def _divide(left: Any, right: Any) -> Any:
    if not right:
        raise Unknown("division by zero")
    return left / right


def _integer(value: Any, largest: int) -> int:
    mp = context()
    if not mp.isint(value) or value.real < 0:
        raise Unknown("no natural number")
    if value.real > largest:
        raise TooLarge
    return int(value.real)


def _factorial(value: Any) -> Any:
    from math import factorial

    return context().mpf(factorial(_integer(value, MAX_FACTORIAL)))


def _binomial(n: Any, k: Any) -> Any:
    from math import comb

    return context().mpf(comb(_integer(n, MAX_BINOMIAL), _integer(k, MAX_BINOMIAL)))


def _remainder(left: Any, right: Any) -> Any:
    mp = context()
    if not (mp.isint(left) and mp.isint(right) and right) or mp.mag(left) > 150:
        raise Unknown("a remainder of non-integers")
    return mp.mpf(int(left.real) % int(right.real))


def _logarithm(value: Any, base: Any) -> Any:
    mp = context()
    if not value or not base or base == 1:
        raise Unknown("a logarithm without a value")
    return mp.log(value) / mp.log(base)


def _of(name: str) -> Callable[[Any], Any]:
    """Return mpmath's function of that name, for arguments of reasonable size."""

    def function(value: Any) -> Any:
        mp = context()
        if value and mp.mag(value) > 64:
            raise TooLarge
        if (name == "exp" or name[-1] == "h") and abs(value) > MAX_BITS:
            raise TooLarge
        try:
            return bounded(getattr(mp, name)(value))
        except (ValueError, ZeroDivisionError) as error:
            raise Unknown(name) from error

    return function


def _whole(name: str) -> Callable[[Any], Any]:
    def function(value: Any) -> Any:
        mp = context()
        if not isinstance(value, mp.mpf) or mp.mag(value) > 150:
            raise Unknown("rounding")
        nearest = mp.nint(value)
        close = (
            abs(value - nearest) < mp.mpf(10) ** -40
        )  # noise of the last digits must not move a whole number
        return nearest if close else getattr(mp, name)(value)

    return function


_TRIGONOMETRIC = tuple(name + h for name in ("sin", "cos", "tan", "cot", "sec", "csc") for h in ("", "h"))
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "!": _factorial,
    "abs": abs,
    r"\abs": abs,
    "°": lambda value: value * context().pi / 180,
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    r"\ln": _of("log"),
    r"\exp": _of("exp"),
    r"\cis": _of("expj"),
    **{f"\\{name}": _of(name) for name in _TRIGONOMETRIC},
    **{f"\\{arc}{name}": _of(f"a{name}") for name in _TRIGONOMETRIC for arc in ("a", "ar", "arc")},
    r"\lg": lambda value: _logarithm(value, context().mpf(10)),
}
BINARY: Mapping[str, Callable[..., Any]] = {
    "+": lambda a, b: bounded(a + b),
    "-": lambda a, b: bounded(a - b),
    "neg": lambda a: -a,
    "*": lambda a, b: bounded(a * b),
    "/": lambda a, b: bounded(_divide(a, b)),
    "mod": _remainder,
    "binom": _binomial,
    "log": _logarithm,
}
