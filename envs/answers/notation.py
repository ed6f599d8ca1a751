r"""Bring an answer into one plain notation: the same LaTeX written in different ways becomes the same text.

Only spelling changes here (``\dfrac`` to ``\frac``, ``\left(`` to ``(``, ``\text{ cm}`` off the end, ``x = ``
off the front), never value. Linear in the length.
"""

from __future__ import annotations

import re

from envs.answers.signs import in_latex
from envs.answers.units import unit_of

_SPACING = re.compile(
    r"\\[!,;:>]|\\q?quad\b|(?<!\\)\\(?=\s|$)|~|\\displaystyle\b|\\(?:left|right|bigl?|bigr?|Bigl?|Bigr?)(?![A-Za-z])\.?"
)
_BRACKETS = re.compile(r"(?<!\\)\\[()\[\]]")
_DELIMITERS = ((r"\(", r"\)"), (r"\[", r"\]"))
_DOLLAR = re.compile(r"(?<!\\)\$")
_DOUBLED = re.compile(r"\\\\(?=[A-Za-z])")  # text that went through a JSON dump once too often
_FRAC = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_SHORT_FRAC = re.compile(r"\\frac\s*(\d|[a-z])\s*(\d|[a-z])(?![A-Za-z\d])|\\frac\s*(\d)\s*(?=\{)")
_SHORT_SQRT = re.compile(r"\\sqrt\s*(\d|[a-z])(?![A-Za-z])")
_TEXT = re.compile(
    r"\\(?:text|textbf|textit|textrm|textnormal|mathrm|mathbf|mbox|operatorname|underline|fbox|boldsymbol)\s*\{([^{}]*)\}"
)
_DEGREES = re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree\b")
_THIN_SPACE = re.compile(r"(?<=\d),?\\[!,;]\s*(?=\d{3}(?!\d))", re.ASCII)
_TRAILING_UNIT = re.compile(r"(?<=[\w})!°])\s+[A-Za-z]{2,}(?:[ /][A-Za-z]+){0,2}(?:\^\{?[23]\}?)?$")
_SUBSCRIPTS = r"(?:_\{?[A-Za-z\d]{1,6}\}?)?'{0,2}"
_NAME = re.compile(
    rf"(?:[A-Za-z]|\\(?!pi\b)[a-z]{{2,7}}){_SUBSCRIPTS}(?:\(\s*[A-Za-z\d](?:\s*,\s*[A-Za-z\d])*\s*\))?|\|?[A-Z]{{2,4}}\|?|\([a-z](?:,\s*[a-z]){{1,3}}\)"
    r"|[A-Za-z]{2,}(?: [A-Za-z]+){0,3}"
)
_VARIABLE = re.compile(rf"(?![ei]$)[A-Za-z]{_SUBSCRIPTS}")
_CONNECTIVE = re.compile(r"\b(?:or|and|not)\b")
_SHORT_UNITS = frozenset(
    unit + power
    for unit in ("cm", "mm", "km", "kg", "mg", "ft", "in", "mi", "hr", "ml", "mL")
    for power in ("", "^2", "^3")
)
_NAMED_BRACKET = re.compile(r"\\(lbrace|rbrace|lbrack|rbrack|lparen|rparen)(?![A-Za-z])\s?")
_BRACKET_OF = {
    "lbrace": r"\{",
    "rbrace": r"\}",
    "lbrack": "[",
    "rbrack": "]",
    "lparen": "(",
    "rparen": ")",
}
_DROPPED = str.maketrans("", "", "$°")
RELATION = re.compile(r"(?<![<>!\\:])=(?!=)")


def clean(text: str) -> str:
    r"""Return the answer in plain notation.

    >>> clean(r"$\dfrac{3}{4}\text{ cm}$"), clean(r"\left( 3, \frac{\pi}{2} \right)"), clean(r"\$1{,}200")
    ('\\frac{3}{4} cm', '(3, \\frac{\\pi}{2})', '$1,200')
    """
    text = _without_pairs(_THIN_SPACE.sub("", _unwrap(in_latex(text.strip()))))
    if "\\\\" in text and "\\begin" not in text:
        text = _DOUBLED.sub(r"\\", text)
    text = _FRAC.sub(
        r"\\frac",
        _SPACING.sub(
            " ", text.replace("\\$", "$").replace("{,}", ",").replace("{, }", ",").replace("\\%", "%")
        ),
    )
    text = _NAMED_BRACKET.sub(lambda match: _BRACKET_OF[match[1]], text)
    text = _DEGREES.sub("°", _TEXT.sub(r" \1 ", text))
    text = _SHORT_SQRT.sub(r"\\sqrt{\1}", _SHORT_FRAC.sub(_long_frac, text))
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" ?([{(\[+=^]) ?| ?([})\]]) ?(?![A-Za-z]{2})", r"\1\2", text)
    return _starless(text.rstrip(".").strip()).replace(r"\varnothing", r"\emptyset")


def sides(text: str) -> list[str]:
    """Return the sides of an equation chain without leading names: all that is claimed to be the answer.

    >>> sides("x=5"), sides("f(x)=x+1"), sides("7=5"), sides("1=2=3=5"), sides("x+y=3")
    (['5'], ['x+1'], ['7', '5'], ['1', '2', '3', '5'], ['x+y', '3'])
    """
    parts = [part.strip() for part in RELATION.split(text)]
    parts = parts[1:] if len(parts) > 1 and not parts[0] else parts  # "= 5"
    while len(parts) > 1 and _NAME.fullmatch(parts[0]) and not _occurs(parts[0], parts[1:]):
        parts = parts[1:]
    named_last = len(parts) == 2 and _VARIABLE.fullmatch(parts[1]) and not _NAME.fullmatch(parts[0])
    return parts[:1] if named_last and not _occurs(parts[1], parts[:1]) else parts  # 5 = x


def _occurs(name: str, others: list[str]) -> bool:
    """Whether a variable stands in the other sides: "x = x+1" gives no name to a value."""
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


def _unwrap(text: str) -> str:
    """Take off mathematics delimiters and a surrounding box, each once."""
    for opening, closing in (("\\boxed{", "}"), ("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("$", "$")):
        inside = text[len(opening) : len(text) - len(closing)]
        if (
            len(text) > len(opening) + 1
            and text.startswith(opening)
            and text.endswith(closing)
            and opening not in inside
        ):
            text = inside.strip()
    return text


def _starless(text: str) -> str:
    return text[2:-2].strip() if len(text) > 4 and text.startswith("**") and text.endswith("**") else text


def _without_pairs(text: str) -> str:
    """Take off dollars that come in pairs around parts of the answer: ``$12$ and $13$``."""
    text = (
        _BRACKETS.sub(" ", text) if any(all(sign in text for sign in pair) for pair in _DELIMITERS) else text
    )
    return _DOLLAR.sub(" ", text) if text.count("$") > 1 and len(_DOLLAR.findall(text)) % 2 == 0 else text


def _long_frac(match: re.Match[str]) -> str:
    top, bottom, alone = match.groups()
    return f"\\frac{{{alone}}}" if alone else f"\\frac{{{top}}}{{{bottom}}}"
