r"""Find balanced ``\boxed{...}`` in one pass: linear in the length, whatever the text holds."""

from __future__ import annotations

import re

from debate.types import Span

# An escaped brace is text, not structure. A doubled backslash before "boxed" still opens a box: replies that
# went through a JSON dump too often look like that.
_BETWEEN = re.compile(
    r"(?:\s|[,;$/*()]|\\[()\[\],]|\\q?quad\b|\\text\s?\{\s?(?:and|or)\s?\}"
    r"|\b(?:and|or|else|even|also|perhaps|maybe|possibly|probably)\b|[A-Za-z](?:_\{?\w{1,4}\}?)?\s?=)*+"
)
_TOKEN = re.compile(
    r"\\boxed\s*\{|\\boxed\s{0,4}(?P<bare>[-\u2212]?\d++(?:[.,]\d++)*+|[A-Z](?![A-Za-z]))"
    r"|\\\\(?!boxed)|\\[{}]|[{}]",
    re.ASCII,
)
"""A box without braces holds the number or the letter behind it."""


def last_box(text: str) -> Span | None:
    r"""Return the inside of the balanced ``\boxed{}`` that opens last; None if no box is closed.

    >>> text = r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"
    >>> last_box(text).of(text)
    '\\frac{1}{2}'
    """
    spans = boxes(text)
    return max(spans, key=lambda span: span.start) if spans else None


def last_group(text: str) -> Span | None:
    r"""Return the span of the last run of boxes with only commas and "and" between them.

    >>> text = r"\boxed{9}, so \boxed{1} and \boxed{2}."
    >>> last_group(text).of(text), joined(last_group(text).of(text))
    ('\\boxed{1} and \\boxed{2}', '1, 2')
    """
    outer = _outermost(text)
    if not outer:
        return None
    first = len(outer) - 1
    while first and _BETWEEN.fullmatch(text, _closing(text, outer[first - 1]), _opening(text, outer[first])):
        first -= 1
    return Span(_opening(text, outer[first]), _closing(text, outer[-1]))


def joined(text: str, *, near: bool = True) -> str:
    """Return the insides of a run of boxes (not ``near``: of all) as a list, any other text unchanged."""
    group = last_group(text) if near else all_boxes(text)
    if group is None or group != Span(0, len(text)):
        return text
    return ", ".join(span.of(text) for span in _outermost(text))


def _outermost(text: str) -> list[Span]:
    outer: list[Span] = []
    for span in sorted(boxes(text), key=lambda span: span.start):
        if not outer or span.start > outer[-1].end:
            outer.append(span)
    return outer


def _opening(text: str, inside: Span) -> int:
    return text.rfind("\\boxed", 0, inside.start)


def _closing(text: str, inside: Span) -> int:
    return inside.end + text.startswith("}", inside.end)


def all_boxes(text: str) -> Span | None:
    r"""Return the span from the first box to the last, if there are two or more; else None.

    >>> text = r"so x is \boxed{1}, and thus y is \boxed{2}."
    >>> joined(all_boxes(text).of(text), near=False)
    '1, 2'
    """
    outer = _outermost(text)
    return Span(_opening(text, outer[0]), _closing(text, outer[-1])) if len(outer) > 1 else None


def boxes(text: str) -> list[Span]:
    r"""Return the insides of all balanced boxes, in the order in which they close.

    >>> text = r"\boxed{a} \boxed{} \boxed 42."
    >>> [span.of(text) for span in boxes(text)]
    ['a', '', '42']
    """
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
