r"""What others wrote, as it may reach a terminal: nothing of it moves the cursor, hides, or turns text round."""

from __future__ import annotations

import re
from collections.abc import Iterator

TAB = 4
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""Return a text without characters that a terminal obeys or that cannot be seen: they stand escaped.

    Line feeds stay, a tab becomes blanks.

    >>> visible("\x1b]0;x\x07 a\u202eb\r\n\tc")
    '\\x1b]0;x\\x07 a\\u202eb\\r\n    c'
    """
    return _UNSEEN.sub(_escaped, text)


def one_line(text: str, most: int = 400) -> str:
    r"""Return the beginning of a text on one line; line feeds become blanks.

    >>> one_line("a\n b\x1b")
    'a b\\x1b'
    """
    cut = " ".join(text[: 4 * most].split())
    shown = visible(cut)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character == "\t":
        return " " * TAB
    if character == "\r":
        return "\\r"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, each visible; only a line feed ends a line."""
    for line in text.split("\n"):
        yield visible(line.removesuffix("\r"))
