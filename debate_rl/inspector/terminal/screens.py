"""The base of all screens, text screens, and lists of runs, steps, debates and replays."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from debate_rl.formatting import counted, one_line
from debate_rl.inspector.blocks import Layout, Pairs, Section, Span
from debate_rl.inspector.lists import (
    DEBATES,
    MEANINGS,
    MOST_CHANGED,
    REPLAYS,
    RUNS,
    STEPS,
    Column,
    Item,
    filter_fields,
)
from debate_rl.inspector.runs import Overview, find_runs, overviews
from debate_rl.inspector.terminal.widgets import FilterBar, Folded, Lines, Listing, fold, rich_lines
from debate_rl.inspector.views.replays import ReplayName, StoredReplay, read_replay, replay_blocks, replays
from transcripts import DebateRow, RunStore, StepRow, compile_filter

SLICE_S, PAUSE_S = 0.4, 0.05
"""Seconds of indexing text at a time, and the pause afterwards for keyboard input."""
Result = TypeVar("Result")
READING_ERRORS = (ValueError, OSError, sqlite3.Error)
"""Errors in reading a run, shown in the last line instead of a traceback."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The content of a list of debates: a filter, and the order."""

    filter: str = ""
    newest: bool = False


class Leaving(Exception):
    """Raised to stop indexing when the user leaves the application."""


class OpenRun:
    """An open run. ``closed`` stops background work; ``indexed``: indexed steps and their total."""

    def __init__(self, path: Path, name: str) -> None:
        self.store, self.name = RunStore.open(path, refresh=False), name
        self.closed, self.indexed = Event(), (0, 0)

    def refresh(self) -> int:
        """Index new debates and return their number."""

        def tell(done: int, whole: int) -> None:
            self.indexed = (done, whole)
            if self.closed.is_set():
                raise Leaving

        with suppress(Leaving):
            return self.store.refresh(tell=tell)
        return 0

    def close(self) -> None:
        """Stop background work and close the run."""
        self.closed.set()
        self.store.close()


