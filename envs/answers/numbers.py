r"""Read integers, decimals, fractions, percents, money, simple LaTeX and numbers in English words exactly.

This path alone decides GSM8K, AIME and AMC. Nothing here evaluates text: a regular expression matches ASCII
digits, and the number is built from them. Policy: a percent sign is a unit (``50\%`` is 50, not 0.5); money
signs, degrees and up to three unit words after the number are ignored (``answers.units``), unless both
answers have different units of measure; decimals are exact (33.333 is not 100/3).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from envs.answers.units import money_of, unit_of

MAX_CHARS = 120
MAX_POWER = 300
MAX_WORDS = 16

_UINT = r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)"
_MIXED = re.compile(rf"(?P<whole>{_UINT})\s*\\frac\{{(?P<top>\d+)\}}\{{(?P<bottom>\d+)\}}", re.ASCII)
_MIXED_PLAIN = re.compile(r"(?P<whole>\d+)\s+(?P<top>\d+)/(?P<bottom>\d+)", re.ASCII)
_BEFORE = re.compile(
    r"(?P<a>[-+−]|(?i:minus|negative|positive)\s|)\s*(?P<money>(?:US|A|C|CA|NZ|HK)?\\?\$|[£€]|(?:USD|EUR|GBP|Rs\.?|INR|CNY|RMB"
    r"|JPY)\s?(?=[-−\d.$]))?"
    r"\s*(?P<b>[-−]?)\s*"
)
_NEGATIVE = ("-", "−", "minus", "negative")
_FRACTION = re.compile(r"\\frac\{(?P<sign>-?)\s*(?P<top>\d+)\}\{(?P<below>-?)\s*(?P<bottom>\d+)\}", re.ASCII)
_RATIO = re.compile(rf"(?P<top>{_UINT})\s*/\s*(?P<bottom>{_UINT})", re.ASCII)
_SCIENCE = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)"
    r"(?:[eE](?P<e>[+-]?\d{1,3})|\s*\\(?:times|cdot)\s*10\^(?:\{(?P<p>-?\d{1,3})\}|(?P<d>\d)))",
    re.ASCII,
)
_REPEATING = re.compile(
    r"(?P<whole>\d*)\.(?P<start>\d*)\\(?:overline|bar|dot)\{(?P<period>\d{1,30})\}", re.ASCII
)
_PERIOD = re.compile(r"(?P<whole>\d*)\.(?P<start>\d*)\((?P<period>\d{1,30})\)", re.ASCII)
_GOES_ON = re.compile(
    r"(?P<whole>\d*)\.(?P<start>\d*?)(?P<period>\d{1,6}?)(?P=period){2,}\s?(?:\.\.\.|\\ldots)", re.ASCII
)
_DECIMAL = re.compile(rf"(?:{_UINT}(?:\.\d*)?|\.\d+)", re.ASCII)
_SPACED = re.compile(r"-?\d{1,3}(?: \d{3})+(?:[.,]\d+)?", re.ASCII)
_POINTS_AND_COMMA = re.compile(r"-?\d{1,3}(?:\.\d{3})+,\d+", re.ASCII)
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d{3,}|\d+,(?:\d{1,2}|\d{4,})|\d{4,},\d{3})", re.ASCII)

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TEENS = ("eleven", "twelve", *(w + "teen" for w in ("thir", "four", "fif", "six", "seven", "eigh", "nine")))
_SMALL = {word: value for value, word in enumerate((*_UNITS, *_TEENS))}
_TENS = {
    word: 10 * tens
    for tens, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2
    )
}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ORDINALS = ("third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_PARTS = {"half": 2, "halve": 2, "quarter": 4, **{word: n for n, word in enumerate(_ORDINALS, 3)}}


@dataclass(frozen=True, slots=True)
class Number:
    """An exact value, and the canonical name of the unit of measure that follows it, if it is a known one."""

    value: Fraction
    measure: str = ""

    def same(self, other: Number) -> bool:
        """Whether both mean the same: equal values, and not two different measures."""
        clash = self.measure and other.measure and self.measure != other.measure
        return self.value == other.value and not clash


def other_notation(text: str) -> str | None:
    """Return a number written with spaces for thousands or a decimal comma in plain notation; else None.

    Read only against a gold answer that is one number: elsewhere "1,2" is a list.

    >>> [other_notation(t) for t in ("1 000", "1000,99", "0,111", "2,5", "1,200", "12 34", "1,2,3")]
    ['1000', '1000.99', '0.111', '2.5', None, None, None]
    """
    text = text.strip()
    if _POINTS_AND_COMMA.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    if _SPACED.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text):
        return text.replace(" ", "").replace(",", ".")
    return None


def parse_number(text: str) -> Number | None:
    r"""Return the number that ``text`` (in the form of ``notation.clean``) is; None otherwise.

    >>> [str(parse_number(t).value) for t in ("1,200", "-3.50", r"\frac{6}{8}", "2 1/2", "50%", "8 apples")]
    ['1200', '-7/2', '3/4', '5/2', '50', '8']
    >>> str(parse_number("minus 7").value), parse_number("minus -7")
    ('-7', None)
    >>> [parse_number(t) for t in ("7=5", "3 or 5", "2+3", "1,20", "5^2", "5t")]
    [None, None, None, None, None, None]
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARS:
        return None
    if text[0].isalpha() and (in_words := words_value(text)) is not None:
        return Number(in_words)
    sign, money, body = _sign_and_money(text)
    read = _read(body)
    if read is None:
        return None
    value, rest = read
    unit = unit_of(rest)
    return None if unit is None else Number(sign * value * unit.scale, unit.measure or money)


