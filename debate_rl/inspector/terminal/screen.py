"""What all screens have in common, and two that hold a text: the help and the pager."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap
from typing import ClassVar, TypeAlias, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from debate_rl.formatting import counted, one_line
from debate_rl.inspector.meanings import COLUMNS, filter_fields
from debate_rl.inspector.terminal.opened import Opened
from debate_rl.inspector.terminal.style import FAINT, STRONG, WRONG, heading, line
from debate_rl.inspector.terminal.widgets import Lines, Row, fold
from transcripts import compile_filter

SLICE_S, PAUSE_S = 0.4, 0.05
"""The full text is built in slices of so many seconds, between which the application can be left."""
Found = TypeVar("Found")
READING_ERRORS = (ValueError, OSError, sqlite3.Error)
"""What reading a run may raise: shown in the last line, never a traceback."""


class RunScreen(Screen[str | None]):
    """One screen. Subclasses give ``body`` and ``place``; their bindings are what footer and help show."""

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(id="title", markup=False)
        yield from self.body()
        yield Static(id="said", markup=False)
        yield Footer(compact=True)

    def body(self) -> Iterable[Widget]:
        """Return what stands between title and footer."""
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
        """Say something in the place of the footer; nothing brings the footer back."""
        said = self.query_one("#said", Static)
        said.update(line((one_line(words), WRONG if wrong else "")))
        said.display, self.query_one(Footer).display = bool(words), not words

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

    def with_text(self, opened: Opened, filter: str, then: Callable[[], None]) -> None:
        """Build the full text where the filter searches words, saying how far it is; then go on."""
        if not compile_filter(filter).words:
            self.workers.cancel_group(self, "text")
            then()
            return

        async def run() -> None:
            while not opened.closed.is_set():
                if await asyncio.to_thread(opened.store.index_text, seconds=SLICE_S):
                    break
                read, whole = await asyncio.to_thread(opened.store.text_read)
                self.say(f"reading the words of all debates: {read * 100 // max(1, whole)}%")
                await asyncio.sleep(PAUSE_S)  # where another process builds it, nothing was done
            if not opened.closed.is_set():
                self.say("")
                then()

        self.run_worker(run(), group="text", exclusive=True)

    def action_back(self) -> None:
        """Go out, to the screen before."""
        if len(self.app.screen_stack) > 2:
            self.dismiss(self.result())
        else:
            self.say("this is the outermost screen: q quits")

    def action_help(self) -> None:
        """Show the keys that work here, the signs, the columns and the fields of filters."""
        self.app.push_screen(Help(bound(self).items()))

    def look_again(self, added: int) -> None:
        """Take in what the run wrote since: ``added`` debates."""


SIGNS = (
    ("✓ ✗ ∅ ?", "an answer: right, wrong, missing, ungraded"),
    ("★", "the winner"),
    ("!", "truncated, or malformed"),
    ("✓ ✗ ?", "a vote: right, wrong, undecidable"),
    ("– = ↻", "a vote: does not count, a tie, in a cycle"),
    ("CW WC", "an agent's answer was right, then wrong; or the other way"),
    ("•", "a debate that came while the list was open"),
)
NAMED, ABOUT = 18, 60
"""Cells of a key, and of a line of what it does, so that 80 columns hold both."""
Explained: TypeAlias = Iterable[tuple[str, str]]
"""Keys, signs or names, each with what it is."""


class Help(RunScreen):
    """Keys that work where it was opened, and what words and signs mean; ``?`` or Enter leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,f1,enter", "back", "back", show=False)]

    def __init__(self, keys: Explained) -> None:
        super().__init__()
        self._keys = keys

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield Lines(id="keys")

    def place(self) -> str:
        """Return the title."""
        return "help"

    def on_mount(self) -> None:
        """Show the list."""
        super().on_mount()
        self.query_one(Lines).focus()
        self.query_one(Lines).show(help_lines(self._keys))


def bound(screen: RunScreen) -> dict[str, str]:
    """Return what each binding does that works now on a screen, by its keys, as the footer names them."""
    keys: dict[str, list[str]] = {}
    for _, binding, _, _ in screen.active_bindings.values():
        if binding.description and not binding.system:
            shown = keys.setdefault(binding.tooltip or binding.description, [])
            shown.append(screen.app.get_key_display(binding))
    return {" ".join(dict.fromkeys(shown)): about for about, shown in keys.items()}


def help_lines(keys: Explained) -> Sequence[Text]:
    """Return the keys, then the signs, the columns and the fields of filters."""
    lines: list[Text] = []
    parts: tuple[tuple[str, Explained], ...] = (
        ("keys here", keys),
        ("signs", SIGNS),
        ("columns", COLUMNS),
        ("fields of filters (OR, - and parentheses join them)", filter_fields()),
    )
    for title, explained in parts:
        lines += [heading(title), *(row for name, about in explained for row in _rows(name, about)), line("")]
    return lines


def _rows(key: str, about: str) -> Iterator[Text]:
    """Yield a key and what it does, which goes on under its own beginning."""
    for index, part in enumerate(wrap(about, ABOUT)):
        yield line((f"{'' if index else key:<{NAMED - 1}} ", STRONG), (part, FAINT))


class Pager(RunScreen):
    """Shows lines that are read when it opens."""

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
