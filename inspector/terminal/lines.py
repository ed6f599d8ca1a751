"""A text to scroll through, of any length: only the rows in sight are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from inspector.terminal.wrap import rows

Row = tuple[int, int, int]
"""One row in sight: the place of its line, and the first and last of its characters."""


def fold(lines: Sequence[Text | str], width: int) -> list[Row]:
    """Return the rows of lines at a width."""
    return [
        (place, start, end)
        for place, line in enumerate(lines)
        for start, end in rows(line if isinstance(line, str) else line.plain, width)
    ]


class Lines(ScrollView, can_focus=True):
    """Shows lines, broken at the widget's width; their text is escaped already (``visible``)."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", show=False),
        Binding("down", "go(1)", show=False),
        Binding("pageup,b", "turn(-1)", show=False),
        Binding("pagedown,space", "turn(1)", show=False),
        Binding("home", "go(-1000000000)", show=False),
        Binding("end", "go(1000000000)", show=False),
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

    def show_folded(self, lines: Sequence[Text | str], found: list[Row], width: int) -> None:
        """Show lines whose rows at this width are known."""
        self._lines, self._rows, self._width = lines, found, width
        self.virtual_size = Size(width, len(found))
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
        style, at = self.rich_style, self.scroll_offset.y + y
        if at >= len(self._rows):
            return Strip.blank(self.size.width, style)
        place, start, end = self._rows[at]
        line = self._lines[place]
        piece = Text(line[start:end]) if isinstance(line, str) else line[start:end]
        piece.end = ""
        strip = Strip(piece.render(self.app.console)).apply_style(style)
        return strip.adjust_cell_length(self.size.width, style)

    def action_turn(self, by: int) -> None:
        """Go on or back by a page, but for one row."""
        self.action_go(by * max(1, self.size.height - 1))

    def action_go(self, by: int) -> None:
        """Go on or back by some rows."""
        top = max(0, len(self._rows) - self.size.height)
        self.scroll_to(y=max(0, min(self.scroll_offset.y + by, top)), animate=False, force=True)
