"""What a view shows: a list of blocks, which each screen draws in one place.

The texts in them are as a model, a file or a user wrote them. Who draws them escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from debate.types import TurnId
from debate_rl.formatting import GRADE_SIGNS
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.inspector.views.debate import DebateView
    from debate_rl.inspector.views.graph import RoundGraph


class Link(NamedTuple):
    """A page of the run: its path, its query, and the place on it. ``of_list``: with the list's filter."""

    path: tuple[str, ...]
    query: tuple[tuple[str, object], ...] = ()
    anchor: str = ""
    of_list: bool = False


def to_debate(id: str, view: str = "", turn: TurnId | None = None, **query: object) -> Link:
    """Return the link to a debate, or to a view of it and the turn that it is about."""
    about = {} if turn is None else {"turn": named(turn)}
    path = ("debate", id, view) if view else ("debate", id)
    return Link(path, tuple((about | query).items()), of_list=True)


def to_turn(id: str, turn: TurnId) -> Link:
    """Return the link to a turn on the page of its debate."""
    return to_debate(id)._replace(anchor=f"turn-{named(turn)}")


class Span(NamedTuple):
    """Words in one style, which may lead somewhere; ``name``: by which tests find them.

    Styles: strong, faint, doubt, code; right, wrong and the other grades; answer: mathematics is typeset;
    mark: what an excerpt is about; gone and new: what one of two texts has alone; page and drawn: what
    pages alone show.
    """

    text: str
    style: str = ""
    link: Link | None = None
    name: str = ""


Words: TypeAlias = str | Span | Sequence[str | Span]
"""What stands in one line or one cell."""


def spans(words: Words) -> tuple[Span, ...]:
    """Return the spans of words.

    >>> spans(("a", Span("b", "strong")))
    (Span(text='a', style='', link=None, name=''), Span(text='b', style='strong', link=None, name=''))
    """
    if isinstance(words, str):
        return (Span(words),)
    if isinstance(words, Span):
        return (words,)
    return tuple(Span(word) if isinstance(word, str) else word for word in words)


def grade(word: str) -> Span:
    """Return a grade as sign and word, in its colour.

    >>> grade("right").text
    '✓ right'
    """
    return Span(f"{GRADE_SIGNS.get(word, '–' if word == 'none' else '')} {word}".strip(), word)


def named_turn(view: DebateView, turn: TurnId) -> Span:
    """Return whose turn it is, as a link to it."""
    return Span(view.spelled(turn), link=to_turn(view.id, turn))


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph. ``kind``: "notice", "sentence", "faint", or "" of a plain one."""

    words: Words
    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it was written, in lines of its own, below its ``label``.

    ``folded``: only its length is shown until it is asked for. ``typeset``: with its mathematics. ``whole``:
    where all of a text is shown that is cut here.
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
    """Rows below heads. A head that begins with ">" sets its column to the right; one with "~" before
    that is left out where there is no room.

    ``row_name``: by which tests find a row; ``ids``: of each row, to be linked to; ``body``: of all rows.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Words]]
    caption: str = ""
    name: str = ""
    row_name: str = ""
    ids: Sequence[str] = ()
    body: str = ""
    kind: str = "list"

    @property
    def columns(self) -> list[tuple[str, bool, bool]]:
        """The heads, whether each is set to the right, and whether it may be left out."""
        return [
            (head.lstrip("~>"), head.lstrip("~").startswith(">"), head.startswith("~")) for head in self.heads
        ]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names, each with what belongs to it."""

    pairs: Sequence[tuple[str, Words]]


@dataclass(frozen=True, slots=True)
class Series:
    """One figure over the steps, None where it has no value; ``style`` names its colour and dashes."""

    name: str
    style: str
    points: Sequence[tuple[int, float | None]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Figures over the steps: shares of 1, or with ``fitted`` one figure in a range of its own."""

    series: Sequence[Series]
    fitted: bool = False


@dataclass(frozen=True, slots=True)
class VoteDrawing:
    """The votes on the solutions of one round as arrows, of which a table has the words."""

    graph: RoundGraph
    view: DebateView


@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title. ``kind``: "cards" lays sections out side by side; "card" is one of them.

    ``folded``: the browser shows the title until it is opened. ``id``: to be linked to.
    """

    title: Words
    blocks: Sequence[Block]
    name: str = ""
    kind: str = ""
    id: str = ""
    folded: bool = False


Block: TypeAlias = Line | Text | Table | Pairs | Chart | VoteDrawing | Section


def cut(rows: Iterable[Sequence[Words]], most: int) -> tuple[list[Sequence[Words]], list[Block]]:
    """Return the first rows, and a line that says how many are left out, if any are."""
    every = list(rows)
    left = len(every) - most
    return every[:most], [Line(f"{left:,} more are left out", "faint")] if left > 0 else []
