"""Widgets: a scrolling text, a list with a cursor, a grid of turns, and input lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Generic

from rich.cells import cell_len, get_character_cell_size
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from debate.types import TurnId
from debate_rl.formatting import GRADE_SIGNS, one_line, padded
from debate_rl.inspector.blocks import Block, Layout, Row, lines_of
from debate_rl.inspector.lists import Column, Item, fitting, padded_row
from debate_rl.inspector.views.debate import DebateView, TurnView
from transcripts import FilterError, compile_filter

STYLES: Final = {
    **{"title": "bold cyan", "strong": "bold", "label": "bold cyan", "won": "bold", "mark": "bold underline"},
    **{
        "faint": "dim",
        "id": "dim",
        "thinking": "dim",
        "other": "dim",
        "ungraded": "dim",
        "undecidable": "dim",
    },
    **{"right": "green", "new": "green", "wrong": "red", "gone": "red", "missing": "yellow"},
    **{"doubt": "yellow", "comparison": "magenta"},
}
"""Styles in the terminal's own colours."""
CHOSEN: Final = "reverse"


def rich_line(row: Row) -> Text:
    """Return spans as one line of Rich, without interpreting markup."""
    pieces = ((span.text, STYLES.get(span.style, "")) for span in row)
    return Text.assemble(*pieces, no_wrap=True, end="")


def rich_lines(blocks: Iterable[Block], layout: Layout) -> list[Text | str]:
    """Return blocks as lines of Rich, without a blank first line."""
    lines: list[Text | str] = [rich_line(row) for row in lines_of(blocks, layout)]
    while lines and not str(lines[0]).strip():
        lines.pop(0)
    return lines


def strip_of(widget: Widget, row: Text) -> Strip:
    """Return a row of a widget for Textual, at the widget's width."""
    row.end = ""
    strip = Strip(row.render(widget.app.console)).apply_style(widget.rich_style)
    return strip.adjust_cell_length(widget.size.width, widget.rich_style)


_WORDS = re.compile(r"[^ ]+ *| +")
FULLEST = 4
"""Maximum number of characters per cell of a row, so that characters without width cannot accumulate."""


def rows(text: str, width: int) -> list[tuple[int, int]]:
    """Return (start, end) of the rows of one line, wrapped after blanks or within a word longer than a row.

    >>> text = "one two three"
    >>> [text[start:end] for start, end in rows(text, 8)]
    ['one two ', 'three']
    >>> rows("", 8)
    [(0, 0)]
    """
    width = max(width, 2)
    if len(text) <= width and text.isascii():
        return [(0, len(text))]
    spans: list[tuple[int, int]] = []
    start, used = 0, 0
    for match in _WORDS.finditer(text):
        bare = match[0].rstrip(" ")
        size = cell_len(bare)
        full = size + len(match[0]) - len(bare)
        if used and used + size > width:
            spans.append((start, match.start()))
            start, used = match.start(), 0
        if size > width or len(bare) > FULLEST * width:
            pieces = _broken(text, start, match.start() + len(bare), width)
            spans += pieces[:-1]
            start = pieces[-1][0]
            full = cell_len(text[start : match.end()])
        used += full
    return [*spans, (start, len(text))]


def _broken(text: str, start: int, end: int, width: int) -> list[tuple[int, int]]:
    """Return the rows of a word that is longer than a row."""
    spans: list[tuple[int, int]] = []
    used = 0
    for at in range(start, end):
        size = get_character_cell_size(text[at])
        if used + size > width or at - start >= FULLEST * width:
            spans.append((start, at))
            start, used = at, 0
        used += size
    return [*spans, (start, end)]


Folded = tuple[int, int, int]
"""One visible row: the index of its line, and its first and last character."""


