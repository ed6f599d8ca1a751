r"""Rewrite an answer in one plain notation, so that Unicode and LaTeX variants become the same text.

Only the spelling changes here, never the value: ``x²`` becomes ``x^2``, ``\dfrac`` becomes ``\frac``,
``\left(`` becomes ``(``, and a leading ``x = `` is removed. The time is linear in the length.
"""

from __future__ import annotations

import re
from itertools import accumulate

from envs.answers.tex import plain_tex

MAX_CHARS = 4000

# Signs in Unicode.
_HIGH = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_LOW = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_COMMANDS = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Sigma Phi Psi Omega pi times cdot cdot div infty cup cap in notin emptyset "
    "le le le ge ge ge neq approx pm setminus mid land lor angle triangle langle rangle lfloor rfloor lceil "
    "rceil sum int prod ldots sqrt"
)
_FRACTIONS = "½12 ⅓13 ⅔23 ¼14 ¾34 ⅕15 ⅖25 ⅗35 ⅘45 ⅙16 ⅚56 ⅛18 ⅜38 ⅝58 ⅞78"
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
        **{sign: rf"\frac{{{top}}}{{{bottom}}}" for sign, top, bottom in _FRACTIONS.split()},
        **{"−": "-", "–": "-", "ⁿ": "^n", "′": "'", "″": "''", "∛": r"\sqrt[3]", "¢": " cents"},
    }
)
_IN_ASCII = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if not chr(code).isdigit()},
        **dict(zip("、。【】《》〈〉「」", ',.[]⟨⟩⟨⟩""', strict=True)),
        **dict(zip("\u066b\u066c\u061b\u060c\u066a", ".,;,%", strict=True)),
        **dict(zip("\u3000\u2007\u2010\u2011\u2012\u2044\u2215\u2217\u2236", "  ---//*:", strict=True)),
        **dict(zip("\uffe5\uffe1\uffe0", "\u00a5\u00a3\u00a2", strict=True)),
    }
)
_UNICODE_RULES = (  # money, powers, roots (the root covers all digits, unlike \sqrt12), indices
    (re.compile(r"^(\s*[-−]?\s?)[₹¥₩](?=\s?[\d.])", re.ASCII), r"\1"),
    (re.compile(r"(?<=\d)\s?[€£₹¥₩元円원](?=\.?\s*$)", re.ASCII), ""),
    (re.compile(r"[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+"), lambda match: "^" + _group(match[0].translate(_HIGH))),
    (re.compile(r"√\s?(\d+(?:\.\d+)?)", re.ASCII), r"\\sqrt{\1}"),
    (re.compile(r"[₀₁₂₃₄₅₆₇₈₉]+"), lambda match: "_" + _group(match[0].translate(_LOW))),
)
_ASCII_RULES = (
    (
        re.compile(
            r"(?<=[\d.])\s?[*×·⋅x]\s?10\s?(?:\^|\*\*)\s?(?:([-−]?\d{1,3})(?!\d|\.\d)|[{(]([-−]?\d{1,3})[)}])",
            re.ASCII,
        ),
        r"\\times 10^{\1\2}",
    ),
    (
        re.compile(r"(?<![\w.'’])\d{1,3}(?:['’]\d{3})+(?![\w'’])", re.ASCII),
        lambda match: re.sub("['’]", "", match[0]),
    ),
    (re.compile(r"^~\s?(?=\d)", re.ASCII), r"\\approx "),
    (re.compile("<="), r"\\le "),
    (re.compile(">="), r"\\ge "),
    (re.compile(r"(?<=\s)!="), r"\\neq "),  # 5!=120 is a factorial
    (re.compile(r"(?<![A-Za-z\\])inf(?:inity)?(?![A-Za-z])", re.IGNORECASE), r"\\infty "),
)

