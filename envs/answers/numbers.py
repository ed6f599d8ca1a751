r"""Read integers, decimals, fractions, percents, money and simple LaTeX numbers exactly, as fractions.

This path decides GSM8K, AIME and AMC alone. Nothing here evaluates text: a number is matched by a regular
expression on ASCII digits and built from them. Policy: a percent sign is a unit (``50\%`` is 50, not 0.5);
money signs, degrees and up to three unit words after the number are ignored (``answers.units``), unless both
answers carry different units of measure; decimals are exact (33.333 is not 100/3).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from envs.answers.number_words import words_value
from envs.answers.units import money_of, unit_of

MAX_CHARS = 120
MAX_POWER = 300

_UINT = r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)"
_MIXED = re.compile(rf"(?P<whole>{_UINT})\s*\\frac\{{(?P<top>\d+)\}}\{{(?P<bottom>\d+)\}}", re.ASCII)
_MIXED_PLAIN = re.compile(r"(?P<whole>\d+)\s+(?P<top>\d+)/(?P<bottom>\d+)", re.ASCII)
_FRACTION = re.compile(r"\\frac\{(?P<sign>-?)\s*(?P<top>\d+)\}\{(?P<bottom>\d+)\}", re.ASCII)
_RATIO = re.compile(rf"(?P<top>{_UINT})\s*/\s*(?P<bottom>{_UINT})", re.ASCII)
_SCIENCE = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE](?P<e>[+-]?\d{1,3})|\s*\\(?:times|cdot)\s*10\^(?:\{(?P<p>-?\d{1,3})\}|(?P<d>\d)))",
    re.ASCII,
)
_REPEATING = re.compile(
    r"(?P<whole>\d*)\.(?P<start>\d*)\\(?:overline|bar|dot)\{(?P<period>\d{1,30})\}", re.ASCII
)
_DECIMAL = re.compile(rf"(?:{_UINT}(?:\.\d*)?|\.\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Number:
    """An exact value and, where one of the known measures follows it, that measure's canonical name."""

    value: Fraction
    measure: str = ""

    def same(self, other: Number) -> bool:
        """Whether both mean the same: equal values, and no two different measures."""
        clash = self.measure and other.measure and self.measure != other.measure
        return self.value == other.value and not clash


_SPACED = re.compile(r"-?\d{1,3}(?: \d{3})+(?:[.,]\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d{3,}|\d+,(?:\d{1,2}|\d{4,})|\d{4,},\d{3})", re.ASCII)


def other_notation(text: str) -> str | None:
    """Return a number written with spaces for thousands or a decimal comma in plain notation; else None.

    Read only against a gold answer that is one number: elsewhere "1,2" is a list.

    >>> [other_notation(t) for t in ("1 000", "1000,99", "0,111", "2,5", "1,200", "12 34", "1,2,3")]
    ['1000', '1000.99', '0.111', '2.5', None, None, None]
    """
    text = text.strip()
    if _SPACED.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text):
        return text.replace(" ", "").replace(",", ".")
    return None


def parse_number(text: str) -> Number | None:
    r"""Return the number that ``text`` (in the form of ``notation.clean``) is; None otherwise.

    >>> [str(parse_number(t).value) for t in ("1,200", "-3.50", r"\frac{6}{8}", "2 1/2", "50%", "8 apples")]
    ['1200', '-7/2', '3/4', '5/2', '50', '8']
    >>> [parse_number(t) for t in ("7=5", "3 or 5", "2+3", "1,20", "5^2", "5t")]
    [None, None, None, None, None, None]
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARS:
        return None
    if text[0].isalpha() and (said := words_value(text)) is not None:
        return Number(said)
    sign, money, body = _sign_and_money(text)
    read = _read(body)
    if read is None:
        return None
    value, rest = read
    unit = unit_of(rest)
    return None if unit is None else Number(sign * value * unit.scale, unit.measure or money)


def _sign_and_money(text: str) -> tuple[int, str, str]:
    match = re.match(r"(?P<a>[-+−]?)\s*(?P<money>\\?\$|[£€])?\s*(?P<b>[-−]?)\s*", text)
    assert match is not None  # every part is optional
    negative = (match["a"] in ("-", "−")) != (match["b"] in ("-", "−"))
    if match["a"] and match["b"]:
        return 1, "", ""  # "--5" is no number
    return (-1 if negative else 1), money_of(match["money"] or ""), text[match.end() :]


def _read(body: str) -> tuple[Fraction, str] | None:
    """Return the unsigned value at the start of ``body`` and what follows it."""
    for pattern in (_MIXED, _MIXED_PLAIN):
        if match := pattern.match(body):
            part = _divide(match["top"], match["bottom"])
            return None if part is None else (_int(match["whole"]) + part, body[match.end() :])
    if match := _FRACTION.match(body) or _RATIO.match(body):
        part = _divide(match["top"], match["bottom"])
        sign = -1 if match.groupdict().get("sign") else 1
        return None if part is None else (sign * part, body[match.end() :])
    if match := _REPEATING.match(body):
        shift, period = 10 ** len(match["start"]), 10 ** len(match["period"]) - 1
        head = Fraction(int((match["whole"] or "0") + match["start"]), shift)
        return head + Fraction(int(match["period"]), shift * period), body[match.end() :]
    if match := _SCIENCE.match(body):
        power = int(match["e"] or match["p"] or match["d"])
        return (
            (Fraction(match["number"]) * Fraction(10) ** power, body[match.end() :])
            if abs(power) <= MAX_POWER
            else None
        )
    match = _DECIMAL.match(body)
    return (Fraction(match.group().replace(",", "")), body[match.end() :]) if match else None


def _int(digits: str) -> Fraction:
    return Fraction(digits.replace(",", ""))


def _divide(top: str, bottom: str) -> Fraction | None:
    divisor = _int(bottom)
    return _int(top) / divisor if divisor else None