def fold(lines: Sequence[Text | str], width: int) -> list[Folded]:
    """Return the rows of lines at a width."""
    return [(index, *row) for index, line in enumerate(lines) for row in rows(str(line), width)]


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows lines, wrapped at the widget's width. Their text must be safe to print."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", "a row up", show=False),
        Binding("down", "go(1)", "a row down", show=False),
        Binding("pageup,b", "turn(-1)", "a page up", show=False),
        Binding("space,pagedown", "turn(1)", "a page down"),
        Binding("home", "go(-1000000000)", "to the beginning", show=False),
        Binding("end", "go(1000000000)", "to the end", show=False),
    ]
    DEFAULT_CSS = "Lines { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; height: 1fr; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: Sequence[Text | str] = ()
        self._rows: list[Folded] = []
        self._width = 0

    def show(self, lines: Sequence[Text | str], *, keep: bool = False) -> None:
        """Show new lines from their beginning; with ``keep``, keep the scroll position."""
        self.show_folded(lines, fold(lines, self.inner_width), self.inner_width)
        if not keep:
            self.scroll_to(0, 0, animate=False)

    def show_folded(self, lines: Sequence[Text | str], rows: list[Folded], width: int) -> None:
        """Show lines that were already folded at this width."""
        self._lines, self._rows, self._width = lines, rows, width
        self.virtual_size = Size(width, len(rows))
        self.refresh()

    @property
    def plain(self) -> str:
        """The whole text."""
        return "\n".join(map(str, self._lines))

    @property
    def inner_width(self) -> int:
        """The number of cells of a row."""
        return max(2, self.scrollable_content_region.width or self.size.width)

    def on_resize(self, event: Resize) -> None:
        if self.inner_width != self._width:
            self.show(self._lines, keep=True)

    def render_line(self, y: int) -> Strip:
        if self.scroll_offset.y + y >= len(self._rows):
            return Strip.blank(self.size.width, self.rich_style)
        index, start, end = self._rows[self.scroll_offset.y + y]
        line = self._lines[index]
        return strip_of(self, Text(line[start:end]) if isinstance(line, str) else line[start:end])

    def action_turn(self, by: int) -> None:
        self.action_go(by * max(1, self.size.height - 1))

    def action_go(self, by: int) -> None:
        top = max(0, len(self._rows) - self.size.height)
        self.scroll_to(y=max(0, min(self.scroll_offset.y + by, top)), animate=False, force=True)


MARGIN = 10
"""More items are read when the cursor is this many rows before the end."""


