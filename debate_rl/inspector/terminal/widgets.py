"""A text to scroll through, a list with a cursor, and the line in which a filter is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic

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

from debate_rl.inspector.terminal.style import (
    CHOSEN,
    FAINT,
    WRONG,
    Column,
    Item,
    body,
    fitting,
    head,
    line,
    rows,
)
from transcripts import FilterError, compile_filter

Row = tuple[int, int, int]
"""One row in sight: the index of its line, and the first and last of its characters."""


def strip_of(widget: Widget, row: Text) -> Strip:
    """Return a row of a widget as Textual draws it, as wide as the widget."""
    row.end = ""
    strip = Strip(row.render(widget.app.console)).apply_style(widget.rich_style)
    return strip.adjust_cell_length(widget.size.width, widget.rich_style)


def fold(lines: Sequence[Text | str], width: int) -> list[Row]:
    """Return the rows of lines at a width."""
    return [
        (index, start, end)
        for index, line in enumerate(lines)
        for start, end in rows(line if isinstance(line, str) else line.plain, width)
    ]


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows lines, broken at the widget's width; their text is safe to print already."""

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
        self._rows: list[Row] = []
        self._width = 0

    def show(self, lines: Sequence[Text | str], *, keep: bool = False) -> None:
        """Show other lines from their beginning; ``keep`` stays where the reader is."""
        self.show_folded(lines, fold(lines, self.inner_width), self.inner_width)
        if not keep:
            self.scroll_to(0, 0, animate=False)

    def show_folded(self, lines: Sequence[Text | str], rows: list[Row], width: int) -> None:
        """Show lines whose rows at this width are known."""
        self._lines, self._rows, self._width = lines, rows, width
        self.virtual_size = Size(width, len(rows))
        self.refresh()

    @property
    def plain(self) -> str:
        """The whole text."""
        return "\n".join(line if isinstance(line, str) else line.plain for line in self._lines)

    @property
    def inner_width(self) -> int:
        """How many cells a row has."""
        return max(2, self.scrollable_content_region.width or self.size.width)

    def on_resize(self, event: Resize) -> None:
        """Break the lines again at another width."""
        if self.inner_width != self._width:
            self.show(self._lines, keep=True)

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        if self.scroll_offset.y + y >= len(self._rows):
            return Strip.blank(self.size.width, self.rich_style)
        index, start, end = self._rows[self.scroll_offset.y + y]
        line = self._lines[index]
        return strip_of(self, Text(line[start:end]) if isinstance(line, str) else line[start:end])

    def action_turn(self, by: int) -> None:
        """Go on or back by a page, but for one row."""
        self.action_go(by * max(1, self.size.height - 1))

    def action_go(self, by: int) -> None:
        """Go on or back by some rows."""
        top = max(0, len(self._rows) - self.size.height)
        self.scroll_to(y=max(0, min(self.scroll_offset.y + by, top)), animate=False, force=True)


MARGIN = 10
"""So many rows before the end, more are read."""


