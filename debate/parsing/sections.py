"""Find the thinking and the three sections of a reply, as exact character spans, in linear time.

A scanner is used instead of an XML parser because a reply is prose with a few tags. An XML parser with error
recovery (lxml) refuses NUL and lone surrogates, invents elements for a ``<`` in mathematics and
limits depth and size. It gives no character offsets, which the token streams need. One regular expression
with bounded repeats finds the tags. Everything after that walks the list of tags once.

The rules, in the order in which they are applied:

1.  ``tags`` defines what a tag is. Escaped tags (``&lt;solution&gt;``) count only in a reply without any
    plain section tag.
2.  Thinking: a ``<think>`` before every section runs to the first ``</think>``. Without a ``<think>``, a
    ``</think>`` outside complete sections ends thinking that began at index 0 (the template wrote the
    opening tag). A reply that begins with ``<think>`` and never closes it is all thinking. Sections in
    thinking are ignored.
3.  A complete block is a closing tag and the nearest opening tag of its kind before it, so a tag that was
    only mentioned earlier does not count. A block that begins inside another block is part of that block's
    text: a comparison quoted in a solution or an evaluation casts no vote. The last block of a kind wins.
4.  A kind without a complete block may have an unfinished one: its last opening tag outside all blocks. The
    tag is only a mention if a complete block of an earlier kind begins after it, or if it stands in the
    middle of a line and out of order with the other sections.
5.  An unfinished block ends where the next section begins, at a stray closing tag, or at the end of the
    text. If it ends with the text, it is ``cut``: its last line may be incomplete. All unfinished blocks
    are UNCLOSED_SECTION.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from debate.parsing.tags import ESCAPED, PLAIN, Tag, find_tags
from debate.types import Span

NAMES = ("solution", "evaluation", "comparison")
_RANK = {name: rank for rank, name in enumerate(NAMES)}


@dataclass(frozen=True, slots=True)
class Section:
    """One section: ``block`` includes its tags, ``inside`` does not.

    ``cut``: the text ended within the section.
    """

    name: str
    block: Span
    inside: Span
    closed: bool = True
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Sections:
    """The content of a reply: at most one section of each name, and the thinking before them."""

    by_name: Mapping[str, Section]
    thinking: Span | None = None
    thinking_closed: bool = True

    def inside(self, name: str) -> Span | None:
        """Return the inner span of a section, or None if the section is absent."""
        return self.by_name[name].inside if name in self.by_name else None


@dataclass(frozen=True, slots=True)
class _Block:
    opening: Tag
    closing: Tag

    @property
    def name(self) -> str:
        return self.opening.name

    @property
    def start(self) -> int:
        return self.opening.start

    @property
    def end(self) -> int:
        return self.closing.end


def find_sections(text: str, *, in_thinking: bool = False) -> Sections:
    """Return the thinking and the sections of a reply, by the rules above.

    ``in_thinking``: the prompt opened a think block, so sections before the first ``</think>`` are ignored.

    >>> text = "I open <comparison>.<Solution>2 < 3</ solution>"
    >>> sections = find_sections(text).by_name
    >>> list(sections), sections["solution"].inside.of(text)
    (['solution'], '2 < 3')
    """
    tags = find_tags(PLAIN, text)
    thinking, closed = _begun_in_thinking(text, tags) if in_thinking else _thinking(text, tags)
    start = thinking.end if thinking else 0
    tags = [tag for tag in tags if tag.start >= start]
    if all(tag.name == "think" for tag in tags):
        tags = find_tags(ESCAPED, text, start)
    return Sections(_sections(text, tags, start), thinking, closed)


def _thinking(text: str, tags: Sequence[Tag]) -> tuple[Span | None, bool]:
    """Return the thinking span and whether it was closed (rule 2)."""
    first = tags[0] if tags else None
    if first and first.name == "think" and not first.closing:
        end = next((tag.end for tag in tags if tag.name == "think" and tag.closing), None)
        if end is not None:
            return Span(first.start, end), True
        if not text[: first.start].strip("\ufeff\u200b \t\r\n"):
            return Span(first.start, len(text)), False
    elif end := _bare_close(tags):
        return Span(0, end), True
    return None, True


def _begun_in_thinking(text: str, tags: Sequence[Tag]) -> tuple[Span, bool]:
    """Return the thinking of a reply whose prompt opened it: up to the first ``</think>``, or all of it.

    Also return whether the thinking was closed.
    """
    end = next((tag.end for tag in tags if tag.name == "think" and tag.closing), None)
    return Span(0, len(text) if end is None else end), end is not None


def _bare_close(tags: Sequence[Tag]) -> int | None:
    """Return the end of a ``</think>`` outside complete sections without a ``<think>`` before it."""
    blocks = _outermost(_blocks(tag for tag in tags if tag.name != "think"))
    for tag in _outside(tags, blocks):
        if tag.name == "think":
            return tag.end if tag.closing else None
    return None


def _blocks(tags: Iterable[Tag]) -> Iterator[_Block]:
    """Yield a block for each closing tag and the nearest opening tag of its kind before it."""
    opened: dict[str, Tag] = {}
    for tag in tags:
        if not tag.closing:
            opened[tag.name] = tag
        elif tag.name in opened:
            yield _Block(opened.pop(tag.name), tag)


def _outermost(blocks: Iterable[_Block]) -> list[_Block]:
    """Return the blocks that begin outside all earlier blocks, in order."""
    kept: list[_Block] = []
    for block in sorted(blocks, key=lambda block: block.start):
        if not kept or block.start >= kept[-1].end:
            kept.append(block)
    return kept


def _outside(tags: Iterable[Tag], blocks: Sequence[_Block]) -> Iterator[Tag]:
    """Yield the tags outside all blocks."""
    starts = [block.start for block in blocks]
    for tag in tags:
        before = bisect_right(starts, tag.start) - 1
        if before < 0 or tag.start >= blocks[before].end:
            yield tag


def _sections(text: str, tags: Sequence[Tag], start: int) -> dict[str, Section]:
    """Return the sections by name. ``start`` is the index at which thinking ends."""
    blocks = _outermost(_blocks(tags))
    complete = {block.name: block for block in blocks if block.name in _RANK}
    strays = [tag for tag in _outside(tags, blocks) if tag.name in _RANK]
    ends = frozenset((start, *(tag.end for tag in tags)))
    unfinished = _unfinished(text, [tag for tag in strays if not tag.closing], complete, ends)
    bounds = [block.start for block in blocks if block.name in _RANK]
    bounds += [tag.start for tag in unfinished.values()] + [tag.start for tag in strays if tag.closing]
    sections = {name: _whole(block) for name, block in complete.items()}
    for name, tag in unfinished.items():
        sections[name] = _partial(tag, min((at for at in bounds if at > tag.start), default=None), len(text))
    return sections


def _whole(block: _Block) -> Section:
    inside = Span(block.opening.end, block.closing.start)
    return Section(block.name, Span(block.start, block.end), inside)


def _partial(tag: Tag, bound: int | None, length: int) -> Section:
    end = length if bound is None else bound
    return Section(tag.name, Span(tag.start, end), Span(tag.end, end), closed=False, cut=bound is None)


def _unfinished(
    text: str, openings: Sequence[Tag], complete: Mapping[str, _Block], ends: Container[int]
) -> dict[str, Tag]:
    """Return the last opening tag of each kind without a complete block, excluding mere mentions (rule 4).

    ``ends``: the indices at which tags end.
    """
    whole = complete.values()
    candidates = [
        tag for tag in openings if tag.name not in complete and not _earlier_kind_follows(tag, whole)
    ]
    firm = {tag.name: tag for tag in candidates if _starts_line(text, tag.start, ends)}
    anchors = (*whole, *firm.values())
    loose = {
        tag.name: tag
        for tag in candidates
        if not _earlier_kind_follows(tag, anchors) and not _later_kind_precedes(tag, anchors)
    }
    return loose | firm


def _earlier_kind_follows(tag: Tag, anchors: Iterable[_Block | Tag]) -> bool:
    return any(_RANK[other.name] < _RANK[tag.name] and other.start > tag.start for other in anchors)


def _later_kind_precedes(tag: Tag, anchors: Iterable[_Block | Tag]) -> bool:
    return any(_RANK[other.name] > _RANK[tag.name] and other.start < tag.start for other in anchors)


def _starts_line(text: str, at: int, ends: Container[int]) -> bool:
    """Return whether only markup separates this index from the start of its line or from the end of a tag."""
    start = max(0, at - 64)
    before = text[start:at].rstrip(" \t*_`#-\\")
    return before.endswith(("\n", "\r")) or start + len(before) in ends or (not before and at <= 64)