class Listing(ScrollView, Generic[Item], can_focus=True, inherit_bindings=False):
    """Items under column heads, one row each."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "choose", "open", tooltip="open the selected row"),
        Binding("up,k", "move(-1)", "a row up", show=False),
        Binding("down,j", "move(1)", "a row down", show=False),
        Binding("pageup,b", "page(-1)", "a page up", show=False),
        Binding("pagedown,space", "page(1)", "a page down", show=False),
        Binding("home,g", "move(-1000000000)", "to the first row", show=False),
        Binding("end,G", "move(1000000000)", "to the last row", show=False),
    ]
    DEFAULT_CSS = "Listing { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; height: 1fr; }"

    class Chosen(Message):
        """Message: open the item under the cursor."""

        def __init__(self, item: Any) -> None:
            super().__init__()
            self.item = item

    class NearEnd(Message):
        """Message: the cursor is near the last row."""

    def __init__(self, columns: Sequence[Column[Item]], *, id: str) -> None:
        super().__init__(id=id)
        self.columns = columns
        self.items: list[Item] = []
        self.cursor = 0
        self._fit = fitting(columns, 80)

    def show(self, items: Sequence[Item], *, cursor: int = 0) -> None:
        """Replace the items."""
        self.items = list(items)
        self.cursor = max(0, min(cursor, len(self.items) - 1))
        self._sized()
        self.call_after_refresh(self._into_sight)

    def add(self, items: Sequence[Item], *, before: bool = False) -> None:
        """Add items at the end or the beginning. The cursor and its item stay in their row."""
        self.items = [*items, *self.items] if before else [*self.items, *items]
        top = self.scroll_offset.y
        self._sized()
        if before and len(self.items) > len(items):
            self.cursor += len(items)
            self.scroll_to(y=top + len(items), animate=False, force=True)

    @property
    def current(self) -> Item | None:
        """The item under the cursor."""
        return self.items[self.cursor] if self.items else None

    def _sized(self) -> None:
        width = max(10, self.scrollable_content_region.width or self.size.width)
        self._fit = fitting(self.columns, width - 1)
        self.virtual_size = Size(width, len(self.items) + 1)
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        self._sized()
        self._into_sight()

    def render_line(self, y: int) -> Strip:
        index = self.scroll_offset.y + y - 1
        if y and not 0 <= index < len(self.items):
            return Strip.blank(self.size.width, self.rich_style)
        here = bool(y) and index == self.cursor
        row = rich_line(padded_row(self._fit, self.items[index] if y else None))
        strip = strip_of(self, Text("›" if here else " ") + row)
        return strip.apply_style(Style.parse(CHOSEN)) if here and self.has_focus else strip

    def _into_sight(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 2), animate=False, force=True)

    def action_move(self, by: int) -> None:
        if not self.items:
            return
        self.cursor = max(0, min(self.cursor + by, len(self.items) - 1))
        self._into_sight()
        self.refresh()
        if self.cursor >= len(self.items) - MARGIN:
            self.post_message(self.NearEnd())

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 2))

    def action_choose(self) -> None:
        if self.items:
            self.post_message(self.Chosen(self.items[self.cursor]))

    def on_click(self, event: Click) -> None:
        index = self.scroll_offset.y + event.y - 1
        if event.y == 0 or not 0 <= index < len(self.items):
            return
        if index == self.cursor:
            self.action_choose()
        self.action_move(index - self.cursor)


class FilterBar(Vertical):
    """An input line that is hidden until opened. Enter submits the filter, and Escape cancels."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="keep the filter unchanged")
    ]
    DEFAULT_CSS = """
    FilterBar { height: auto; display: none; }
    FilterBar.-open { display: block; }
    FilterBar Input, FilterBar Input:focus { border: none; height: 1; padding: 0 1; background: $background; }
    FilterBar Static { height: auto; padding: 0 1; }
    """

    class Given(Message):
        """Message: a valid filter, or None to leave it unchanged."""

        def __init__(self, filter: str | None) -> None:
            super().__init__()
            self.filter = filter

    def compose(self) -> ComposeResult:
        example = 'filter, such as winner:wrong flip:CW text:"\\boxed" (all fields: Esc, then ?)'
        yield Static(Text(example, style="dim"), markup=False)
        yield Input(id="filter_input", highlighter=None, compact=True)
        yield Static(id="filter_error", markup=False)

    @property
    def is_open(self) -> bool:
        """Whether the line is visible."""
        return self.has_class("-open")

    def open(self, filter: str) -> None:
        """Show the line with a filter to edit."""
        self.add_class("-open")
        self.query_one("#filter_error", Static).update("")
        entry = self.query_one(Input)
        entry.value = filter
        entry.cursor_position = len(filter)
        entry.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        filter = event.value.strip()
        try:
            compile_filter(filter)
        except FilterError as error:
            shown = f"{error.shown()}\n{error.problem}"
            self.query_one("#filter_error", Static).update(Text(shown, style="red"))
            return
        self._close(filter)

    def action_leave(self) -> None:
        self._close(None)

    def _close(self, filter: str | None) -> None:
        self.remove_class("-open")
        self.post_message(self.Given(filter))


NAME, CELL, MOST_AGENTS = 22, 13, 8
"""Width of a name and minimum width of a turn, in cells; maximum number of visible agents."""
TURN = Binding.Group("turn", compact=True)


