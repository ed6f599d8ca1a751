r"""Parse integers, decimals, fractions, percents, money and numbers in words exactly, with their units.

This module alone decides GSM8K, AIME and AMC. No text is evaluated: a regular expression matches ASCII
digits, and the number is built from the digits. A percent sign is a unit (``50\%`` is 50, not 0.5), and
decimals are exact (33.333 is not 100/3). Up to three unit words after the number are ignored, unless both
answers have units of measure and these differ. "3 million" is a number and "3 apples" is 3, but "3 tenths",
"3 out of five" and "3 is wrong" are not 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_CHARS = 120
MAX_POWER = 300
MAX_WORDS = 16

_UINT = r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)"
_BEFORE = re.compile(
    r"(?P<a>[-+−]|(?i:minus|negative|positive)\s|)\s*(?P<money>(?:US|A|C|CA|NZ|HK)?\\?\$|[£€]"
    r"|(?:USD|EUR|GBP|Rs\.?|INR|CNY|RMB|JPY)\s?(?=[-−\d.$]))?\s*(?P<b>[-−]?)\s*"
)
_NEGATIVE = ("-", "−", "minus", "negative")
_FRACTION = re.compile(r"\\frac\{(-?)\s*(\d+)\}\{(-?)\s*(\d+)\}", re.ASCII)
_PERIOD = re.compile(r"(?<=[.\d])\\(?:overline|bar|dot)\{(\d{1,30})\}", re.ASCII)
_NUMBER = re.compile(
    rf"(?P<whole>{_UINT})\s+(?P<part>\d+)/(?P<parts>\d+)"
    rf"|(?P<top>-?{_UINT})\s*/\s*(?P<bottom>-?{_UINT})"
    r"|(?P<head>\d*)\.(?P<start>\d*?)(?:\((?P<period>\d{1,30})\)"
    r"|(?P<again>\d{1,6}?)(?P=again){2,}\s?(?:\.\.\.|\\ldots))"
    r"|(?P<digits>\d+(?:\.\d*)?|\.\d+)(?:[eE](?P<e>[+-]?\d{1,3})|\s*\\(?:times|cdot)\s*10\^"
    r"(?:\{(?P<p>-?\d{1,3})\}|(?P<d>\d)))"
    rf"|(?P<decimal>{_UINT}(?:\.\d*)?|\.\d+)",
    re.ASCII,
)
_SPACED = re.compile(r"-?\d{1,3}(?: \d{3})+(?:[.,]\d+)?", re.ASCII)
_POINTS_AND_COMMA = re.compile(r"-?\d{1,3}(?:\.\d{3})+,\d+", re.ASCII)
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d{3,}|\d+,(?:\d{1,2}|\d{4,})|\d{4,},\d{3})", re.ASCII)

# Numbers in words.
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
_TEENS = "sixteen seventeen eighteen nineteen"
_SMALL = {word: value for value, word in enumerate((_UNITS + _TEENS).split())}
_BY_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * tens for tens, word in enumerate(_BY_TENS.split(), 2)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth"
_PARTS = {"half": 2, "halve": 2, "quarter": 4, **{word: n for n, word in enumerate(_ORDINALS.split(), 3)}}

# Units.
SCALES = {"hundred": 100, **_LARGE, "trillion": 10**12, "dozen": 12}
_GROUPS = (
    "m meter meters metre metres; cm centimeter centimeters centimetre centimetres; mm millimeter "
    "millimeters millimetre millimetres; km kilometer kilometers kilometre kilometres; "
    "in inch inches; ft foot feet; "
    "yd yds yard yards; mi mile miles; s sec secs second seconds; min mins minute minutes; "
    "h hr hrs hour hours; day days; week weeks wk wks; month months; year years yr yrs; "
    "mg milligram milligrams; g gram grams; kg kgs kilogram kilograms; ton tons; lb lbs pound pounds £; "
    "oz ounce ounces; ml milliliter milliliters millilitre millilitres; l liter liters litre litres; "
    "gal gallon gallons; qt quart quarts; pint pints; cup cups; acre acres; cent cents penny pennies; "
    "dollar dollars usd $ us$; rupee rupees inr; yuan cny rmb; yen jpy; gbp; euro euros eur €; "
    "degree degrees deg °; radian radians rad"
)
_MEASURES: dict[str, str] = {name: group.split()[0] for group in _GROUPS.split(";") for name in group.split()}
_RATES = {"mph": "mi/h", "kph": "km/h", "kmh": "km/h"}
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3"}
_PERCENT = re.compile(r"(?:%|percent|per cent|pct)\.?")
_WORDS = re.compile(r"[A-Za-z][A-Za-z./'’-]*(?:\s+[A-Za-z][A-Za-z./'’-]*){0,4}")
_POWER = re.compile(r"(?<=[A-Za-z])\s?(?:\^\{?([23])\}?|([²³]))$")
_NO_UNIT = re.compile(
    rf"(?:^|(?<=\s))(?:(?:{'|'.join((*_SMALL, *_TENS))})"
    r"|(?:half|halves|third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
    r"|\w{3,6}teenth|\w{3,5}tieth|hundredth|thousandth|\w{1,6}illionth)s?"
    r"|or|and|is|are|was|were|to|but|nor|if|than|less|then|so|because|isn't|aren't|wasn't|can't|cannot"
    r"|not|no|never|none|neither|without|except|wrong|false|incorrect|untrue|invalid|impossible|excluded"
    r"|plus|minus|times|over|divided|multiplied|added|subtracted|raised|power|root|log|squared"
    r"|cubed|choose|mod|modulo|factorial|twice|doubled|tripled|halved|negative|base|binary|octal|hex"
    r"|hexadecimal|pi|infinity|out|by|below|above|under|before|after|until|till|past|from|ago|behind|short"
    r"|versus|vs|[bceiknxyz])(?=\s|$)"
    r"|^(?:of|on|at|off|up|down|with|within|between|among|around|about|near|into|onto|upon|against"
    r"|beyond|for|as)(?=\s|$)"
)
_SYMBOL = (
    r"((?:[kcmdnMGh]|\\mu\s?|[µμ])?(?:min|mol|m|g|s|hr|h|L|N|J|W|V|A|K|C|F|T|Pa|Hz|eV|cal|rad|bar|atm"
    r"|\\Omega|Ω)(?![A-Za-z]))(?:\s?\^\{?(-?\d)\}?)?"
)
_SYMBOLS = re.compile(rf"{_SYMBOL}(?:\s?(?:\\cdot|[*/\s])\s?{_SYMBOL}){{0,4}}")
_TRAILING_UNIT = re.compile(r"(?<=[\w})!°])\s+[A-Za-z]{2,}(?:[ /][A-Za-z]+){0,2}(?:\^\{?[23]\}?)?$")
_SHORT_UNIT = re.compile(r"\s*(?:cm|mm|km|kg|mg|ft|in|mi|hr|ml|mL)(?:\^[23])?(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Number:
    """An exact value and the canonical name of its unit of measure; "" without a known unit."""

    value: Fraction
    measure: str = ""

    def same(self, other: Number) -> bool:
        """Return whether the values are equal and the measures do not contradict each other."""
        clash = self.measure and other.measure and self.measure != other.measure
        return self.value == other.value and not clash


def parse_number(text: str) -> Number | None:
    r"""Return the number that ``text`` (as ``notation.clean`` returns it) states; None if it is not a number.

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
    before = _BEFORE.match(text)
    assert before is not None  # every part is optional
    if before["a"] and before["b"]:
        return None  # "--5" is not a number
    body = _PERIOD.sub(r"(\1)", _FRACTION.sub(r" \1\2/\3\4", text[before.end() :])).lstrip()
    match = _NUMBER.match(body)
    value = _value(match) if match else None
    unit = unit_of(body[match.end() :]) if match else None
    if value is None or unit is None:
        return None
    negative = before["a"].strip().lower() in _NEGATIVE or before["b"] in _NEGATIVE
    money = (before["money"] or "").replace("\\", "").strip(" .").lower()
    measure = unit[1] or _MEASURES.get("inr" if money == "rs" else money, "")
    return Number((-value if negative else value) * unit[0], measure)


