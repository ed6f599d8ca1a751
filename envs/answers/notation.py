r"""Write an answer in one plain notation: different Unicode and LaTeX for one thing become the same text.

Only spelling changes here (``x²`` to ``x^2``, ``\dfrac`` to ``\frac``, ``\left(`` to ``(``, ``\text{ cm}``
off the end, ``x = `` off the front), never value. Linear in the length.
"""

from __future__ import annotations

import re
from itertools import accumulate

from envs.answers.dialects import plain_tex
from envs.answers.units import unit_of

_SPACING = re.compile(r"(?<!\\)\\(?=\s|$)|\\(?:left|right|middle|[bB]igg?[lrm]?)(?![A-Za-z])\.?")
_BRACKETS = re.compile(r"(?<!\\)\\[()\[\]]")
_DELIMITERS = ((r"\(", r"\)"), (r"\[", r"\]"))
_DOLLAR = re.compile(r"(?<!\\)\$")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")  # text that went through a JSON dump once too often
_DEGREES = re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree\b")
_ANY_INTEGER = re.compile(
    r"\s?(?:,|\(|\bfor\b)\s?(?:where |any |all )?[kmn]"
    r"(?:\s?\\in\s?(?:\\mathbb\{Z\}|Z)| is an(?:y)? integer)\)?$"
)
"""What is meant without saying it: that a parameter k, m or n is any integer."""
_NEGATED = re.compile(r"\\not\s?=")
_THIN_SPACE = re.compile(r"(?<=\d)(?:,?\\[!,;]|\\!,)\s*(?=\d{3}(?!\d))", re.ASCII)
_TRAILING_UNIT = re.compile(r"(?<=[\w})!°])\s+[A-Za-z]{2,}(?:[ /][A-Za-z]+){0,2}(?:\^\{?[23]\}?)?$")
_SUBSCRIPTS = r"(?:_(?:\{[^{}=]{1,24}\}|\w))?'{0,2}"
_AT = r"(?:[A-Za-z]|-?\d{1,6}(?![\d.]))"
_NAME = re.compile(
    rf"(?:[A-Za-z]|\\(?!pi\b)[A-Za-z][a-z]{{1,6}}){_SUBSCRIPTS}"
    rf"(?:(?:(?<=[a-zA-Z])\^\{{-1\}})?\(\s*{_AT}(?:\s*,\s*{_AT})*\s*\))?"
    r"|\|?[A-Z]{2,4}\|?|\([a-z](?:,\s*[a-z]){1,3}\)|[A-Za-z]{2,}(?: [A-Za-z]+){0,3}"
)
_NAMED = r"(?:[A-Z]{2,4}|[A-Z](?:_\{?\w{1,6}\}?)?)"
_QUANTITY = re.compile(
    r"(?:m\s?)?\\(?:angle|triangle)(?![A-Za-z])\s?[A-Z]{1,3}|\\(?:overline|vec"
    r"|overrightarrow)\{[A-Za-z]{1,2}\}|\[[A-Z]{3,6}\]"
    r"|\|?\\(?:overline|vec|overrightarrow)\{[A-Za-z]{1,2}\}\|?|(?:P|E|V|Var|Cov|Pr|\\Pr"
    r"|\\mathbb\{[EP]\})\s?[(\[][^()\[\]]{1,40}[)\]]"
    r"|\|[A-Z](?:\s?\\(?:cap|cup|setminus)\s?[A-Z]){1,3}\|"
    rf"|{_NAMED}\s?[:/]\s?{_NAMED}|\\frac\{{{_NAMED}\}}\{{{_NAMED}\}}"
    r"|\\(?:det|gcd|max|min|lcm|arg|operatorname)(?![A-Za-z])[^=]{1,60}|(?:gcd|lcm|max|min"
    r"|det)\s?\([^()=]{1,60}\)"
)
BOUND = re.compile(
    r"\\(?:i{0,3}nt|oint|sum|prod|coprod|lim|limsup|liminf|det|frac\{d\}|frac\{d|partial|nabla|ldots)(?![A-Za-z])"
    r"|\\begin\{vmatrix\}|\\frac\{d(?:\^\{?\d\}?)?\s?[A-Za-z]\}\{d"
)
"""What is stated to be evaluated: sums, integrals, limits, derivatives, determinants."""
DERIVATIVE = re.compile(r"\\frac\{d[^{}]*\}\{d[^{}]*\}|[A-Za-z]'{1,3}(?:\([a-z]\))?")
_ARGUMENT = re.compile(r"(?<=[A-Za-z'])\([^()]{1,40}\)|[_^](?:\{[^{}]{1,40}\}|\\?\w+|\*)")
_NAMING = re.compile(
    r"(?:[A-Za-z+*|'\s{}()-]|\\(?:frac|cdot|times|vec|overrightarrow|overline|bar|hat|angle|triangle|max|min|alpha|beta"
    r"|gamma|theta|lambda|mu|phi|omega|Delta)(?![A-Za-z]))+"
)
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])|(?<![A-Za-z\\])[A-Z]{2,4}(?![A-Za-z])")
_VARIABLE = re.compile(rf"(?![ei]$)[A-Za-z]{_SUBSCRIPTS}")
_CONNECTIVE = re.compile(r"\b(?:or|and|not)\b")
_SHORT_UNITS = frozenset(
    unit + power
    for unit in ("cm", "mm", "km", "kg", "mg", "ft", "in", "mi", "hr", "ml", "mL")
    for power in ("", "^2", "^3")
)
_ANGLE = re.compile(r"\\angle\s?([A-Z]{3})(?![A-Za-z])")
_REVERSED = re.compile(
    r"(?<!\\sqrt)(?<!\\sqrt\[\w)([\[\]])([^\[\](),;]{1,60}[,;][^\[\](),;]{1,60})([\[\]])(?!\()"
)
_CHAIN = re.compile(r"^\(([^(),;=]+=[^(),;]+)\)$")
"""A chain of equations in brackets."""
_DROPPED = str.maketrans("", "", "$°")
_WRAPPERS = (("\\boxed{", "}"), ("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$"), ("**", "**"))
_MAX_WRAPPED = 4
_BRACED = re.compile(r"\\.|[{}]", re.DOTALL)
MAX_CHARS = 4000
RELATION = re.compile(r"(?<![<>\\:])(?<![A-Za-z)}\]\s!]!)=(?!=)")  # 5!=120 is one, x!=3 is none

