"""The content of a view: a list of blocks, drawn as HTML in the browser and as lines elsewhere.

Texts in blocks are unescaped, so the code that draws blocks must escape them. Lines are safe to print.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rich.cells import cell_len

from debate.types import TurnId
from debate_rl.formatting import GRADE_SIGNS, padded, safe, safe_lines
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.inspector.views.debate import DebateView
    from debate_rl.inspector.views.votes import RoundGraph


class Link(NamedTuple):
    """A link to a page of the run: path, query and anchor. ``of_list``: keep the list's filter."""

    path: tuple[str, ...]
    query: tuple[tuple[str, object], ...] = ()
    anchor: str = ""
    of_list: bool = False


def to_debate(id: str, view: str = "", turn: TurnId | None = None, **query: object) -> Link:
    """Return the link to a debate, or to one of its views and a turn."""
    about = {} if turn is None else {"turn": named(turn)}
    path = ("debate", id, view) if view else ("debate", id)
    return Link(path, tuple((about | query).items()), of_list=True)


def to_turn(id: str, turn: TurnId) -> Link:
    """Return the link to a turn on the page of its debate."""
    return to_debate(id)._replace(anchor=f"turn-{named(turn)}")


class Span(NamedTuple):
    """Words in one style, optionally linked. ``name``: identifies the span in tests. ``bar``: the length of a
    bar next to a number, in [-1, 1]. ``persona``: pages mark the words in the colour of this persona.

    Styles: strong, faint, doubt, code; the grades; answer: typeset mathematics; mark: the subject of an
    excerpt; gone and new: words in only one of two texts; page and drawn: shown only on pages.
    """

    text: str
    style: str = ""
    link: Link | None = None
    name: str = ""
    bar: float | None = None
    persona: str = ""


@dataclass(frozen=True, slots=True)
class Marks:
    """The star, label and note of a debate, turn or pair, which the browser can change.

    ``about``: what they are on, in words. ``choices``: the possible labels and their words, after ``intro``.
    ``whole``: the browser also has fields for a star, a note and a label in your own words. ``anchor``: the
    place on the page.
    """

    id: str
    about: str
    star: bool = False
    label: str = ""
    note: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    intro: str = ""
    whole: bool = False
    anchor: str = ""

    @property
    def plain(self) -> str:
        """The given marks as one line, or "" if there are none."""
        label = dict(self.choices).get(self.label, self.label)
        named = (("label", label), ("note", " ".join(self.note.split())))
        return " · ".join(
            [*(["★ starred"] * self.star), *(f"{name}: {text}" for name, text in named if text)]
        )


Words: TypeAlias = str | Span | Sequence[str | Span] | Marks
"""The content of one line or one cell."""


def spans(words: Words) -> tuple[Span, ...]:
    """Return the spans of words.

    >>> tuple(span.text for span in spans(("a", Span("b", "strong"))))
    ('a', 'b')
    """
    if isinstance(words, str):
        return (Span(words),)
    if isinstance(words, Span):
        return (words,)
    if isinstance(words, Marks):
        return (Span(words.plain, "doubt"),)
    return tuple(Span(word) if isinstance(word, str) else word for word in words)


def grade(word: str) -> Span:
    """Return a grade as a sign and a word, in its colour.

    >>> grade("right").text
    '✓ right'
    """
    return Span(f"{GRADE_SIGNS.get(word, '–' if word == 'none' else '')} {word}".strip(), word)


def named_agent(view: DebateView, agent: int, style: str = "") -> Span:
    """Return the name of an agent, in the colour of its persona."""
    return Span(view.who(agent), style, persona=view.personas[agent].name)


