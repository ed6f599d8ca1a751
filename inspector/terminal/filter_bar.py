"""The line in which a filter is written, with the place of an error under it."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Static

from inspector.terminal.style import FAINT, WRONG, line
from transcripts import FilterError, compile_filter


class FilterBar(Vertical):
    """Hidden until asked; Enter gives the filter, Escape none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]
    DEFAULT_CSS = """
    FilterBar { height: auto; display: none; }
    FilterBar.-asked { display: block; }
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

    def ask(self, filter: str) -> None:
        """Show the line with a filter in it."""
        self.add_class("-asked")
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
        self.remove_class("-asked")
        self.post_message(self.Given(filter))