_HIGH = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_LOW = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUPERSCRIPT = re.compile(r"[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_SUBSCRIPT = re.compile(r"[₀₁₂₃₄₅₆₇₈₉]+")
_FRACTIONS = {
    sign: (top, bottom)
    for bottom, signs, tops in (
        (2, "½", (1,)),
        (3, "⅓⅔", (1, 2)),
        (4, "¼¾", (1, 3)),
        (5, "⅕⅖⅗⅘", (1, 2, 3, 4)),
        (6, "⅙⅚", (1, 5)),
        (8, "⅛⅜⅝⅞", (1, 3, 5, 7)),
    )
    for sign, top in zip(signs, tops, strict=True)
}
_COMMANDS = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Sigma Phi Psi Omega pi times cdot cdot div infty cup cap in notin emptyset "
    "le le le ge ge ge neq approx pm setminus mid land lor angle triangle langle rangle lfloor rfloor lceil "
    "rceil sum int prod ldots sqrt"
)
_SIGNS = str.maketrans(
    {
        **{
            sign: rf"\{name} "
            for sign, name in zip(
                "αβγδεζηθκλμνξρστφχψωΓΔΘΛΣΦΨΩπ×⋅·÷∞∪∩∈∉∅≤≦⩽≥≧⩾≠≈±∖∣∧∨∠△⟨⟩⌊⌋⌈⌉∑∫∏…√",
                _COMMANDS.split(),
                strict=True,
            )
        },
        **{sign: rf"\mathbb{{{name}}}" for sign, name in zip("ℝℤℕℚℂ", "RZNQC", strict=True)},
        **{sign: rf"\frac{{{top}}}{{{bottom}}}" for sign, (top, bottom) in _FRACTIONS.items()},
        **{"−": "-", "–": "-", "ⁿ": "^n", "′": "'", "″": "''", "∛": r"\sqrt[3]", "¢": " cents"},
    }
)
_RADICAL = re.compile(r"√\s?(\d+(?:\.\d+)?)", re.ASCII)  # a line over all digits, unlike \sqrt12
_INFINITY_WORD = re.compile(r"(?<![A-Za-z\\])inf(?:inity)?(?![A-Za-z])", re.IGNORECASE)
_POWER_OF_TEN = re.compile(
    r"(?<=[\d.])\s?[*×·⋅x]\s?10\s?(?:\^|\*\*)\s?(?:([-−]?\d{1,3})(?!\d|\.\d)|[{(]([-−]?\d{1,3})[)}])",
    re.ASCII,
)
_ABOUT = re.compile(r"^~\s?(?=\d)", re.ASCII)
_COMPARISONS = {"<=": r"\le ", ">=": r"\ge ", "!=": r"\neq "}
_COMPARED = re.compile("<=|>=|(?<=\\s)!=")  # 5!=120 is a factorial
_APOSTROPHES = re.compile(r"(?<![\w.'’])\d{1,3}(?:['’]\d{3})+(?![\w'’])", re.ASCII)
_MONEY_BEFORE = re.compile(r"^(\s*[-−]?\s?)[₹¥₩](?=\s?[\d.])", re.ASCII)
_MONEY_AFTER = re.compile(r"(?<=\d)\s?[€£₹¥₩元円원](?=\.?\s*$)", re.ASCII)


