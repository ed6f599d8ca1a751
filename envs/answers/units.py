r"""The words after a number: scales that multiply it, units that are left out, and what is neither.

"3 million" is a number, "3 apples" is 3, and "3 tenths", "3 out of five" or "3 is wrong" are not 3. Units of
the common measures have one name each, with their power, so that two different ones are distinguished.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORDS = re.compile(r"[A-Za-z][A-Za-z./'’-]*(?:\s+[A-Za-z][A-Za-z./'’-]*){0,4}")
_MAX_WORDS = 3
_POWER = re.compile(r"(?<=[A-Za-z])\s?(?:\^\{?([23])\}?|([²³]))$")
_NUMBER_WORDS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\\w{3,6}teen|twenty|thirty|forty|fifty"
    "|sixty|seventy|eighty|ninety"
)
_PARTS = (
    "half|halves|third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\\w{3,6}teenth"
    "|twentieth|\\w{3,5}tieth|hundredth|thousandth|\\w{1,6}illionth"
)
_NO_UNIT = re.compile(
    rf"(?:^|(?<=\s))(?:(?:{_NUMBER_WORDS})|(?:{_PARTS})s?"
    r"|or|and|is|are|was|were|to|but|nor|if|than|less|then|so|because|isn't|aren't|wasn't|can't|cannot"
    r"|not|no|never|none|neither|without|except|wrong|false|incorrect|untrue|invalid|impossible|excluded"
    r"|plus|minus|times|over|divided|multiplied|added|subtracted|raised|power|root|log|squared"
    r"|cubed|choose|mod"
    r"|modulo|factorial|twice|doubled|tripled|halved|negative|base|binary|octal|hex|hexadecimal|pi|infinity"
    r"|out|by|below|above|under|before|after|until|till|past|from|ago|behind|short|versus|vs"
    r"|[bceiknxyz])(?=\s|$)"
    r"|^(?:of|on|at|off|up|down|with|within|between|among|around|about|near|into|onto|upon|against"
    r"|beyond|for|as)"
    r"(?=\s|$)"
)
SCALES = {
    "hundred": 100,
    "thousand": 1000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
}
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3"}
_MEASURES = {
    name: group[0]
    for group in (
        ("m", "meter", "meters", "metre", "metres"),
        ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
        ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
        ("km", "kilometer", "kilometers", "kilometre", "kilometres"),
        ("in", "inch", "inches"),
        ("ft", "foot", "feet"),
        ("yd", "yds", "yard", "yards"),
        ("mi", "mile", "miles"),
        ("s", "sec", "secs", "second", "seconds"),
        ("min", "mins", "minute", "minutes"),
        ("h", "hr", "hrs", "hour", "hours"),
        ("day", "days"),
        ("week", "weeks", "wk", "wks"),
        ("month", "months"),
        ("year", "years", "yr", "yrs"),
        ("mg", "milligram", "milligrams"),
        ("g", "gram", "grams"),
        ("kg", "kgs", "kilogram", "kilograms"),
        ("ton", "tons"),
        ("lb", "lbs", "pound", "pounds", "£"),
        ("oz", "ounce", "ounces"),
        ("ml", "milliliter", "milliliters", "millilitre", "millilitres"),
        ("l", "liter", "liters", "litre", "litres"),
        ("gal", "gallon", "gallons"),
        ("qt", "quart", "quarts"),
        ("pint", "pints"),
        ("cup", "cups"),
        ("acre", "acres"),
        ("cent", "cents", "penny", "pennies"),
        ("dollar", "dollars", "usd", "$", "us$"),
        ("rupee", "rupees", "inr"),
        ("yuan", "cny", "rmb"),
        ("yen", "jpy"),
        ("gbp",),
        ("euro", "euros", "eur", "€"),
        ("degree", "degrees", "deg", "°"),
        ("radian", "radians", "rad"),
    )
    for name in group
}
_LETTERS = (
    r"(?:[kcmdnMGh]|\\mu\s?|[µμ])?(?:min|mol|m|g|s|hr|h|L|N|J|W|V|A|K|C|F|T|Pa|Hz|eV|cal|rad|bar|atm"
    r"|\\Omega|Ω)(?![A-Za-z])"
)
_SYMBOL = re.compile(rf"({_LETTERS})(?:\s?\^\{{?(-?\d)\}}?)?")
_SYMBOLS = re.compile(
    rf"{_LETTERS}(?:\s?\^\{{?-?\d\}}?)?(?:\s?(?:\\cdot|[*/\s])\s?{_LETTERS}(?:\s?\^\{{?-?\d\}}?)?){{0,4}}"
)
_PERCENT = re.compile(r"(?:%|percent|per cent|pct)\.?")
_RATES = {"mph": "mi/h", "kph": "km/h", "kmh": "km/h"}


@dataclass(frozen=True, slots=True)
class Unit:
    """What the words after a number mean: a scale, a measure, or neither."""

    scale: int = 1
    measure: str = ""
    """The canonical name of one of the common measures, with its power: "cm^2", "m/s^2"."""


def unit_of(rest: str) -> Unit | None:
    r"""Return what the words after a number mean (in the form of ``notation.clean``); None for no unit.

    A short word is a unit only if it is a known one: in "5t" and "5 ab" the letters are factors.

    >>> unit_of(" hundred thousand").scale, unit_of(" cm^2").measure, unit_of(" square inches").measure
    (100000, 'cm^2', 'in^2')
    >>> [unit_of(text) for text in (" tenths", " out of five", " base seven", " wrong", "t", " ab")]
    [None, None, None, None, None, None]
    """
    attached = bool(rest) and not rest[0].isspace()
    rest = rest.strip().removeprefix("\\")
    if _PERCENT.fullmatch(rest):
        return Unit(measure="percent")
    rest = re.sub(r"^(?:%|percent\b|pct\b)|^\^?\{?(?:th|st|nd|rd)\}?$", "", rest).strip()
    if rest in ("", ".", "°", "$"):
        return Unit(measure=_MEASURES.get(rest, ""))
    if not attached and (symbols := _in_symbols(rest)):
        return symbols
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
    if scale > 1 and words[:1] == ["of"]:
        words = words[1:]
    if len(words) > _MAX_WORDS or (scale > 1 and attached):
        return None
    if not words:
        return None if power else Unit(scale)
    first = words[0].split("/")[0]
    if (
        first not in _MEASURES
        and first not in _RATES
        and (attached or len(words[0]) < 3)
        and not (first == "sq" and words[1:])
    ) or (attached and len(words[0]) == 1):
        return None
    exponent = "23"["²³".index(power[2])] if power and power[2] else power[1] if power else ""
    return Unit(scale, _measure(words, exponent))


def _in_symbols(rest: str) -> Unit | None:
    r"""Return a unit of the SI in symbols: one, or several with a negative power or a slash.

    >>> _in_symbols(r"m s^{-2}").measure, _in_symbols(r"km\cdot h^{-1}").measure, _in_symbols("m g h")
    ('m/s^2', 'km/h', None)
    """
    if not _SYMBOLS.fullmatch(rest):
        return None
    parts = _SYMBOL.findall(rest)
    if len(parts) > 1 and "/" not in rest and "-" not in rest:
        return None
    (name, power), (per, below) = parts[0], parts[1] if len(parts) == 2 else ("", "")
    known = [_MEASURES.get(symbol.lower(), symbol) for symbol in (name, per)]
    if len(parts) == 1:
        return (
            Unit(measure=known[0] + (f"^{power}" if power in ("2", "3") else ""))
            if "-" not in power
            else Unit()
        )
    below = below.lstrip("-")
    rate = len(parts) == 2 and all(known) and not power
    return Unit(
        measure=f"{known[0]}/{known[1]}" + (f"^{below}" if below not in ("", "1") else "") if rate else ""
    )


def _measure(words: list[str], exponent: str) -> str:
    """Return the canonical name, a rate's with a slash; "" for a measure that is not a common one."""
    if len(words) > 1 and (square := _POWERS.get(words[0].rstrip("."))):
        return _measure(words[1:], square)
    over = next((k for k, word in enumerate(words) if word == "per"), None)
    top, bottom = (words[0], words[over + 1 : over + 2]) if over else (words[0], [])
    top, _, rate = top.partition("/")
    below = rate or "".join(bottom)
    if top in _RATES:
        return _RATES[top]
    name, per = _MEASURES.get(top, ""), _MEASURES.get(below, "")
    if not name or (below and not per):
        return ""
    power = f"^{exponent}" if exponent else ""
    return f"{name}/{per}{power}" if per else name + power


def money_of(sign: str) -> str:
    r"""Return the measure of a sign of money.

    >>> money_of("\\$"), money_of("")
    ('dollar', '')
    """
    name = sign.replace("\\", "").strip(" .").lower()
    return _MEASURES.get("rupee" if name == "rs" else name, "")
