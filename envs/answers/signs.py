r"""Bring Unicode and ASCII into LaTeX: ``×`` is ``\times``, ``x²⁰`` is ``x^{20}``, ``½`` is ``\frac{1}{2}``.

Only spelling changes here, never value. Linear in the length.
"""

from __future__ import annotations

import re

MAX_CHARS = 4000

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
_SIGNS = str.maketrans(
    {
        "−": "-",
        "×": r"\times ",
        "⋅": r"\cdot ",
        "·": r"\cdot ",
        "÷": r"\div ",
        "∞": r"\infty ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∈": r"\in ",
        "∅": r"\emptyset ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\neq ",
        "≈": r"\approx ",
        "±": r"\pm ",
        "π": r"\pi ",
        "¢": " cents",
        **{sign: rf"\frac{{{top}}}{{{bottom}}}" for sign, (top, bottom) in _FRACTIONS.items()},
    }
)
_INFINITY = re.compile(r"(?<![A-Za-z\\])inf(?:inity)?(?![A-Za-z])", re.IGNORECASE)
_POWER_OF_TEN = re.compile(
    r"(?<=[\d.])\s?[*×·⋅x]\s?10\s?(?:\^|\*\*)\s?(?:([-−]?\d{1,3})(?![\d.])|[{(]([-−]?\d{1,3})[)}])",
    re.ASCII,
)
_APOSTROPHES = re.compile(r"(?<![\w.'’])\d{1,3}(?:['’]\d{3})+(?![\w'’])", re.ASCII)
_MONEY_BEFORE = re.compile(r"^(\s*[-−]?\s?)[₹¥₩](?=\s?[\d.])", re.ASCII)
_MONEY_AFTER = re.compile(r"(?<=\d)\s?[€£₹¥₩](?=\.?\s*$)", re.ASCII)


def in_latex(text: str) -> str:
    r"""Return the text with signs of plain Unicode and ASCII in LaTeX.

    >>> [in_latex(plain) for plain in ("1.5×10³", "1.5*10^3", "[3,∞)", "2½", "1'000", "45 €", "x₁²⁰")]
    ['1.5\\times 10^{3}', '1.5\\times 10^{3}', '[3,\\infty )', '2\\frac{1}{2}', '1000', '45', 'x_1^{20}']
    """
    if len(text) > MAX_CHARS:  # which no answer is
        return text
    if not text.isascii():
        text = _MONEY_AFTER.sub("", _MONEY_BEFORE.sub(r"\1", text))
        text = _SUPERSCRIPT.sub(lambda match: "^" + _group(match.group().translate(_HIGH)), text)
        text = _SUBSCRIPT.sub(lambda match: "_" + _group(match.group().translate(_LOW)), text)
    text = _POWER_OF_TEN.sub(r"\\times 10^{\1\2}", text)
    text = _APOSTROPHES.sub(lambda match: re.sub("['’]", "", match.group()), text)
    return _INFINITY.sub(r"\\infty ", text).translate(_SIGNS)


def _group(digits: str) -> str:
    return digits if len(digits) == 1 else f"{{{digits}}}"