class Grid(Widget, can_focus=True):
    """The turns of a debate, agents by rounds, with the selected turn reversed. Arrow keys select."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1, 0)", "the agent above", group=TURN),
        Binding("down", "move(1, 0)", "the agent below", group=TURN),
        Binding("left", "move(0, -1)", "the previous round", group=TURN),
        Binding("right", "move(0, 1)", "the next round", group=TURN),
    ]
    DEFAULT_CSS = "Grid { height: auto; padding: 0 1; }"

    class Moved(Message):
        """Message: another turn was selected."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view: DebateView | None = None
        self.chosen = TurnId(0, 0)

    def show(self, view: DebateView, chosen: TurnId) -> None:
        """Show a debate, and select the turn nearest to the previous selection."""
        self.view = view
        rounds = max((len(row) for row in view.turns), default=1)
        agent, round_ = min(chosen.agent, view.agents - 1), min(chosen.round, rounds - 1)
        self.chosen = TurnId(max(0, agent), max(0, round_))
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + (min(self.view.agents, MOST_AGENTS) if self.view else 1)

    def action_move(self, agents: int, rounds: int) -> None:
        self.choose(self.chosen.agent + agents, self.chosen.round + rounds)

    def choose(self, agent: int, round_: int) -> None:
        """Select a turn if it exists."""
        view = self.view
        if view and 0 <= agent < view.agents and 0 <= round_ < len(view.turns[agent]):
            self.chosen = TurnId(agent, round_)
            self.refresh()
            self.post_message(self.Moved())

    def _window(self, view: DebateView) -> tuple[int, int, int, int]:
        """Return the first visible agent and round, the number of visible rounds, and a cell's width."""
        rounds = max(1, len(view.turns[0]))
        available = max(CELL, self.size.width - NAME - 2)
        across = max(1, min(rounds, available // CELL))
        first = max(0, min(self.chosen.round - across + 1, rounds - across))
        top = max(0, self.chosen.agent - MOST_AGENTS + 1)
        return top, first, across, min(26, available // across)

    def render_line(self, y: int) -> Strip:
        if self.view is None:
            return Strip.blank(self.size.width, self.rich_style)
        top, first, across, width = self._window(self.view)
        agent, shown = top + y - 1, range(first, first + across)
        if agent >= self.view.agents:
            return Strip.blank(self.size.width, self.rich_style)
        if y == 0:
            more = self.view.agents > MOST_AGENTS or len(self.view.turns[0]) > across
            names = [padded(self.view.round_name(round_), width) for round_ in shown]
            heads = padded("(arrows: more)" if more else "", NAME + 2) + "".join(names)
            return strip_of(self, Text(heads, "dim", no_wrap=True))
        name = padded(one_line(self.view.who(agent), 80), NAME)
        row = Text(no_wrap=True).append(name, "bold" if agent == self.chosen.agent else "").append("  ")
        for round_ in shown:
            text, style = cell(self.view.turns[agent][round_], self.view.winner)
            chosen = TurnId(agent, round_) == self.chosen
            row.append(padded(text, width - 1), f"{style} {CHOSEN}" if chosen else style)
            row.append(" ")
        return strip_of(self, row)

    def on_click(self, event: Click) -> None:
        if self.view is not None:
            top, first, across, width = self._window(self.view)
            column = (event.x - 1 - NAME - 2) // width
            if event.y > 0 and 0 <= column < across:
                self.choose(top + event.y - 1, first + column)


def cell(turn: TurnView | None, winner: TurnId | None) -> tuple[str, str]:
    """Return the text and the style of a turn: sign, ★ (winner), ! (malformed or truncated), answer."""
    if turn is None:
        return "", "dim"
    style = STYLES.get(turn.grade, "dim")
    failed = "!" if turn.failures or turn.stop_reason == "length" else " "
    if turn.targets is not None:
        return f"{failed} on {one_line(' '.join(turn.targets), 40) or 'nobody'}", style
    if turn.ballot:
        return f"{failed} ballot", style
    answer = "" if turn.answer is None else one_line(turn.answer, 40)
    return f"{GRADE_SIGNS.get(turn.grade, '·')}{'★' if winner == turn.id else ' '}{failed}{answer}", style