class Listing(ScrollView, Generic[Item], can_focus=True, inherit_bindings=False):
    """Items under column heads, a row each."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "choose", "open", tooltip="go in"),
        Binding("up,k", "move(-1)", "a row up", show=False),
        Binding("down,j", "move(1)", "a row down", show=False),
        Binding("pageup,b", "page(-1)", "a page up", show=False),
        Binding("pagedown,space", "page(1)", "a page down", show=False),
        Binding("home,g", "move(-1000000000)", "to the first row", show=False),
        Binding("end,G", "move(1000000000)", "to the last row", show=False),
    ]
    DEFAULT_CSS = "Listing { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; height: 1fr; }"

    class Chosen(Message):
        """The item under the cursor is to be opened."""

        def __init__(self, item: Any) -> None:
            super().__init__()
            self.item = item

    class NearEnd(Message):
        """The cursor comes to the last rows that are there."""

    def __init__(self, columns: Sequence[Column[Item]], *, id: str) -> None:
        super().__init__(id=id)
        self.columns = columns
        self.items: list[Item] = []
        self.cursor = 0
        self._fit = fitting(columns, 80)

    def show(self, items: Sequence[Item], *, cursor: int = 0) -> None:
        """Show other items."""
        self.items = list(items)
        self.cursor = max(0, min(cursor, len(self.items) - 1))
        self._sized()
        self.call_after_refresh(self._into_sight)

    def add(self, items: Sequence[Item], *, before: bool = False) -> None:
        """Add items at the end, or before all; the cursor stays on its item, and the item in its row."""
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
        """Fit the columns to another width."""
        self._sized()
        self._into_sight()

    def render_line(self, y: int) -> Strip:
        """Draw one row; the heads stay on top."""
        index = self.scroll_offset.y + y - 1
        if y == 0:
            return strip_of(self, Text(" ") + head(self._fit))
        if not 0 <= index < len(self.items):
            return Strip.blank(self.size.width, self.rich_style)
        here = index == self.cursor
        strip = strip_of(self, Text("›" if here else " ") + body(self._fit, self.items[index]))
        return strip.apply_style(Style.parse(CHOSEN)) if here and self.has_focus else strip

    def _into_sight(self) -> None:
        region = Region(0, self.cursor, 1, 2)
        self.scroll_to_region(region, animate=False, force=True)

    def action_move(self, by: int) -> None:
        """Move the cursor by some rows."""
        if not self.items:
            return
        self.cursor = max(0, min(self.cursor + by, len(self.items) - 1))
        self._into_sight()
        self.refresh()
        if self.cursor >= len(self.items) - MARGIN:
            self.post_message(self.NearEnd())

    def action_page(self, by: int) -> None:
        """Move the cursor by a page."""
        self.action_move(by * max(1, self.size.height - 2))

    def action_choose(self) -> None:
        """Open the item under the cursor."""
        if self.items:
            self.post_message(self.Chosen(self.items[self.cursor]))

    def on_click(self, event: Click) -> None:
        """Move the cursor to the row; open it when it is there already."""
        index = self.scroll_offset.y + event.y - 1
        if event.y == 0 or not 0 <= index < len(self.items):
            return
        if index == self.cursor:
            self.action_choose()
        self.action_move(index - self.cursor)


class FilterBar(Vertical):
    """Hidden until opened; Enter gives the filter, Escape none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="leave the filter as it is")
    ]
    DEFAULT_CSS = """
    FilterBar { height: auto; display: none; }
    FilterBar.-open { display: block; }
    FilterBar Input, FilterBar Input:focus { border: none; height: 1; padding: 0 1; background: $background; }
    FilterBar Static { height: auto; padding: 0 1; }
    """

    class Given(Message):
        """A filter that can be read; None: leave it as it is."""

        def __init__(self, filter: str | None) -> None:
            super().__init__()
            self.filter = filter

    def compose(self) -> ComposeResult:
        """Lay out the line."""
        yield Static(
            line(('filter, as in winner:wrong flip:CW text:"\\boxed" (all fields: Esc, then ?)', FAINT)),
            markup=False,
        )
        yield Input(id="filter_input", highlighter=None, compact=True)
        yield Static(id="filter_error", markup=False)

    @property
    def is_open(self) -> bool:
        """Whether the line is in sight."""
        return self.has_class("-open")

    def open(self, filter: str) -> None:
        """Show the line with a filter in it."""
        self.add_class("-open")
        self.query_one("#filter_error", Static).update("")
        entry = self.query_one(Input)
        entry.value = filter
        entry.cursor_position = len(filter)
        entry.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give the filter, or show where it cannot be read."""
        event.stop()
        filter = event.value.strip()
        try:
            compile_filter(filter)
        except FilterError as error:
            shown = f"{error.shown()}\n{error.problem}"
            self.query_one("#filter_error", Static).update(Text(shown, style=WRONG))
            return
        self._close(filter)

    def action_leave(self) -> None:
        """Leave the filter as it is."""
        self._close(None)

    def _close(self, filter: str | None) -> None:
        self.remove_class("-open")
        self.post_message(self.Given(filter))
