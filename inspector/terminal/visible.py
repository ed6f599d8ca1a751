"""What others wrote, on one line or on its own lines, as it may reach a terminal (``inspector.safe``)."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.safe import safe, safe_block


def one_line(text: str, most: int = 400) -> str:
    r"""Return the beginning of a text on one line; line feeds become blanks.

    >>> one_line("a\n b\x1b")
    'a b<U+001B>'
    >>> one_line("abcdef", 4)
    'abc…'
    """
    shown = " ".join(safe(text[: 2 * most].replace("\n", " ")).split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def visible_lines(text: str) -> Iterator[str]:
    r"""Yield the lines of a text; only a line feed ends a line.

    >>> list(visible_lines("a\x85\nb"))
    ['a<U+0085>', 'b']
    """
    yield from safe_block(text).split("\n")