def named_turn(view: DebateView, turn: TurnId) -> Span:
    """Return the name of a turn, linked to the turn."""
    link, persona = to_turn(view.id, turn), view.personas[turn.agent].name
    return Span(view.spelled(turn), link=link, persona=persona)


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph. ``kind``: "notice", "sentence", "faint", or "" for plain text."""

    words: Words
    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text as written, on its own lines, below its ``label``.

    ``folded``: show only the length until the text is opened. ``typeset``: typeset mathematics. ``whole``:
    the link to the whole text.
    """

    text: str | Sequence[Span]
    label: Words = ""
    kind: str = ""
    folded: bool = False
    typeset: bool = False
    whole: Link | None = None
    name: str = ""

    @property
    def plain(self) -> str:
        """The text without styles."""
        return self.text if isinstance(self.text, str) else "".join(span.text for span in self.text)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below heads. ">" before a head aligns its column right; "~" before that makes it optional.

    ``row_name``: identifies rows in tests. ``ids``: an anchor for each row. ``body``: the anchor of all rows.
    ``abouts``: the meaning of each head, or "".
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Words]]
    caption: str = ""
    name: str = ""
    row_name: str = ""
    ids: Sequence[str] = ()
    body: str = ""
    kind: str = "list"
    abouts: Sequence[str] = ()

    @property
    def columns(self) -> list[tuple[str, bool, bool]]:
        """For each column, its head, whether it is aligned right, and whether it is optional."""
        return [(head.lstrip("~>"), head.lstrip("~")[:1] == ">", head[:1] == "~") for head in self.heads]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names with their values."""

    pairs: Sequence[tuple[str, Words]]


@dataclass(frozen=True, slots=True)
class VoteDrawing:
    """The votes on the solutions of one round as arrows. A table below has the same content as text."""

    graph: RoundGraph
    view: DebateView


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title. ``kind``: "cards" places its sections side by side; "card" is such a section.

    ``folded``: the browser shows only the title until it is opened. ``id``: the anchor.
    """

    title: Words
    blocks: Sequence[Block]
    name: str = ""
    kind: str = ""
    id: str = ""
    folded: bool = False


Block: TypeAlias = Line | Text | Table | Pairs | VoteDrawing | Section | Marks


def cut(rows: Iterable[Sequence[Words]], most: int) -> tuple[list[Sequence[Words]], list[Block]]:
    """Return the first rows, and a line with the number of omitted rows, if any."""
    every = list(rows)
    left = len(every) - most
    return every[:most], [Line(f"{left:,} more are not shown", "faint")] if left > 0 else []


Row: TypeAlias = tuple[Span, ...]
"""One line, with all texts escaped."""
BRACKETS = {"gone": ("[-", "-]"), "new": ("{+", "+}"), "mark": ("»", "«")}
"""Brackets around some spans, for output without colour."""
AROUND, WIDEST = 40, 400
"""Characters shown at each end of a long common part of two texts; maximum width of a column."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How blocks become lines. ``most``: maximum characters of a text, None for no limit.

    ``unfold``: the hint after the length of a folded text. ``further``: the hint after the note that a text
    is cut.
    """

    unfold: str = ""
    most: int | None = None
    further: str = ""
    indent: str = "    "


def lines_of(blocks: Iterable[Block], layout: Layout) -> Iterator[Row]:
    """Yield the lines of blocks, with a blank line before each section."""
    for block in blocks:
        if isinstance(block, Section):
            if block.title:
                yield ()
                yield tuple(span._replace(style=span.style or "title") for span in _safe(block.title))
            yield from lines_of(block.blocks, layout)
        elif isinstance(block, Line):
            style = {"notice": "doubt", "faint": "faint"}.get(block.kind, "")
            yield tuple(span._replace(style=span.style or style) for span in _safe(block.words))
        elif isinstance(block, Text) and block.kind != "stream":  # a table has the same tokens
            yield from _text(block, layout)
        elif isinstance(block, Pairs):
            widest = max((len(name) for name, _ in block.pairs), default=0)
            for name, words in block.pairs:
                yield (Span(f"{name:<{widest}}  ", "faint"), *_safe(words))
        elif isinstance(block, Table):
            yield from table_lines(block)
        elif isinstance(block, Marks) and block.plain:
            yield _safe(block)


def _safe(words: Words) -> Row:
    shown = (span for span in spans(words) if span.style not in ("page", "drawn"))
    return tuple(span._replace(text=safe(span.text)) for span in shown)


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
        yield (Span(f"… cut: {length:,} characters in total{layout.further}", "doubt"),)


def _marked(text: str | Sequence[Span], most: int, style: str) -> list[Span]:
    """Return a text as spans, cut at ``most`` characters, with brackets around coloured spans."""
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
    """Yield the lines of a text in several styles, escaped."""
    row: list[Span] = [Span(indent)]
    for span in text:
        first, *more = safe_lines(span.text)
        row.append(span._replace(text=first))
        for line in more:
            yield tuple(row)
            row = [Span(indent), span._replace(text=line)]
    yield tuple(row)


def table_lines(table: Table) -> Iterator[Row]:
    """Yield heads and rows in columns of the needed width. The last column is not padded."""
    columns = table.columns
    rows: list[list[Row]] = [[(Span(head, "faint"),) for head, _, _ in columns]]
    rows += [[_safe(cell) for cell in row] for row in table.rows]
    widths = [min(WIDEST, max(map(_length, column))) for column in zip(*rows, strict=True)]
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