class RunScreen(Screen[str | None]):
    """A screen: ``widgets`` between a title line and a footer with the key bindings."""

    id_shown = ""
    """The id of the debate on the screen, for the list below it."""

    def __init__(self, title: str, *widgets: Widget) -> None:
        super().__init__()
        self._widgets = widgets
        self.title = title

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield from self._widgets
        yield Static(id="message", markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.watch(self, "title", self.fit_title, init=False)
        self.watch(self, "sub_title", self.fit_title)

    def on_resize(self) -> None:
        self.fit_title()

    def fit_title(self) -> None:
        """Show title and subtitle in one line. A long title is cut at its beginning."""
        width = max(20, self.app.size.width - 2)
        left, right = one_line(self.title or ""), one_line(self.sub_title or "")
        available = width - len(right) - 1
        left = left if len(left) <= available else "…" + left[1 - available :]
        self.query_one("#title", Static).update(Text(left + right.rjust(width - len(left))))

    def say(self, text: str, *, error: bool = False) -> None:
        """Show a message instead of the footer; "" shows the footer again."""
        message = self.query_one("#message", Static)
        message.update(Text(one_line(text), style="red" if error else ""))
        message.display, self.query_one(Footer).display = bool(text), not text

    def load(
        self,
        group: str,
        read: Callable[[], Result],
        then: Callable[[Result], None],
        failed: Callable[[str], None] | None = None,
    ) -> None:
        """Read in a thread, then call ``then``. A later ``load`` of the group replaces this one.

        Errors are shown by ``failed``, or in the last row.
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
        """Index the words of all debates if the filter needs it, and show progress. Then call ``then``."""
        if not compile_filter(filter).words:
            self.workers.cancel_group(self, "text")
            then()
            return

        async def index() -> None:
            while not run.closed.is_set():
                if await asyncio.to_thread(run.store.index_text, seconds=SLICE_S):
                    break
                read, whole = await asyncio.to_thread(run.store.text_read)
                self.say(f"indexing the words of all debates: {read * 100 // max(1, whole)}%")
                await asyncio.sleep(PAUSE_S)  # also waits while another process builds the index
            if not run.closed.is_set():
                self.say("")
                then()

        self.run_worker(index(), group="text", exclusive=True)

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 2:
            self.dismiss(self.id_shown)
        else:
            self.say("this is the first screen: q quits")

    def action_help(self) -> None:
        self.app.push_screen(Help(bound(self).items()))

    def open_debate(
        self, run: OpenRun, id: str, matches: Matches, then: Callable[[str | None], None] | None = None
    ) -> None:
        """Show a debate. ``then`` receives the id of the last debate that was shown."""
        from debate_rl.inspector.terminal.debate import DebateScreen

        self.app.push_screen(DebateScreen(run, id, matches), then)

    def refresh_run(self) -> None:
        """Show new debates of the run."""


SIGNS = (
    ("✓ ✗ ∅ ?", "an answer: right, wrong, missing, ungraded"),
    ("★", "the winner"),
    ("!", "truncated, or malformed"),
    ("✓ ✗ ?", "a vote: right, wrong, undecidable"),
    ("– = ↻", "a vote: does not count, a tie, in a cycle"),
    ("✓→✗ ✗→✓", "an agent's answer was right, then wrong; or wrong, then right"),
    ("•", "a debate that was added while the list was open"),
)


def bound(screen: RunScreen) -> dict[str, str]:
    """Return the label of each active key binding of a screen, by its keys."""
    keys: dict[str, list[str]] = {}
    for _, binding, _, _ in screen.active_bindings.values():
        if binding.description and not binding.system:
            shown = keys.setdefault(binding.tooltip or binding.description, [])
            shown.append(screen.app.get_key_display(binding))
    return {" ".join(dict.fromkeys(shown)): about for about, shown in keys.items()}


def help_lines(keys: Iterable[tuple[str, str]]) -> Sequence[Text | str]:
    """Return the help: keys with their meanings, signs, columns and filter fields."""
    fields = "fields of filters (combine terms with OR, - and parentheses)"
    titled = (("keys here", keys), ("signs", SIGNS), ("columns", MEANINGS), (fields, filter_fields()))
    blocks = [Section(title, [Pairs(list(explained))]) for title, explained in titled]
    return rich_lines(blocks, Layout())


class Pager(RunScreen):
    """A screen of text that is read when the screen opens."""

    def __init__(self, title: str, read: Callable[[], Sequence[Text | str]]) -> None:
        super().__init__(title, Lines(id="main"))
        self._read = read

    def on_mount(self) -> None:
        self.call_after_refresh(self._open)

    def _open(self) -> None:
        width = self.query_one(Lines).inner_width

        def show(folded: tuple[Sequence[Text | str], list[Folded]]) -> None:
            self.query_one(Lines).show_folded(*folded, width)
            self.sub_title = counted(len(folded[1]), "row")

        self.load("text", lambda: (lines := self._read(), fold(lines, width)), show)


class Help(Pager):
    """Help for the screen below it: keys, signs, columns and filter fields. ``?`` or Enter leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,f1,enter", "back", "back", show=False)]

    def __init__(self, keys: Iterable[tuple[str, str]]) -> None:
        super().__init__("help", lambda: help_lines(keys))


class ListScreen(RunScreen, Generic[Item]):
    """A list of items that ``read`` returns in a thread."""

    def __init__(self, title: str, columns: Sequence[Column[Item]], id: str, *widgets: Widget) -> None:
        self.list: Listing[Item] = Listing(columns, id=id)
        super().__init__(title, self.list, *widgets)

    def read(self) -> Sequence[Item]:
        return []

    def show(self, items: Sequence[Item]) -> None:
        self.list.show(items, cursor=self.list.cursor)

    def refresh_run(self) -> None:
        self.load("list", self.read, self.show)


class Runs(ListScreen[Overview]):
    """The runs at a path."""

    def __init__(self, path: Path, enter: Callable[[OpenRun], None]) -> None:
        self._path, self._enter = path, enter
        super().__init__(path.resolve().name, RUNS, "runs")

    def on_screen_resume(self) -> None:
        self.refresh_run()

    def read(self) -> Sequence[Overview]:
        return overviews(find_runs(self._path))

    def show(self, items: Sequence[Overview]) -> None:
        chosen = self.list.current.run.path if self.list.current else None  # the order may have changed
        cursors = [index for index, one in enumerate(items) if one.run.path == chosen]
        self.list.show(items, cursor=next(iter(cursors), self.list.cursor))
        self.sub_title = f"{len(items)} runs"

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        run = event.item.run
        self.load("open", lambda: OpenRun(run.path, run.name), self._enter)


FILTER = 'filter, such as winner:wrong flip:CW text:"\\boxed"'
OTHERS = "replays: rewards under other schemes"


class Steps(ListScreen[StepRow]):
    """The steps of a run, below a row for the whole run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", tooltip=FILTER),
        Binding("d", "all", "all debates"),
        Binding("r", "replays", "replays", tooltip=OTHERS),
    ]

    def __init__(self, run: OpenRun) -> None:
        self.run = run
        super().__init__(run.name, STEPS, "steps")
        self._reading = True

    def on_mount(self) -> None:
        self.set_interval(0.3, self._say_progress)
        self.load("index", self.run.refresh, lambda added: self.refresh_run())

    def _say_progress(self) -> None:
        done, whole = self.run.indexed
        if self._reading and whole:
            self.say(f"indexing the debates of the run: {done:,} of {whole:,} steps")

    def read(self) -> Sequence[StepRow]:
        return [self.run.store.overall(), *self.run.store.steps()]

    def show(self, items: Sequence[StepRow]) -> None:
        super().show(items)
        self._reading = False
        if damage := self.run.store.damage:
            self.say(f"{counted(len(damage), 'damaged place')}: {damage[0]}", error=True)
        else:
            self.say("" if len(items) > 1 else "no debate yet: the run has just started, or has no debates")
        self.sub_title = f"{items[0].debates:,} debates in {len(items) - 1:,} steps"

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        step = event.item.step
        self.app.push_screen(Debates(self.run, Matches("" if step is None else f"step:{step}")))

    def action_all(self) -> None:
        self.app.push_screen(Debates(self.run))

    def action_filter(self) -> None:
        self.app.push_screen(Debates(self.run, ask=True))

    def action_replays(self) -> None:
        self.app.push_screen(Replays(self.run))


PAGE = 100


class Debates(ListScreen[DebateRow]):
    """The list of debates above its filter. ``fresh``: debates that were added while the list was open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", tooltip=FILTER),
        Binding("o", "order", "order", tooltip="newest first, or in the order of the run"),
        Binding("r", "replays", "replays", tooltip=OTHERS),
    ]

    def __init__(self, run: OpenRun, matches: Matches | None = None, *, ask: bool = False) -> None:
        mark = Span("•", "strong")
        fresh: Column[DebateRow] = Column("", 1, lambda row: mark if row.id in self.fresh else "")
        self.filter_bar = FilterBar(id="filter")
        super().__init__("", (fresh, *DEBATES), "debates", self.filter_bar)
        self.run, self.matches, self._ask = run, matches or Matches(), ask
        self.fresh: set[str] = set()
        self.count: int | None = None
        self._complete = False

    def on_mount(self) -> None:
        self.restart()
        if self._ask:
            self.action_filter()

    def restart(self) -> None:
        """Reload the list from its beginning."""
        self.count, self._complete = None, False
        self.fresh = set()
        self.list.show([])
        self._retitle()
        matches = self.matches

        def start() -> None:
            self.load("page", lambda: self._page(matches), self._show)
            self._count()

        self.with_text(self.run, matches.filter, start)

    def _retitle(self) -> None:
        """Update the title: the debates, their number, and their order."""
        self.title = f"{self.run.name} › {self.matches.filter or 'all debates'}"
        fresh = f", {len(self.fresh)} new" if self.fresh else ""
        order = ", newest first" if self.matches.newest else ""
        self.sub_title = "" if self.count is None else f"{self.count:,} debates{fresh}{order}"

    def _page(self, matches: Matches, after: str | None = None) -> list[DebateRow]:
        return self.run.store.debates(matches.filter, newest=matches.newest, after=after, limit=PAGE)

    def _count(self) -> None:
        filter = self.matches.filter

        def counted(count: int) -> None:
            self.count = count
            self._retitle()

        self.load("count", lambda: self.run.store.count(filter), counted)

    def _show(self, rows: list[DebateRow]) -> None:
        self._complete = len(rows) < PAGE
        self.list.show(rows)
        none = "no debate matches this filter: / changes it" if self.matches.filter else "no debates yet"
        self.say("" if rows else none)

    def on_listing_near_end(self, event: Listing.NearEnd) -> None:
        if not self._complete and self.list.items:
            self._more(fresh=False)

    def _more(self, *, fresh: bool) -> None:
        """Add the debates after the last one."""
        matches, last = self.matches, self.list.items[-1].id if self.list.items else None

        def add(rows: list[DebateRow]) -> None:
            self._complete = len(rows) < PAGE
            self._add(rows, fresh=fresh)

        self.load("page", lambda: self._page(matches, last), add)

    def _add(self, rows: list[DebateRow], *, fresh: bool, before: bool = False) -> None:
        self.fresh |= {row.id for row in rows} if fresh else set()
        self.list.add(rows, before=before)
        self._retitle()

    def refresh_run(self) -> None:
        matches, known = self.matches, {row.id for row in self.list.items[:PAGE]}
        self.with_text(self.run, matches.filter, self._count)

        def add(rows: list[DebateRow]) -> None:
            self._add([row for row in rows if row.id not in known], fresh=True, before=True)

        if matches.newest:
            self.load("page", lambda: self._page(matches), add)
        elif self._complete:
            self._more(fresh=True)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        self.open_debate(self.run, event.item.id, self.matches, self._returned)

    def _returned(self, id: str | None) -> None:
        """Move the cursor to the debate that was shown last, if it is in the list."""
        index = next((index for index, row in enumerate(self.list.items) if row.id == id), None)
        if index is not None:
            self.list.action_move(index - self.list.cursor)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        return action != "filter" or not self.filter_bar.is_open

    def action_filter(self) -> None:
        self.filter_bar.open(self.matches.filter)

    def on_filter_bar_given(self, event: FilterBar.Given) -> None:
        self.list.focus()
        if event.filter is not None and event.filter != self.matches.filter:
            self.matches = Matches(event.filter, self.matches.newest)
            self.restart()

    def action_order(self) -> None:
        self.matches = Matches(self.matches.filter, not self.matches.newest)
        self.restart()

    def action_replays(self) -> None:
        self.app.push_screen(Replays(self.run))


