r"""Balanced ``\boxed{...}`` in text, found in one pass: linear in the length whatever the text holds."""

from __future__ import annotations

import re

from debate.types import Span

# An escaped brace is text, not structure. A doubled backslash before "boxed" still opens a box: replies that
# went through a JSON dump too often look like that.
_TOKEN = re.compile(r"\\boxed\s*\{|\\[{}]|[{}]")


def last_box(text: str) -> Span | None:
    r"""Return the inside of the balanced ``\boxed{}`` that opens last; None when no box is closed.

    >>> text = r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"
    >>> last_box(text).of(text)
    '\\frac{1}{2}'
    """
    spans = boxes(text)
    return max(spans, key=lambda span: span.start) if spans else None


def boxes(text: str) -> list[Span]:
    r"""Return the insides of all balanced boxes, in the order in which they close.

    >>> [span.of(r"\boxed{a} \boxed{}") for span in boxes(r"\boxed{a} \boxed{}")]
    ['a', '']
    """
    found: list[Span] = []
    open_braces: list[int] = []  # where the inside of a box starts, or -1 for a plain brace
    for token in _TOKEN.finditer(text):
        piece = token.group()
        if piece == "}":
            start = open_braces.pop() if open_braces else -1
            if start >= 0:
                found.append(Span(start, token.start()))
        elif not piece.startswith("\\"):
            open_braces.append(-1)
        elif piece.startswith("\\b"):
            open_braces.append(token.end())
    return found