# Markup that does not change an answer.
_WRAPPERS = (("\\boxed{", "}"), ("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$"), ("**", "**"))
_MAX_WRAPPED = 4
_THIN_SPACE = re.compile(r"(?<=\d)(?:,?\\[!,;]|\\!,)\s*(?=\d{3}(?!\d))", re.ASCII)
_BRACKETS = re.compile(r"(?<!\\)\\[()\[\]]")
_DOLLAR = re.compile(r"(?<!\\)\$")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")  # text that was escaped for JSON once too often
_ESCAPED = (("\\$", "$"), ("{,}", ","), ("{, }", ","), ("\\%", "%"))
_TEX_RULES = (
    (re.compile(r"(?<!\\)\\(?=\s|$)|\\(?:left|right|middle|[bB]igg?[lrm]?)(?![A-Za-z])\.?"), " "),
    (re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree\b"), "°"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"^ | $"), ""),
    (  # implied anyway: a parameter k, m or n is any integer
        re.compile(
            r"\s?(?:,|\(|\bfor\b)\s?(?:where |any |all )?[kmn]"
            r"(?:\s?\\in\s?(?:\\mathbb\{Z\}|Z)| is an(?:y)? integer)\)?$"
        ),
        "",
    ),
    (re.compile(r" ?([{(\[+=^]) ?| ?([})\]]) ?(?![A-Za-z]{2})"), r"\1\2"),
    (
        re.compile(r"\\angle\s?([A-Z]{3})(?![A-Za-z])"),
        lambda match: rf"\angle {min(match[1], match[1][::-1])}",
    ),
)
_REVERSED = re.compile(
    r"(?<!\\sqrt)(?<!\\sqrt\[\w)([\[\]])([^\[\](),;]{1,60}[,;][^\[\](),;]{1,60})([\[\]])(?!\()"
)
_CHAIN = re.compile(r"^\(([^(),;=]+=[^(),;]+)\)$")  # a chain of equations in brackets

# Names before a value.
RELATION = re.compile(r"(?<![<>\\:])(?<![A-Za-z)}\]\s!]!)=(?!=)")  # 5!=120 is an equation, x!=3 is not
_SUBSCRIPTS = r"(?:_(?:\{[^{}=]{1,24}\}|\w))?'{0,2}"
_AT = r"(?:[A-Za-z]|-?\d{1,6}(?![\d.]))"
_NAME = re.compile(
    rf"(?:[A-Za-z]|\\(?!pi\b)[A-Za-z][a-z]{{1,6}}){_SUBSCRIPTS}"
    rf"(?:(?:(?<=[a-zA-Z])\^\{{-1\}})?\(\s*{_AT}(?:\s*,\s*{_AT})*\s*\))?"
    r"|\|?[A-Z]{2,4}\|?|\([a-z](?:,\s*[a-z]){1,3}\)|[A-Za-z]{2,}(?: [A-Za-z]+){0,3}"
)
_NAMED = r"(?:[A-Z]{2,4}|[A-Z](?:_\{?\w{1,6}\}?)?)"
_QUANTITY = re.compile(
    r"(?:m\s?)?\\(?:angle|triangle)(?![A-Za-z])\s?[A-Z]{1,3}|\[[A-Z]{3,6}\]"
    r"|\|?\\(?:overline|vec|overrightarrow)\{[A-Za-z]{1,2}\}\|?"
    r"|(?:P|E|V|Var|Cov|Pr|\\Pr|\\mathbb\{[EP]\})\s?[(\[][^()\[\]]{1,40}[)\]]"
    r"|\|[A-Z](?:\s?\\(?:cap|cup|setminus)\s?[A-Z]){1,3}\|"
    rf"|{_NAMED}\s?[:/]\s?{_NAMED}|\\frac\{{{_NAMED}\}}\{{{_NAMED}\}}"
    r"|\\(?:det|gcd|max|min|lcm|arg|operatorname)(?![A-Za-z])[^=]{1,60}|(?:gcd|lcm|max|min"
    r"|det)\s?\([^()=]{1,60}\)"
)
BOUND = re.compile(
    r"\\(?:i{0,3}nt|oint|sum|prod|coprod|lim|limsup|liminf|det|frac\{d\}|frac\{d|partial|nabla|ldots)(?![A-Za-z])"
    r"|\\begin\{vmatrix\}|\\frac\{d(?:\^\{?\d\}?)?\s?[A-Za-z]\}\{d"
)
"""Expressions that a problem asks to evaluate: sums, integrals, limits, derivatives, determinants."""
DERIVATIVE = re.compile(r"\\frac\{d[^{}]*\}\{d[^{}]*\}|[A-Za-z]'{1,3}(?:\([a-z]\))?")
_ARGUMENT = re.compile(r"(?<=[A-Za-z'])\([^()]{1,40}\)|[_^](?:\{[^{}]{1,40}\}|\\?\w+|\*)")
_NAMING = re.compile(
    r"(?:[A-Za-z+*|'\s{}()-]|\\(?:frac|cdot|times|vec|overrightarrow|overline|bar|hat|angle|triangle|max|min"
    r"|alpha|beta|gamma|theta|lambda|mu|phi|omega|Delta)(?![A-Za-z]))+"
)
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])|(?<![A-Za-z\\])[A-Z]{2,4}(?![A-Za-z])")
_VARIABLE = re.compile(rf"(?![ei]$)[A-Za-z]{_SUBSCRIPTS}")