_OTHER_SIGNS = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if not chr(code).isdigit()},
    **dict(zip("、。【】《》〈〉「」", ',.[]⟨⟩⟨⟩""', strict=True)),
    **dict(zip("\u066b\u066c\u061b\u060c\u066a", ".,;,%", strict=True)),
    **dict(zip("\u3000\u2007\u2010\u2011\u2012\u2044\u2215\u2217\u2236", "  ---//*:", strict=True)),
    **dict(zip("\uffe5\uffe1\uffe0", "\u00a5\u00a3\u00a2", strict=True)),
}
_IN_ASCII = str.maketrans(_OTHER_SIGNS)


def in_ascii(text: str) -> str:
    """Return the text with full-width and other signs of other scripts in ASCII; digits stay.

    >>> in_ascii("（1，2）"), in_ascii("x²"), in_ascii("５")
    ('(1,2)', 'x²', '５')
    """
    return text if text.isascii() else text.translate(_IN_ASCII)


def _straight(match: re.Match[str]) -> str:
    """Return an interval with reversed brackets, ``]a,b[``, in the other way to write it."""
    left, inside, right = match.groups()
    return ("(" if left == "]" else left) + inside + (")" if right == "[" else right)


def clean(text: str) -> str:
    r"""Return the answer in plain notation.

    >>> clean(r"$\dfrac{3}{4}\text{ cm}$"), clean(r"\left( 3, \frac{\pi}{2} \right)"), clean(r"\$1{,}200")
    ('\\frac{3}{4} cm', '(3, \\frac{\\pi}{2})', '$1,200')
    """
    text = _without_pairs(_THIN_SPACE.sub("", _unwrap(in_latex(in_ascii(text).strip()))))
    if "\\\\" in text and "\\begin" not in text and "matrix" not in text:
        text = _DOUBLED.sub(r"\\", text)
    text = text.replace("\\$", "$").replace("{,}", ",").replace("{, }", ",").replace("\\%", "%")
    text = _NEGATED.sub(r"\\neq ", text)
    text = _DEGREES.sub("°", _SPACING.sub(" ", plain_tex(text)))
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ?([{(\[+=^]) ?| ?([})\]]) ?(?![A-Za-z]{2})", r"\1\2", _ANY_INTEGER.sub("", text))
    text = _ANGLE.sub(lambda match: rf"\angle {min(match[1], match[1][::-1])}", text)
    text = _CHAIN.sub(r"\1", _REVERSED.sub(_straight, text) if "[" in text or "]" in text else text)
    return _starless((text if text.endswith("...") else text.rstrip(".")).strip())


