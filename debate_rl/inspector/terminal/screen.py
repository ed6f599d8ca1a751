"""An open run, what all screens have in common, and two screens that hold a text: the help and the pager."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from threading import Event
from typing import ClassVar, TypeAlias, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from debate_rl.formatting import counted, one_line
from debate_rl.inspector.meanings import COLUMNS, filter_fields
from debate_rl.inspector.terminal.style import FAINT, STRONG, WRONG, heading, line
from debate_rl.inspector.terminal.widgets import Lines, Row, fold
from transcripts import RunStore, compile_filter

SLICE_S, PAUSE_S = 0.4, 0.05
"""The full text is built in slices of so many seconds, between which the application can be left."""
Result = TypeVar("Result")
READING_ERRORS = (ValueError, OSError, sqlite3.Error)
"""What reading a run may raise: shown in the last line, never a traceback."""


@dataclass(frozen=True, slots=True)
class Matches:
    """What a list of debates shows: a filter, in the order of the run or newest first."""

    filter: str = ""
    newest: bool = False


class Leaving(Exception):
    """The application is being left: stop building an index."""


class OpenRun:
    """An open run. ``closed`` stops what is being built in threads; ``indexed``: steps done, of how many."""

    def __init__(self, path: Path, name: str) -> None:
        self.store, self.name = RunStore.open(path, refresh=False), name
        self.closed = Event()
        self.indexed = (0, 0)

    def refresh(self) -> int:
        """Index what the run wrote since; return how many debates came."""

        def tell(done: int, whole: int) -> None:
            self.indexed = (done, whole)
            if self.closed.is_set():
                raise Leaving

        try:
            return self.store.refresh(tell=tell)
        except Leaving:
            return 0

    def close(self) -> None:
        """Stop what is being built, and close the run."""
        self.closed.set()
        self.store.close()


class RunScreen(Screen[str | None]):
    """One screen: ``widgets`` between title and footer, which names its bindings, as the help does.

    ``title`` says where in the run this is; ``sub_title`` stands at the right.
    """

    def __init__(self, title: str, *widgets: Widget) -> None:
        super().__init__()
        self._widgets = widgets
        self.title = title

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(id="title", markup=False)
        yield from self._widgets
        yield Static(id="message", markup=False)
        yield Footer(compact=True)

    def result(self) -> str | None:
        """Return what the screen before gets when this one is left."""
        return None

    def on_mount(self) -> None:
        """Show the title."""
        self.watch(self, "title", self.fit_title, init=False)
        self.watch(self, "sub_title", self.fit_title)

    def on_resize(self) -> None:
        """Fit the title."""
        self.fit_title()

    def fit_title(self) -> None:
        """Show title and sub-title in one line; of a title that is too long the end stays."""
        width = max(20, self.app.size.width - 2)
        right = one_line(self.sub_title or "")
        left = one_line(self.title or "")
        available = width - len(right) - 1
        if len(left) > available:
            left = "…" + left[1 - available :]
        self.query_one("#title", Static).update(Text(left + right.rjust(width - len(left))))

    def say(self, text: str, *, error: bool = False) -> None:
        """Show a message in place of the footer, until it is ""."""
        message = self.query_one("#message", Static)
        message.update(line((one_line(text), WRONG if error else "")))
        message.display, self.query_one(Footer).display = bool(text), not text

    def load(
        self,
        group: str,
        read: Callable[[], Result],
        then: Callable[[Result], None],
        failed: Callable[[str], None] | None = None,
    ) -> None:
        """Read in a thread, then go on; a later ``load`` of the group takes the place of this one.

        What cannot be read is said in one line, by ``failed`` or in the last row.
        """

        async def run() -> None:
            try:
                result = await asyncio.to_thread(read)
            except READING_ERRORS as error:
                message = str(error) or type(error).__name__
                failed(message) if failed else self.say(message, error=True)
            else:
                then(result)

        self.run_worker(run(), group=group, exclusive=True)

    def with_text(self, run: OpenRun, filter: str, then: Callable[[], None]) -> None:
        """Build the full text where the filter searches words, saying how far it is; then go on."""
        if not compile_filter(filter).words:
            self.workers.cancel_group(self, "text")
            then()
            return

        async def index() -> None:
            while not run.closed.is_set():
                if await asyncio.to_thread(run.store.index_text, seconds=SLICE_S):
                    break
                read, whole = await asyncio.to_thread(run.store.text_read)
                self.say(f"reading the words of all debates: {read * 100 // max(1, whole)}%")
                await asyncio.sleep(PAUSE_S)  # where another process builds it, nothing was done
            if not run.closed.is_set():
                self.say("")
                then()

        self.run_worker(index(), group="text", exclusive=True)

    def action_back(self) -> None:
        """Go out, to the screen before."""
        if len(self.app.screen_stack) > 2:
            self.dismiss(self.result())
        else:
            self.say("this is the outermost screen: q quits")

    def action_help(self) -> None:
        """Show the keys that work here, the signs, the columns and the fields of filters."""
        self.app.push_screen(Help(bound(self).items()))

    def refresh_run(self) -> None:
        """Show debates that the run wrote since."""


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
        super().__init__("help", Lines(id="keys"))
        self._keys = keys

    def on_mount(self) -> None:
        """Show the list."""
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
    """Shows lines that are read when it opens, and how many rows they take."""

    def __init__(self, title: str, read: Callable[[], Sequence[Text | str]]) -> None:
        super().__init__(title, Lines(id="main"))
        self._read = read

    def on_mount(self) -> None:
        """Read the text once the width is known."""
        self.call_after_refresh(self._open)

    def _open(self) -> None:
        width = self.query_one(Lines).inner_width

        def prepared() -> tuple[Sequence[Text | str], list[Row], int]:
            lines = self._read()
            return lines, fold(lines, width), width

        self.load("text", prepared, self._show)

    def _show(self, folded: tuple[Sequence[Text | str], list[Row], int]) -> None:
        self.query_one(Lines).show_folded(*folded)
        self.sub_title = counted(len(folded[1]), "row")
