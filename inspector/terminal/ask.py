"""A question with one line of text for an answer."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static


class Ask(ModalScreen[str | None]):
    """Gives what was written, None where Escape was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]
    CSS = """
    Ask { align: center middle; background: transparent; }
    #ask { width: 70; max-width: 95%; height: 5; border: round $foreground; padding: 0 1; }
    #ask { background: $background; }
    #ask Input, #ask Input:focus { border: none; height: 1; padding: 0; }
    """

    def __init__(self, question: str, suggested: str) -> None:
        super().__init__()
        self._question, self._suggested = question, suggested

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="ask"):
            yield Static(self._question, markup=False)
            yield Input(self._suggested, compact=True, select_on_focus=False)
            yield Static("Enter saves, Esc leaves", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give what was written."""
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        """Give nothing."""
        self.dismiss(None)
