r"""Find the tags of sections and of thinking, for parsing, cutting and escaping replies.

Tags ignore case and may contain whitespace and one attribute. ``<solution/>`` and ``<\solution>`` are closing
tags. Markdown may escape the brackets (``\<solution\>``). An escaped tag has the same form between ``&lt;``
and ``&gt;``. Matching is linear because every repeat is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lxml import etree

from debate.types import Span

_GAP = r"[ \t\r\n]{0,4}"
_BODY = (
    rf"{_GAP}([/\\]?){_GAP}(solution|evaluation|comparison|think)(?:(?<=think)ing)?"
    rf"(?:[ \t][^<>&=]{{1,20}}=[^<>&]{{0,40}}(?<!/))?{_GAP}(/?){_GAP}\\?"
)
# ASCII: otherwise IGNORECASE matches a long s as an s.
PLAIN = re.compile(f"<{_BODY}>", re.IGNORECASE | re.ASCII)
ESCAPED = re.compile(f"&lt;{_BODY}&gt;", re.IGNORECASE | re.ASCII)
PRIVATE = ("comparison", "think")
"""Blocks that are never shown to peers."""
MAX_CHECKED = 1 << 20


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag from ``start`` to ``end`` of a text. ``name`` is a section's name, or "think"."""

    name: str
    closing: bool
    start: int
    end: int


def find_tags(form: re.Pattern[str], text: str, start: int = 0) -> list[Tag]:
    """Return the tags of one form, PLAIN or ESCAPED, starting at an index.

    >>> [(tag.name, tag.closing) for tag in find_tags(PLAIN, "<Thinking> x < y </ think> <solution/>")]
    [('think', False), ('think', True), ('solution', True)]
    """
    return [
        Tag(match[2].lower(), bool(match[1] or match[3]), match.start(), match.end())
        for match in form.finditer(text, start)
    ]


def without_private(text: str) -> str:
    """Return ``text`` without its comparison and thinking blocks, including blocks that are never closed.

    A block runs from an opening tag to the last closing tag of its kind before the next opening tag. Removing
    blocks may join the text around them into a new opening tag, if the text was written for that purpose;
    everything from that tag on is then removed.

    >>> without_private("2+2=4 <comparison>K7 > Q2</comparison>so 4")
    '2+2=4 so 4'
    >>> without_private("2+2=4 <com<think>x</think>parison>K7 > Q2</comparison>so 4")
    '2+2=4 '
    """
    public = _cut(text, _private_blocks(text))
    rest = next(iter(_private_blocks(public)), None)
    return public if rest is None else public[: rest.start]


def _private_blocks(text: str) -> list[Span]:
    """Return the comparison and thinking blocks, sorted by start. They may overlap."""
    if "<" not in text and "&" not in text:
        return []
    tags = [find_tags(form, text) for form in (PLAIN, ESCAPED)]
    blocks = [block for found in tags for name in PRIVATE for block in _blocks(found, name, len(text))]
    return sorted(blocks)


def _blocks(tags: Iterable[Tag], name: str, length: int) -> Iterator[Span]:
    start: int | None = None
    end: int | None = None
    for tag in tags:
        if tag.name == name and tag.closing:
            end = tag.end
        elif tag.name == name and (start is None or end is not None):
            if start is not None and end is not None:
                yield Span(start, end)
            start, end = tag.start, None
    if start is not None:
        yield Span(start, length if end is None else end)


def _cut(text: str, blocks: Iterable[Span]) -> str:
    parts: list[str] = []
    at = 0
    for block in blocks:
        parts.append(text[at : block.start])
        at = max(at, block.end)
    return "".join(parts) + text[at:]


def is_well_formed(text: str) -> bool:
    """Return whether the text, inside one root element, is well-formed XML. Never raises.

    This is stricter than the tolerant parser; both results are reported.

    Nothing is resolved or fetched: only the five entities of XML are allowed, no DTD and no network access.
    Texts longer than 2**20 characters count as not well-formed.

    >>> is_well_formed("<solution>4 &lt; 5</solution>"), is_well_formed("<solution>4 < 5</solution>")
    (True, False)
    """
    if len(text) > MAX_CHECKED or "<!" in text or "<?" in text:
        return False
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        etree.fromstring(f"<reply>{text}</reply>".encode(), parser)
    except (etree.XMLSyntaxError, ValueError):  # ValueError: NUL, lone surrogates
        return False
    return True
