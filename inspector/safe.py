r"""Model text made safe to print: what a terminal could take for a command, or could hide, is written out.

Escape sequences, C1 controls, carriage returns, bidirectional overrides, zero-width characters and lone
surrogates become ``<U+001B>`` and the like, a form that no LaTeX has.
"""

from __future__ import annotations

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u3164\uffa0")
"""Letters and marks that are printable by the book and cannot be seen."""
_BLANKS = frozenset(
    "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)


def safe(text: str, *, keep: str = "") -> str:
    r"""Return one line of printable text: what is not printable is written out, other blanks are blanks.

    ``keep``: characters that stay, as the line feed in ``safe_block``. Linear in the length.

    >>> safe("a\x1b[2J\u202eb\r\n\tc")
    'a<U+001B>[2J<U+202E>b<U+000D><U+000A> c'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep else _safe(c) for c in text)


def _safe(character: str) -> str:
    if character in _BLANKS:
        return " "
    if character.isprintable() and character not in _INVISIBLE:
        return character
    return f"<U+{ord(character):04X}>"


def safe_block(text: str) -> str:
    r"""Return printable text whose lines stay lines; a tab is four blanks.

    >>> safe_block("a\n\tb\r\n\x9b1m")
    'a\n    b<U+000D>\n<U+009B>1m'
    """
    return safe(text.replace("\t", "    "), keep="\n")