def sides(text: str) -> list[str]:
    r"""Return the sides of a chain of equations without leading names: each is a claim about the answer.

    A name says what is meant: a letter, ``f(x)``, ``\\angle ABC``, ``P(A)``. A sum, an integral, a limit or a
    determinant that is stated and then evaluated is one too.

    >>> sides("x=5"), sides("f(x)=x+1"), sides("7=5"), sides("1=2=3=5"), sides("x+y=3")
    (['5'], ['x+1'], ['7', '5'], ['1', '2', '3', '5'], ['x+y', '3'])
    >>> sides(r"\sum_{k=1}^5 1=5"), sides(r"\angle ABC=30°")
    (['5'], ['30°'])
    """
    parts = _between_signs(text)
    parts = parts[1:] if len(parts) > 1 and not parts[0] else parts  # "= 5"
    while len(parts) > 1 and _is_named(parts[0]) and not _occurs(parts[0], parts[1:]):
        parts = parts[1:]
    if not BOUND.search(parts[-1]):
        parts = [part for part in parts if not BOUND.search(part)]
    named_last = len(parts) == 2 and _VARIABLE.fullmatch(parts[1]) and not _NAME.fullmatch(parts[0])
    return parts[:1] if named_last and not _occurs(parts[1], parts[:1]) else parts  # 5 = x


def name_of(text: str) -> str:
    r"""Return the name before the one value of a text, "" for none: ``f(2)=5``, ``\angle A=5``, ``x=5``.

    >>> name_of("f(2)=5"), name_of(r"\frac{dy}{dx}=2x"), name_of("2x=5"), name_of("a=b=5")
    ('f(2)', '\\frac{dy}{dx}', '', '')
    """
    name = statement(text)
    return name if _is_named(name) or DERIVATIVE.fullmatch(name) else ""


def statement(text: str) -> str:
    """Return what the one "=" of a text stands behind, "" where it has none or several."""
    parts = _between_signs(text)
    return parts[0] if len(parts) == 2 else ""


def value_stated(text: str) -> str:
    r"""Return what stands behind a name that is more than a letter: ``a+b=7``, ``\frac{a}{b}=7``.

    Such a name has letters, and numbers only in arguments, powers and subscripts: ``2x=6`` is an equation.

    >>> [value_stated(text) for text in ("a+b=7", "f(2)=7", "x_1=7", "2x=6", "x+1=5", "5=a+b")]
    ['7', '7', '7', '2x=6', 'x+1=5', '5=a+b']
    """
    name, *values = _between_signs(text)
    bare = _ARGUMENT.sub("", name)
    named = values and _LETTER.search(bare) and _NAMING.fullmatch(bare) and not _LETTER.search(values[-1])
    return "=".join(values) if named else text


def _between_signs(text: str) -> list[str]:
    """Return what stands between the signs of equality outside braces and round brackets."""
    parts: list[str] = []
    for piece in RELATION.split(text):
        if parts and any(parts[-1].count(a) > parts[-1].count(b) for a, b in ("{}", "()")):
            parts[-1] += f"={piece}"
        else:
            parts.append(piece)
    return [part.strip() for part in parts]


def _is_named(side: str) -> bool:
    return _NAME.fullmatch(side) is not None or _QUANTITY.fullmatch(side) is not None


def _occurs(name: str, others: list[str]) -> bool:
    """Whether a variable stands in the other sides: "x = x+1" does not name a value."""
    if len(name) > 1:
        return False
    return any(re.search(rf"(?<![A-Za-z\\]){name}(?![A-Za-z_(])", other) for other in others)


def spelling(text: str) -> str:
    r"""Return the text by which two answers are compared as strings: no spaces, no braces around one sign.

    >>> spelling(r"x^{2} + 1") == spelling("x^2+1")
    True
    """
    text = re.sub(r"\{(\w)\}", r"\1", text.translate(_DROPPED))
    return re.sub(r"(?<!\d) | (?!\d)", "", text, flags=re.ASCII)


