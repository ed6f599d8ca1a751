"""A list with a cursor, of any length: rows are asked for as they come into sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from inspector.terminal.columns import Cell, Column, body, fitting, head
from inspector.terminal.style import CHOSEN

Item = TypeVar("Item")
MARGIN = 10
"""So many rows before the end, more are asked for."""


class Listing(ScrollView, Generic[Item], can_focus=True):
    """Items under column heads. ``cells`` of a subclass says what a row shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,b", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home,g", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
        Binding("enter,right", "choose", show=False),
    ]
    DEFAULT_CSS = "Listing { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; height: 1fr; }"

    class Chosen(Message):
        """The item under the cursor is to be opened."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    class NearEnd(Message):
        """The cursor comes to the last rows that are there."""

    def __init__(self, columns: Sequence[Column], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.columns = columns
        self.items: list[Item] = []
        self.cursor = 0
        self._fit = fitting(columns, 80)

    def cells(self, item: Item) -> Sequence[Cell]:
        """Return the cells of an item, one for each column, texts escaped."""
        raise NotImplementedError

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
        style = self.rich_style
        place = self.scroll_offset.y + y - 1
        if y == 0:
            return self._strip(head(self._fit), " ", style, Style.null())
        if not 0 <= place < len(self.items):
            return Strip.blank(self.size.width, style)
        row, here = body(self._fit, self.cells(self.items[place])), place == self.cursor
        over = Style.parse(CHOSEN) if here and self.has_focus else Style.null()
        return self._strip(row, "›" if here else " ", style, over)

    def _strip(self, row: Text, mark: str, style: Style, over: Style) -> Strip:
        strip = Strip((Text(mark, end="") + row).render(self.app.console)).apply_style(style)
        strip = strip.adjust_cell_length(self.size.width, style)
        return strip.apply_style(over) if over else strip

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
            self.post_message(self.Chosen(self.cursor))

    def on_click(self, event: Click) -> None:
        """Move the cursor to the row; open it when it is there already."""
        place = self.scroll_offset.y + event.y - 1
        if event.y == 0 or not 0 <= place < len(self.items):
            return
        if place == self.cursor:
            self.action_choose()
        self.action_move(place - self.cursor)
