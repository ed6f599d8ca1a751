"""Digits and signs of other scripts as the ASCII signs that they stand for, character by character.

Full-width forms and the brackets, commas and points of Chinese, Japanese and Arabic are spellings. A
digit that is not ASCII is one in a reply written in its script alone: in "答案是５" it is 5, in a box in the
midst of English it is nobody's way to write a number, and is refused (``envs.grading.limits``). So is
what changes the order in which characters are shown.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_OTHER = re.compile(r"[^\x00-\x7f]")
_FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_SIGNS = {
    **{sign: plain for sign, plain in _FULL_WIDTH.items() if not plain.isdigit()},
    **dict(zip("、。【】《》〈〉「」", ',.[]⟨⟩⟨⟩""', strict=True)),
    **dict(zip("\u066b\u066c\u061b\u060c\u066a", ".,;,%", strict=True)),
    **dict(zip("\u3000\u2007\u2010\u2011\u2012\u2044\u2215\u2217\u2236", "  ---//*:", strict=True)),
    **dict(zip("\uffe5\uffe1\uffe0", "\u00a5\u00a3\u00a2", strict=True)),
}
_LETTERS_OF = {
    "FULLWIDTH": frozenset(("CJK", "HIRAGANA", "KATAKANA", "HANGUL")),
    "ARABIC-INDIC": frozenset(("ARABIC",)),
    "EXTENDED": frozenset(("ARABIC",)),
}
"""The scripts of the letters beside which digits of another name stand."""


def in_ascii(text: str) -> str:
    """Return the text with signs of other scripts in ASCII; digits stay.

    >>> in_ascii("（1，2）"), in_ascii("x²"), in_ascii("５")
    ('(1,2)', 'x²', '５')
    """
    return text if text.isascii() else _OTHER.sub(lambda match: _SIGNS.get(match[0], match[0]), text)


def with_ascii_digits(text: str) -> str:
    """Return a reply with the digits of a script in ASCII where letters of that script stand beside them.

    >>> with_ascii_digits("答案是５"), with_ascii_digits("الجواب هو ٤٢"), with_ascii_digits("so it is ５")
    ('答案是5', 'الجواب هو 42', 'so it is ５')
    """
    if text.isascii():
        return text
    others = set(_OTHER.findall(text))
    scripts = {_script(sign) for sign in others if sign.isalpha()}
    digits = {
        sign: str(unicodedata.decimal(sign))
        for sign in others
        if unicodedata.category(sign) == "Nd" and scripts & _LETTERS_OF.get(_script(sign), {_script(sign)})
    }
    return text.translate(str.maketrans(digits)) if digits else text


@lru_cache(maxsize=4096)
def _script(sign: str) -> str:
    return unicodedata.name(sign, "").partition(" ")[0].partition("-U")[0]