def _value(match: re.Match[str]) -> Fraction | None:
    """Return the value of a match of ``_NUMBER``.

    Return None for a denominator of 0 and for a power of ten beyond ``MAX_POWER``.
    """

    def integer(name: str) -> int:
        return int(match[name].replace(",", ""))

    if match["part"] or match["top"]:
        top, bottom = ("part", "parts") if match["part"] else ("top", "bottom")
        whole = integer("whole") if match["part"] else 0
        return Fraction(integer(top), integer(bottom)) + whole if integer(bottom) else None
    if period := match["period"] or match["again"]:
        shift = 10 ** len(match["start"])
        head = Fraction(int((match["head"] or "0") + match["start"]), shift)
        return head + Fraction(int(period), shift * (10 ** len(period) - 1))
    if match["digits"]:
        power = int(match["e"] or match["p"] or match["d"])
        return Fraction(match["digits"]) * Fraction(10) ** power if abs(power) <= MAX_POWER else None
    return Fraction(match["decimal"].replace(",", ""))


def other_notation(text: str) -> str | None:
    """Return a number with a decimal comma, or with spaces between thousands, in plain notation; else None.

    Call this only if the gold answer is one number: otherwise "1,2" is a list.
    """
    text = text.strip()
    if _POINTS_AND_COMMA.fullmatch(text):
        return text.replace(".", "").replace(",", ".")
    if _SPACED.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text):
        return text.replace(" ", "").replace(",", ".")
    return None


