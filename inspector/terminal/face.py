"""What all screens have in common: a title above, the keys below, and reading in the background."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from inspector.terminal.style import FAINT, WRONG, line
from learner.formatting import one_line

Found = TypeVar("Found")
READING_ERRORS = (ValueError, OSError, sqlite3.Error)
"""What reading a run may raise: shown in the last line, never a traceback."""


class Face(Screen[str | None]):
    """One screen. Subclasses give ``body``, ``place`` and ``keys``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,left", "back", show=False),
        Binding("q", "app.quit", show=False),
        Binding("question_mark,f1", "help", show=False),
    ]
    keys: ClassVar[str] = ""

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(id="title", markup=False)
        yield from self.body()
        yield Static(line((self.keys, FAINT)), id="last", markup=False)

    def body(self) -> Iterable[Widget]:
        """Return what stands between title and keys."""
        raise NotImplementedError

    def place(self) -> str:
        """Return where in the run this is."""
        raise NotImplementedError

    def told(self) -> str:
        """Return what stands at the right of the title."""
        return ""

    def result(self) -> str | None:
        """Return what the screen before is told when this one is left."""
        return None

    def on_mount(self) -> None:
        """Show the title."""
        self.retitle()

    def on_resize(self) -> None:
        """Fit the title."""
        self.retitle()

    def retitle(self) -> None:
        """Show place and what is told again."""
        width = max(20, self.app.size.width - 2)
        right = one_line(self.told())
        left = one_line(self.place())
        room = width - len(right) - 1
        if len(left) > room:
            left = "…" + left[1 - room :]
        self.query_one("#title", Static).update(Text(left + right.rjust(width - len(left))))

    def say(self, words: str, *, wrong: bool = False) -> None:
        """Say something in the last line, until a key is pressed; nothing brings the keys back."""
        shown = line((one_line(words), WRONG if wrong else "")) if words else line((self.keys, FAINT))
        self.query_one("#last", Static).update(shown)

    def load(
        self,
        group: str,
        read: Callable[[], Found],
        then: Callable[[Found], None],
        failed: Callable[[str], None] | None = None,
    ) -> None:
        """Read in a thread, then go on; a later ``load`` of the group takes the place of this one.

        What cannot be read is told in one line, to ``failed`` or in the last row.
        """

        async def run() -> None:
            try:
                found = await asyncio.to_thread(read)
            except READING_ERRORS as error:
                told = str(error) or type(error).__name__
                failed(told) if failed else self.say(told, wrong=True)
            else:
                then(found)

        self.run_worker(run(), group=group, exclusive=True)

    def action_back(self) -> None:
        """Go out, to the screen before."""
        if len(self.app.screen_stack) > 2:
            self.dismiss(self.result())
        else:
            self.say("this is the outermost screen: q quits")

    def action_help(self) -> None:
        """List the keys."""
        from inspector.terminal.help import Help

        self.app.push_screen(Help())

    def look_again(self, added: int) -> None:
        """Take in what the run wrote since: ``added`` debates."""
