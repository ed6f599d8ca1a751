"""A long text by itself: broken into rows in the background, and drawn where it is in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.text import Text
from textual.widget import Widget

from inspector.terminal.face import Face
from inspector.terminal.lines import Lines, Row, fold
from learner.formatting import counted


class Pager(Face):
    """Shows lines that are read when it opens."""

    keys = "Space/b page  arrows scroll  Home/End  Esc back  q quit"

    def __init__(self, name: str, read: Callable[[], Sequence[Text | str]]) -> None:
        super().__init__()
        self._name, self._text = name, read
        self._count = 0

    def body(self) -> Iterable[Widget]:
        """Return the text."""
        yield Lines(id="main")

    def place(self) -> str:
        """Return what is shown."""
        return self._name

    def told(self) -> str:
        """Return how many rows there are."""
        return counted(self._count, "row") if self._count else ""

    def on_mount(self) -> None:
        """Read the text once the width is known."""
        super().on_mount()
        self.query_one(Lines).focus()
        self.call_after_refresh(self._open)

    def _open(self) -> None:
        width = self.query_one(Lines).inner_width
        read = self._text

        def prepared() -> tuple[Sequence[Text | str], list[Row], int]:
            lines = read()
            return lines, fold(lines, width), width

        self.load("text", prepared, self._show)

    def _show(self, found: tuple[Sequence[Text | str], list[Row], int]) -> None:
        self._count = len(found[1])
        self.query_one(Lines).show_folded(*found)
        self.retitle()
