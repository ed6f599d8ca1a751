"""The debates of a run that a filter finds, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from debate_rl.formatting import one_line, share
from debate_rl.inspector.meanings import flags_of
from debate_rl.inspector.terminal.opened import Matches, Opened
from debate_rl.inspector.terminal.replays import REPLAYS, Replays
from debate_rl.inspector.terminal.screen import RunScreen
from debate_rl.inspector.terminal.style import FAINT, Cell, Column, sign
from debate_rl.inspector.terminal.widgets import FilterBar, Listing
from transcripts import DebateRow

PAGE = 100
FILTER = 'filter, as winner:wrong flip:CW text:"\\boxed"'
COLUMNS = (
    Column("", 1),
    Column("debate", 8, left=True),
    Column("problem", 12, need=2, left=True),
    Column("winner", 9, left=True),
    Column("accuracy", 9),
    Column("judge", 5, need=1),
    Column("votes", 5, need=3),
    Column("malformed", 9, need=5),
    Column("flags", 11, need=4, left=True),
    Column("question", 12, need=6, rest=True),
)


class DebateList(Listing[DebateRow]):
    """One row a debate; ``fresh`` ones came while the list was open."""

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, id=id)
        self.fresh: set[str] = set()

    def cells(self, item: DebateRow) -> Sequence[Cell]:
        """Return a debate's cells."""
        facts = item.facts
        mark, style = sign("" if item.winner == "none" else item.winner)
        first, last = share(facts.accuracy_round_0), share(facts.accuracy_last_round)
        return (
            ("•", "bold") if item.id in self.fresh else "",
            item.id,
            tail(one_line(item.problem.id, 200), 12),
            (f"{mark} {item.winner}", style),
            f"{first}→{last}",
            share(facts.judge_accuracy),
            str(facts.votes),
            (str(facts.malformed), "" if facts.malformed else FAINT),
            " ".join(name for name, _, _ in flags_of(item)),
            (one_line(item.problem.question, 200), FAINT),
        )


def tail(text: str, most: int) -> str:
    """Return the end of a text, which is where ids differ.

    >>> tail("MATH/algebra/2477", 8)
    '…ra/2477'
    """
    return text if len(text) <= most else "…" + text[1 - most :]


class Debates(RunScreen):
    """The list of debates, with the filter under it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", tooltip=FILTER),
        Binding("o", "order", "order", tooltip="newest first, or in the order of the run"),
        Binding("r", "replays", "replays", tooltip=REPLAYS),
    ]

    def __init__(self, opened: Opened, matches: Matches | None = None, *, ask: bool = False) -> None:
        super().__init__()
        self.opened, self.matches, self._ask = opened, matches or Matches(), ask
        self.count: int | None = None
        self._complete = False

    def body(self) -> Iterable[Widget]:
        """Return the list and the filter's line."""
        yield DebateList(id="debates")
        yield FilterBar(id="filter")

    @property
    def list(self) -> DebateList:
        """The list."""
        return self.query_one(DebateList)

    def place(self) -> str:
        """Return the run and the filter."""
        return f"{self.opened.name} › {self.matches.filter or 'all debates'}"

    def told(self) -> str:
        """Return how many there are, and how they are ordered."""
        fresh = f", {len(self.list.fresh)} new" if self.list.fresh else ""
        order = ", newest first" if self.matches.newest else ""
        return "" if self.count is None else f"{self.count:,} debates{fresh}{order}"

    def on_mount(self) -> None:
        """Read the first page."""
        super().on_mount()
        self.list.focus()
        self.restart()
        if self._ask:
            self.action_filter()

    def restart(self) -> None:
        """Read the list from its beginning."""
        self.count, self._complete = None, False
        self.list.fresh = set()
        self.list.show([])
        self.retitle()
        matches = self.matches
        self.with_text(self.opened, matches.filter, lambda: self._start(matches))

    def _start(self, matches: Matches) -> None:
        store = self.opened.store
        self.load(
            "page", lambda: store.debates(matches.filter, newest=matches.newest, limit=PAGE), self._show
        )
        self.load("count", lambda: store.count(matches.filter), self._counted)

    def _show(self, rows: list[DebateRow]) -> None:
        self._complete = len(rows) < PAGE
        self.list.show(rows)
        self.say(
            ""
            if rows
            else "no debate meets this filter: / changes it"
            if self.matches.filter
            else "no debates yet"
        )

    def _counted(self, count: int) -> None:
        self.count = count
        self.retitle()

    def on_listing_near_end(self, event: Listing.NearEnd) -> None:
        """Read the next page."""
        if not self._complete and self.list.items:
            self._read_on(fresh=False)

    def _read_on(self, *, fresh: bool) -> None:
        matches, last = self.matches, self.list.items[-1].id if self.list.items else None
        store = self.opened.store

        def add(rows: list[DebateRow]) -> None:
            self._complete = len(rows) < PAGE
            if fresh:
                self.list.fresh |= {row.id for row in rows}
            self.list.add(rows)
            self.retitle()

        self.load(
            "page",
            lambda: store.debates(matches.filter, newest=matches.newest, after=last, limit=PAGE),
            add,
        )

    def look_again(self, added: int) -> None:
        """Add what came, without moving the cursor."""
        if not added:
            return
        matches, store = self.matches, self.opened.store
        self.with_text(
            self.opened,
            matches.filter,
            lambda: self.load("count", lambda: store.count(matches.filter), self._counted),
        )
        if not self.matches.newest:
            if self._complete:
                self._read_on(fresh=True)
            return
        known = {row.id for row in self.list.items[:PAGE]}

        def add(rows: list[DebateRow]) -> None:
            came = [row for row in rows if row.id not in known]
            self.list.fresh |= {row.id for row in came}
            self.list.add(came, before=True)
            self.retitle()

        self.load("page", lambda: store.debates(matches.filter, newest=True, limit=PAGE), add)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a debate."""
        from debate_rl.inspector.terminal.debate import DebateScreen

        row = self.list.items[event.place]
        self.app.push_screen(DebateScreen(self.opened, row.id, self.matches), self._returned)

    def _returned(self, id: str | None) -> None:
        """Put the cursor on the debate that was seen last, where it is in the list."""
        found = [index for index, row in enumerate(self.list.items) if row.id == id]
        if found:
            self.list.action_move(found[0] - self.list.cursor)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Return whether a key does something: a slash in the filter's line is a sign."""
        return action != "filter" or not self.query_one(FilterBar).asked

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.query_one(FilterBar).ask(self.matches.filter)

    def on_filter_bar_given(self, event: FilterBar.Given) -> None:
        """Take another filter."""
        self.list.focus()
        if event.filter is not None and event.filter != self.matches.filter:
            self.matches = Matches(event.filter, self.matches.newest)
            self.restart()

    def action_order(self) -> None:
        """Turn the order round."""
        self.matches = Matches(self.matches.filter, not self.matches.newest)
        self.restart()

    def action_replays(self) -> None:
        """List what other schemes would have given."""
        self.app.push_screen(Replays(self.opened))
