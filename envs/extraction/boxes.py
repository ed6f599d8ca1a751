r"""Find balanced ``\boxed{...}`` in one pass: linear in the length, whatever the text holds."""

from __future__ import annotations

import re

from debate.types import Span

_BETWEEN = re.compile(
    r"(?:\s|[,;$/*()]|\\[()\[\],]|\\q?quad\b|\\text\s?\{\s?(?:and|or)\s?\}"
    r"|\b(?:and|or|else|even|also|perhaps|maybe|possibly|probably)\b|[A-Za-z](?:_\{?\w{1,4}\}?)?\s?=)*+"
)
# A box without braces holds the number or the letter behind it. An escaped brace is text, not structure; a
# doubled backslash before "boxed" still opens a box, as in replies that went through JSON too often.
_TOKEN = re.compile(
    r"\\boxed\s*\{|\\boxed\s{0,4}(?P<bare>[-\u2212]?\d++(?:[.,]\d++)*+|[A-Z](?![A-Za-z]))"
    r"|\\\\(?!boxed)|\\[{}]|[{}]",
    re.ASCII,
)


def boxes(text: str) -> list[Span]:
    """Return the insides of all balanced boxes, in the order in which they close."""
    spans: list[Span] = []
    open_braces: list[int] = []  # where the inside of a box starts, or -1 for a plain brace
    for token in _TOKEN.finditer(text):
        piece = token.group()
        if piece == "}":
            start = open_braces.pop() if open_braces else -1
            if start >= 0:
                spans.append(Span(start, token.start()))
        elif token["bare"]:
            spans.append(Span(*token.span("bare")))
        elif not piece.startswith("\\"):
            open_braces.append(-1)
        elif piece.startswith("\\b"):
            open_braces.append(token.end())
    return spans


def last_box(text: str) -> Span | None:
    r"""Return the inside of the balanced ``\boxed{}`` that opens last; None if no box is closed.

    >>> text = r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"
    >>> last_box(text).of(text)
    '\\frac{1}{2}'
    """
    return max(boxes(text), key=lambda span: span.start, default=None)


def last_run(text: str) -> Span | None:
    """Return the span of the last run of boxes with only commas and "and" between them."""
    outer = [whole for whole, _ in _outermost(text)]
    if not outer:
        return None
    first = len(outer) - 1
    while first and _BETWEEN.fullmatch(text, outer[first - 1].end, outer[first].start):
        first -= 1
    return Span(outer[first].start, outer[-1].end)


def all_boxes(text: str) -> Span | None:
    """Return the span from the first box to the last, if there are two or more; else None."""
    outer = _outermost(text)
    return Span(outer[0][0].start, outer[-1][0].end) if len(outer) > 1 else None


def joined(text: str) -> str:
    """Return the insides of boxes as a list, where a text begins and ends with one; else the text."""
    outer = _outermost(text)
    ends = outer and (outer[0][0].start, outer[-1][0].end) == (0, len(text))
    return ", ".join(inside.of(text) for _, inside in outer) if ends else text


def _outermost(text: str) -> list[tuple[Span, Span]]:
    """Return the boxes that stand in no other, and their insides."""
    outer: list[tuple[Span, Span]] = []
    for span in sorted(boxes(text), key=lambda span: span.start):
        if not outer or span.start > outer[-1][1].end:
            start = text.rfind("\\boxed", 0, span.start)
            outer.append((Span(start, span.end + text.startswith("}", span.end)), span))
    return outer