def words_value(text: str) -> Fraction | None:
    """Return the number that English words name, or None for any other text."""
    words = text.lower().replace("-", " ").split()
    if not 0 < len(words) <= MAX_WORDS:
        return None
    if words[0] in ("minus", "negative"):
        value = words_value(" ".join(words[1:])) if words[1:2] not in (["minus"], ["negative"]) else None
        return None if value is None else -value
    parts = _PARTS.get(words[-1].removesuffix("s")) if len(words) > 1 else None
    if parts is None:
        whole = _whole(words)
        return None if whole is None else Fraction(whole)
    if len(words) > 3 and words[-3:-1] == ["and", "a"]:  # two and a half
        whole = _whole(words[:-3])
        return None if whole is None else whole + Fraction(1, parts)
    top = 1 if words[:-1] == ["a"] else _whole(words[:-1])
    return None if top is None or (top > 20 and top % 10) else Fraction(top, parts)


def _whole(words: list[str]) -> int | None:
    """Return the integer that the words name; None if they name none.

    Larger scales come first, and "and" is allowed only after hundreds.
    """
    total, limit = 0, 10**12
    after = False
    while words:
        end = next((k for k, word in enumerate(words) if word in _LARGE), len(words))
        scale = _LARGE[words[end]] if end < len(words) else 1
        group, hundreds, above = words[:end], 0, after
        if group[1:2] == ["hundred"]:
            hundreds = 100 * (1 if group[0] == "a" else _SMALL.get(group[0], 0))
            if not hundreds:
                return None
            group, above = group[2:], True
        group = group[1:] if above and group[:1] == ["and"] else group
        if len(group) == 2 and group[0] in _TENS and 0 < _SMALL.get(group[1], 0) < 10:
            rest: int | None = _TENS[group[0]] + _SMALL[group[1]]
        elif len(group) == 1:
            rest = _SMALL.get(group[0], _TENS.get(group[0]))
        else:
            rest = 0 if hundreds and not words[2:end] else None
        if rest is None or scale >= limit:
            return None
        total, limit, words, after = total + (hundreds + rest) * scale, scale, words[end + 1 :], True
    return total if after else None