def _sign_and_money(text: str) -> tuple[int, str, str]:
    match = _BEFORE.match(text)
    assert match is not None  # every part is optional
    negative = (match["a"].strip().lower() in _NEGATIVE) != (match["b"] in _NEGATIVE)
    if match["a"] and match["b"]:
        return 1, "", ""  # "--5" is not a number
    return (-1 if negative else 1), money_of(match["money"] or ""), text[match.end() :]


def _read(body: str) -> tuple[Fraction, str] | None:
    """Return the unsigned value at the start of ``body`` and what follows it."""
    for pattern in (_MIXED, _MIXED_PLAIN):
        if match := pattern.match(body):
            part = _divide(match["top"], match["bottom"])
            return None if part is None else (_int(match["whole"]) + part, body[match.end() :])
    if match := _FRACTION.match(body) or _RATIO.match(body):
        part = _divide(match["top"], match["bottom"])
        signs = match.groupdict()
        sign = -1 if bool(signs.get("sign")) != bool(signs.get("below")) else 1
        return None if part is None else (sign * part, body[match.end() :])
    if match := _REPEATING.match(body) or _PERIOD.match(body) or _GOES_ON.match(body):
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


def words_value(text: str) -> Fraction | None:
    """Return the number that English words name; None for anything else.

    >>> [str(words_value(text)) for text in ("Twenty one", "minus three", "one half", "two hundred and five")]
    ['21', '-3', '1/2', '205']
    >>> [words_value(text) for text in ("twenty and one", "one two", "half", "minus", "three or four")]
    [None, None, None, None, None]
    """
    words = text.lower().replace("-", " ").split()
    if not 0 < len(words) <= MAX_WORDS:
        return None
    negative = words[0] in ("minus", "negative")
    words = words[1:] if negative else words
    value = _with_point(words) if "point" in words else _fraction(words)
    return -value if negative and value is not None else value


def _fraction(words: list[str]) -> Fraction | None:
    if len(words) > 1 and (parts := _PARTS.get(words[-1].removesuffix("s"))):
        if words[-2] == "a" and len(words) > 3 and words[-3] == "and":
            whole = _whole(words[:-3])
            return None if whole is None else whole + Fraction(1, parts)
        top = 1 if words[:-1] == ["a"] else _whole(words[:-1])
        return None if top is None or (top > 20 and top % 10) else Fraction(top, parts)
    whole = _whole(words)
    return None if whole is None else Fraction(whole)


def _with_point(words: list[str]) -> Fraction | None:
    """Return "three point one four": digits behind the point."""
    at = words.index("point")
    whole, digits = _whole(words[:at]), [_SMALL.get(word, 10) for word in words[at + 1 :]]
    if whole is None or not digits or max(digits) > 9:
        return None
    return whole + Fraction(int("".join(map(str, digits))), 10 ** len(digits))


def _whole(words: list[str]) -> int | None:
    """Return the whole number that the words name: larger scales first, "and" after hundreds only."""
    total, limit, at = 0, 10**12, 0
    while at < len(words):
        end = next((k for k in range(at, len(words)) if words[k] in _LARGE), len(words))
        scale = _LARGE[words[end]] if end < len(words) else 1
        group = _below_thousand(words[at:end], after=at > 0)
        if group is None or scale >= limit or (end < len(words) and end == at):
            return None
        total, limit, at = total + group * scale, scale, end + 1
    return total if words else None


def _below_thousand(words: list[str], *, after: bool) -> int | None:
    total = 0
    if len(words) > 1 and words[1] == "hundred":
        hundreds = 1 if words[0] == "a" else _SMALL.get(words[0], 0)
        total, words, after = 100 * hundreds, words[2:], True
        if not words or not hundreds:
            return total or None
    if after and words[:1] == ["and"]:
        words = words[1:]
    if len(words) == 1:
        rest = _SMALL.get(words[0], _TENS.get(words[0]))
    else:
        pair = len(words) == 2 and words[0] in _TENS and 0 < _SMALL.get(words[1], 0) < 10
        rest = _TENS[words[0]] + _SMALL[words[1]] if pair else None
    return None if rest is None else total + rest