def clean(text: str) -> str:
    r"""Return the answer in plain notation.

    >>> clean(r"$\dfrac{3}{4}\text{ cm}$"), clean(r"\left( 3, \frac{\pi}{2} \right)"), clean(r"\$1{,}200")
    ('\\frac{3}{4} cm', '(3, \\frac{\\pi}{2})', '$1,200')
    """
    text = _THIN_SPACE.sub("", _unwrap(in_latex(in_ascii(text).strip())))
    if ("\\(" in text and "\\)" in text) or ("\\[" in text and "\\]" in text):
        text = _BRACKETS.sub(" ", text)
    if text.count("$") > 1 and len(_DOLLAR.findall(text)) % 2 == 0:  # dollars around parts: $12$ and $13$
        text = _DOLLAR.sub(" ", text)
    if "\\\\" in text and "\\begin" not in text and "matrix" not in text:
        text = _DOUBLED.sub(r"\\", text)
    for escaped, sign in _ESCAPED:
        text = text.replace(escaped, sign)
    text = plain_tex(re.sub(r"\\not\s?=", r"\\neq ", text))
    for pattern, plain in _TEX_RULES:
        text = pattern.sub(plain, text)
    if "[" in text or "]" in text:  # ]a,b[ is (a,b)
        text = _REVERSED.sub(
            lambda m: ("(" if m[1] == "]" else m[1]) + m[2] + (")" if m[3] == "[" else m[3]), text
        )
    text = _CHAIN.sub(r"\1", text)
    text = (text if text.endswith("...") else text.rstrip(".")).strip()
    starred = len(text) > 4 and text.startswith("**") and text.endswith("**")
    return text[2:-2].strip() if starred else text


def in_ascii(text: str) -> str:
    """Return the text with full-width signs and signs of other scripts in ASCII; digits do not change."""
    return text if text.isascii() else text.translate(_IN_ASCII)


def in_latex(text: str) -> str:
    """Return the text with Unicode and ASCII signs rewritten in LaTeX."""
    if len(text) > MAX_CHARS:  # too long for an answer
        return text
    for pattern, plain in (*(() if text.isascii() else _UNICODE_RULES), *_ASCII_RULES):
        text = pattern.sub(plain, text)
    return text.translate(_SIGNS)


def _group(digits: str) -> str:
    return digits if len(digits) == 1 else f"{{{digits}}}"


def _unwrap(text: str) -> str:
    """Return the text without the math delimiters and the box around it, in any order."""

    def inside(opening: str, closing: str) -> str | None:
        if len(text) <= len(opening) + 1 or not (text.startswith(opening) and text.endswith(closing)):
            return None
        inner = text[len(opening) : len(text) - len(closing)]
        if closing == "}":
            braces = re.findall(r"\\.|[{}]", inner, re.DOTALL)
            alone = min(accumulate((sign == "{") - (sign == "}") for sign in braces), default=0) >= 0
        else:
            alone = closing not in inner and opening not in inner
        return inner.strip() if alone else None

    for _ in range(_MAX_WRAPPED):
        inner = next((found for pair in _WRAPPERS if (found := inside(*pair)) is not None), None)
        if inner is None:
            break
        text = inner
    return text


def spelling(text: str) -> str:
    """Return the form in which answers are compared as strings: no spaces, no braces around one sign."""
    text = re.sub(r"\{(\w)\}", r"\1", re.sub("[$°]", "", text))
    return re.sub(r"(?<!\d) | (?!\d)", "", text, flags=re.ASCII)


def sides(text: str) -> list[str]:
    r"""Return the sides of a chain of equations without leading names: each side is a claim about the answer.

    A name says which quantity has the value: a letter, ``f(x)``, ``\\angle ABC`` or ``P(A)``. A sum, an
    integral, a limit or a determinant before its value is also a name.
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
    r"""Return the name before a text's one value (``f(2)=5``, ``\angle A=5``, ``x=5``); "" without a name."""
    name = statement(text)
    return name if _is_named(name) or DERIVATIVE.fullmatch(name) else ""


def statement(text: str) -> str:
    """Return the text before the only "="; "" if the text has no "=" or several."""
    parts = _between_signs(text)
    return parts[0] if len(parts) == 2 else ""


def value_stated(text: str) -> str:
    r"""Return the value after a name that is longer than a letter: 7 in ``a+b=7`` and ``\frac{a}{b}=7``.

    Such a name has letters, and has numbers only in arguments, powers and subscripts: ``2x=6`` is an
    equation. Return the text unchanged if it has no such name.
    """
    name, *values = _between_signs(text)
    bare = _ARGUMENT.sub("", name)
    named = values and _LETTER.search(bare) and _NAMING.fullmatch(bare) and not _LETTER.search(values[-1])
    return "=".join(values) if named else text


def _between_signs(text: str) -> list[str]:
    """Return the parts between the equals signs that are outside braces and round brackets."""
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
    """Return whether a variable occurs in the other sides: "x = x+1" does not name a value."""
    pattern = rf"(?<![A-Za-z\\]){name}(?![A-Za-z_(])"
    return len(name) == 1 and any(re.search(pattern, other) for other in others)