def unit_of(rest: str) -> tuple[int, str] | None:
    r"""Return the scale and the measure that the words after a number name; None if they are not a unit.

    The measure is the canonical name of a common unit with its power ("cm^2", "m/s^2"), or "" for other
    units. A short word must be a known unit: in "5t" and "5 ab" the letters are factors.
    """
    attached = bool(rest) and not rest[0].isspace()
    rest = rest.strip().removeprefix("\\")
    if _PERCENT.fullmatch(rest):
        return 1, "percent"
    rest = re.sub(r"^(?:%|percent\b|pct\b)|^\^?\{?(?:th|st|nd|rd)\}?$", "", rest).strip()
    if rest in ("", ".", "°", "$"):
        return 1, _MEASURES.get(rest, "")
    if not attached and (symbols := _in_symbols(rest)) is not None:
        return 1, symbols
    rest = re.sub(r"\s*/\s*", "/", rest)
    as_written = rest.replace("mL", "ml") == rest.lower()  # in 2qT the letters are factors
    power = _POWER.search(rest)
    rest = (rest[: power.start()] if power else rest).removesuffix("°").strip().rstrip(".").lower()
    if not _WORDS.fullmatch(rest) or _NO_UNIT.search(rest) or (attached and not as_written):
        return None
    words, scale = rest.split(), 1
    while words and (factor := SCALES.get(words[0].removesuffix("s"))):
        scale *= factor
        words = words[1:]
    words = words[1:] if scale > 1 and words[:1] == ["of"] else words
    if len(words) > 3 or (scale > 1 and attached):
        return None
    if not words:
        return None if power else (scale, "")
    first = words[0].split("/")[0]
    known = first in _MEASURES or first in _RATES or (first == "sq" and len(words) > 1)
    if attached and (not known or len(words[0]) == 1):
        return None
    if not known and len(words[0]) < 3:
        return None
    exponent = (power[1] or "23"["²³".index(power[2])]) if power else ""
    return scale, _measure(words, exponent)


def _in_symbols(rest: str) -> str | None:
    """Return the measure that SI symbols name: one symbol, or several with a slash or a negative power.

    Return "" for a unit without a canonical name, and None if the text is not a unit in symbols.
    """
    parts = re.findall(_SYMBOL, rest) if _SYMBOLS.fullmatch(rest) else []
    if not parts or (len(parts) > 1 and "/" not in rest and "-" not in rest):
        return None
    symbol, power = parts[0]
    divisor, below = parts[1] if len(parts) == 2 else ("", "")
    name, per = str(_MEASURES.get(symbol.lower(), symbol)), str(_MEASURES.get(divisor.lower(), divisor))
    below = below.lstrip("-")
    if len(parts) == 1:
        return "" if "-" in power else name + (f"^{power}" if power in ("2", "3") else "")
    return f"{name}/{per}" + (f"^{below}" if below not in ("", "1") else "") if per and not power else ""


def _measure(words: list[str], exponent: str) -> str:
    """Return the canonical name of a measure (a rate has a slash); "" for an uncommon measure."""
    if len(words) > 1 and (square := _POWERS.get(words[0].rstrip("."))):
        return _measure(words[1:], square)
    over = words.index("per") if "per" in words else 0
    top, _, rate = words[0].partition("/")
    below = rate or "".join(words[over + 1 : over + 2] if over else [])
    name, per = _MEASURES.get(top, ""), _MEASURES.get(below, "")
    if top in _RATES or not name or (below and not per):
        return _RATES.get(top, "")
    return name + (f"/{per}" if per else "") + (f"^{exponent}" if exponent else "")


def without_unit(text: str) -> str:
    """Return the answer without the unit words at its end."""
    match = None if re.search(r"\b(?:or|and|not)\b", text) else _TRAILING_UNIT.search(text)
    if match and (re.search("[A-Za-z]{3}", match[0]) or _SHORT_UNIT.match(match[0])):
        unit = unit_of(match[0])
        return text[: match.start()] if unit and unit[0] == 1 else text
    return text


def measure_at_end(text: str) -> str:
    """Return the common measure that the unit words at the answer's end name; "" if there is none."""
    bare = without_unit(text)
    unit = unit_of(text[len(bare) :]) if len(bare) < len(text) else None
    return unit[1] if unit else ""