def without_unit(text: str) -> str:
    r"""Return the answer without unit words at its end.

    >>> without_unit(r"12\sqrt{3} square cm"), without_unit("5 or six"), without_unit("Evelyn")
    ('12\\sqrt{3}', '5 or six', 'Evelyn')
    """
    match = None if _CONNECTIVE.search(text) else _TRAILING_UNIT.search(text)
    known = match and (re.search("[A-Za-z]{3}", match.group()) or match.group().split()[0] in _SHORT_UNITS)
    unit = unit_of(match.group()) if match and known else None
    return text[: match.start()] if match and unit and unit.scale == 1 else text


def measure_at_end(text: str) -> str:
    r"""Return the common measure that the answer's unit words name; "" for none.

    >>> measure_at_end(r"12\sqrt{3} square cm"), measure_at_end(r"12\sqrt{3}")
    ('cm^2', '')
    """
    unit = unit_of(text[len(bare) :]) if len(bare := without_unit(text)) < len(text) else None
    return unit.measure if unit else ""


def in_latex(text: str) -> str:
    r"""Return the text with Unicode and ASCII signs in LaTeX.

    >>> [in_latex(plain) for plain in ("1.5×10³", "1.5*10^3", "[3,∞)", "2½", "1'000", "45 €", "x₁²⁰")]
    ['1.5\\times 10^{3}', '1.5\\times 10^{3}', '[3,\\infty )', '2\\frac{1}{2}', '1000', '45', 'x_1^{20}']
    >>> in_latex("√12"), in_latex("√x")
    ('\\sqrt{12}', '\\sqrt x')
    """
    if len(text) > MAX_CHARS:  # too long for an answer
        return text
    if not text.isascii():
        text = _MONEY_AFTER.sub("", _MONEY_BEFORE.sub(r"\1", text))
        text = _SUPERSCRIPT.sub(lambda match: "^" + _group(match.group().translate(_HIGH)), text)
        text = _RADICAL.sub(r"\\sqrt{\1}", text)
        text = _SUBSCRIPT.sub(lambda match: "_" + _group(match.group().translate(_LOW)), text)
    text = _POWER_OF_TEN.sub(r"\\times 10^{\1\2}", text)
    text = _APOSTROPHES.sub(lambda match: re.sub("['’]", "", match.group()), text)
    text = _ABOUT.sub(r"\\approx ", text)
    text = _COMPARED.sub(lambda match: _COMPARISONS[match[0]], text)
    return _INFINITY_WORD.sub(r"\\infty ", text).translate(_SIGNS)


def _unwrap(text: str) -> str:
    """Return the text without the mathematics delimiters and the box around it, in whatever order."""
    for _ in range(_MAX_WRAPPED):
        inside = next((inner for pair in _WRAPPERS if (inner := _inside(text, *pair)) is not None), None)
        if inside is None:
            break
        text = inside
    return text


def _inside(text: str, opening: str, closing: str) -> str | None:
    inside = text[len(opening) : len(text) - len(closing)]
    around = len(text) > len(opening) + 1 and text.startswith(opening) and text.endswith(closing)
    alone = _is_balanced(inside) if closing == "}" else closing not in inside
    return inside.strip() if around and alone and (closing == "}" or opening not in inside) else None


def _is_balanced(text: str) -> bool:
    depths = accumulate((sign == "{") - (sign == "}") for sign in _BRACED.findall(text))
    return min(depths, default=0) >= 0


def _starless(text: str) -> str:
    return text[2:-2].strip() if len(text) > 4 and text.startswith("**") and text.endswith("**") else text


def _without_pairs(text: str) -> str:
    """Return the text without dollars that come in pairs around parts of it: ``$12$ and $13$``."""
    text = (
        _BRACKETS.sub(" ", text) if any(all(sign in text for sign in pair) for pair in _DELIMITERS) else text
    )
    return _DOLLAR.sub(" ", text) if text.count("$") > 1 and len(_DOLLAR.findall(text)) % 2 == 0 else text


def _group(digits: str) -> str:
    return digits if len(digits) == 1 else f"{{{digits}}}"