class Replays(ListScreen[ReplayName]):
    """The replays of one run."""

    def __init__(self, run: OpenRun) -> None:
        self.run = run
        super().__init__(f"{run.name} › replays", REPLAYS, "replays")

    def on_mount(self) -> None:
        self.refresh_run()

    def read(self) -> Sequence[ReplayName]:
        return replays(self.run.store.run)

    def show(self, items: Sequence[ReplayName]) -> None:
        super().show(items)
        self.say("" if items else "no replay yet: debate replay RUN rewards.truth_weight=0.3 makes one")

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        replay: ReplayName = event.item
        if replay.problem:
            self.say(replay.problem, error=True)
        else:
            self.app.push_screen(Replay(self.run, replay.name))


class Replay(RunScreen):
    """One replay: its figures, and the list of the most changed debates."""

    AUTO_FOCUS = "#changed"
    CSS = """
    #figures { padding: 0 1; height: 2fr; }
    #changed { height: 1fr; min-height: 5; border-top: hkey $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "app.focus_next", "figures or debates")]

    def __init__(self, run: OpenRun, name: str) -> None:
        self.run, self._replay = run, name
        self._figures, self._changed = Lines(id="figures"), Listing(MOST_CHANGED, id="changed")
        super().__init__(f"{run.name} › {name}", self._figures, self._changed)
        self.sub_title = "below: the most changed debates"

    def on_mount(self) -> None:
        def show(replay: StoredReplay) -> None:
            self._figures.show(rich_lines(replay_blocks(replay), Layout()))
            self._changed.show(replay.facts.most_changed)

        self.load("replay", lambda: read_replay(self.run.store.run, self._replay), show)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        self.open_debate(self.run, event.item.id, Matches())
