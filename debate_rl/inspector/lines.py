"""Blocks as lines of spans, which plain text and the terminal print alike, each in its own colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len

from debate_rl.formatting import fixed, padded, safe, safe_lines
from debate_rl.inspector.blocks import Block, Chart, Line, Pairs, Section, Span, Table, Text, Words, spans

Row: TypeAlias = tuple[Span, ...]
"""One line; what is foreign in it is escaped."""
BRACKETS = {"gone": ("[-", "-]"), "new": ("{+", "+}"), "mark": ("»", "«")}
"""What stands around some spans, so that colour is not needed."""
AROUND = 40
"""Characters of a long part that two texts have in common, on each of its sides."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How blocks are laid out. ``most``: characters of a text, None for any number.

    ``unfold``: what is said behind the length of a folded text. ``width``: of a line of a table.
    """

    unfold: str = ""
    most: int | None = None
    further: str = ""
    indent: str = "    "
    widest: int = 400


def lines_of(blocks: Iterable[Block], layout: Layout) -> Iterator[Row]:
    """Yield the lines of blocks; sections have a blank line before them."""
    for block in blocks:
        if isinstance(block, Section):
            if block.title:
                yield ()
                yield tuple(span._replace(style=span.style or "title") for span in _safe(block.title))
            yield from lines_of(block.blocks, layout)
        elif isinstance(block, Line):
            style = {"notice": "doubt", "faint": "faint"}.get(block.kind, "")
            yield tuple(span._replace(style=span.style or style) for span in _safe(block.words))
        elif isinstance(block, Text) and block.kind != "stream":  # of tokens, which a table has as well
            yield from _text(block, layout)
        elif isinstance(block, Pairs):
            widest = max((len(name) for name, _ in block.pairs), default=0)
            for name, words in block.pairs:
                yield (Span(f"{name:<{widest}}  ", "faint"), *_safe(words))
        elif isinstance(block, Table):
            yield from table_lines(block, layout.widest)
        elif isinstance(block, Chart):
            yield from (_course(series.name, series.points) for series in block.series)


def _safe(words: Words) -> Row:
    return tuple(
        span._replace(text=safe(span.text)) for span in spans(words) if span.style not in ("page", "drawn")
    )


def _text(block: Text, layout: Layout) -> Iterator[Row]:
    label = tuple(span._replace(style=span.style or "label") for span in _safe(block.label))
    length = len(block.plain)
    if block.folded and layout.unfold:
        yield (*label, Span(f": {length:,} characters ({layout.unfold})", "faint"))
        return
    if block.label:
        yield (*label, Span(":", "faint"))
    style = block.kind if block.kind in ("thinking", "comparison", "other") else ""
    most = length if layout.most is None else layout.most
    yield from split_lines(_marked(block.text, most, style), layout.indent)
    if length > most:
        yield (Span(f"… cut: {length:,} characters in all{layout.further}", "doubt"),)


def _marked(text: str | Sequence[Span], most: int, style: str) -> list[Span]:
    """Return a text as spans, with brackets around what colour marks, and at most so many characters."""
    if isinstance(text, str):
        return [Span(text[:most], style)]
    shown: list[Span] = []
    for span in text:
        words = span.text[:most]
        most -= len(words)
        left_out = len(words) - 2 * AROUND
        if span.style == "same":
            if left_out > AROUND:
                words = f"{words[:AROUND]} [{left_out} characters] {words[-AROUND:]}"
            span = span._replace(style="")
        before, after = BRACKETS.get(span.style, ("", ""))
        shown.append(span._replace(text=before + words + after))
    return shown


def split_lines(text: Sequence[Span], indent: str) -> Iterator[Row]:
    """Yield the lines of a foreign text in several styles, escaped."""
    row: list[Span] = [Span(indent)]
    for span in text:
        first, *more = safe_lines(span.text)
        row.append(span._replace(text=first))
        for line in more:
            yield tuple(row)
            row = [Span(indent), span._replace(text=line)]
    yield tuple(row)


def table_lines(table: Table, widest: int) -> Iterator[Row]:
    """Yield heads and rows in columns as wide as they need to be; the last one is ragged."""
    columns = table.columns
    rows: list[list[Row]] = [[(Span(head, "faint"),) for head, _, _ in columns]]
    rows += [[_safe(cell) for cell in row] for row in table.rows]
    widths = [min(widest, max(map(_length, column))) for column in zip(*rows, strict=True)]
    if table.caption:
        yield (Span(table.caption, "faint"),)
    for row in rows if any(table.heads) else rows[1:]:
        line: list[Span] = []
        for index, (cell, width, (_, right, _)) in enumerate(zip(row, widths, columns, strict=True)):
            last = index == len(row) - 1
            if len(cell) == 1 and not (last and not right):
                cell = (cell[0]._replace(text=padded(cell[0].text, width, left=not right)),)
            elif not last:
                cell = (*cell, Span(" " * (width - _length(cell))))
            line += [*cell, Span("" if last else "  ")]
        yield tuple(line)


def _length(cell: Row) -> int:
    return sum(cell_len(span.text) for span in cell)


def _course(name: str, points: Sequence[tuple[int, float | None]]) -> Row:
    known = [value for _, value in points if value is not None]
    ends = f"{fixed(known[0])} → {fixed(known[-1])}" if known else "–"
    return (Span(f"{name}: {ends}"),)
