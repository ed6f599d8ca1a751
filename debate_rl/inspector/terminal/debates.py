"""The debates of a run that a filter finds, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from debate_rl.formatting import one_line, share
from debate_rl.inspector.meanings import flags_of
from debate_rl.inspector.terminal.replays import REPLAYS, Replays
from debate_rl.inspector.terminal.screen import Matches, OpenRun, RunScreen
from debate_rl.inspector.terminal.style import FAINT, Cell, Column, count_cell, sign
from debate_rl.inspector.terminal.widgets import FilterBar, Listing
from transcripts import DebateRow

PAGE = 100
FILTER = 'filter, as winner:wrong flip:CW text:"\\boxed"'


def _winner(row: DebateRow) -> Cell:
    mark, style = sign("" if row.winner == "none" else row.winner)
    return f"{mark} {row.winner}", style


def _accuracy(row: DebateRow) -> str:
    return f"{share(row.facts.accuracy_round_0)}→{share(row.facts.accuracy_last_round)}"


COLUMNS: Sequence[Column[DebateRow]] = (
    Column("debate", 8, lambda row: row.id, left=True),
    Column("problem", 12, lambda row: tail(one_line(row.problem.id, 200), 12), need=2, left=True),
    Column("winner", 9, _winner, left=True),
    Column("accuracy", 9, _accuracy),
    Column("judge", 5, lambda row: share(row.facts.judge_accuracy), need=1),
    Column("votes", 5, lambda row: str(row.facts.votes), need=3),
    Column("malformed", 9, lambda row: count_cell(row.facts.malformed), need=5),
    Column("flags", 14, lambda row: " ".join(flag for flag, _ in flags_of(row)), need=4, left=True),
    Column("question", 12, lambda row: (one_line(row.problem.question, 200), FAINT), need=6, rest=True),
)


def tail(text: str, most: int) -> str:
    """Return the end of a text, which is where ids differ.

    >>> tail("MATH/algebra/2477", 8)
    '…ra/2477'
    """
    return text if len(text) <= most else "…" + text[1 - most :]


class Debates(RunScreen):
    """The list of debates, with the filter under it; ``fresh`` ones came while the list was open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", tooltip=FILTER),
        Binding("o", "order", "order", tooltip="newest first, or in the order of the run"),
        Binding("r", "replays", "replays", tooltip=REPLAYS),
    ]

    def __init__(self, run: OpenRun, matches: Matches | None = None, *, ask: bool = False) -> None:
        fresh: Column[DebateRow] = Column("", 1, lambda row: ("•", "bold") if row.id in self.fresh else "")
        self.list, self.filter_bar = Listing((fresh, *COLUMNS), id="debates"), FilterBar(id="filter")
        super().__init__("", self.list, self.filter_bar)
        self.run, self.matches, self._ask = run, matches or Matches(), ask
        self.fresh: set[str] = set()
        self.count: int | None = None
        self._complete = False

    def on_mount(self) -> None:
        """Read the first page."""
        self.restart()
        if self._ask:
            self.action_filter()

    def restart(self) -> None:
        """Read the list from its beginning."""
        self.count, self._complete = None, False
        self.fresh = set()
        self.list.show([])
        self._retitle()
        matches = self.matches
        self.with_text(self.run, matches.filter, lambda: self._start(matches))

    def _retitle(self) -> None:
        """Say which debates these are, how many, and how they are ordered."""
        self.title = f"{self.run.name} › {self.matches.filter or 'all debates'}"
        fresh = f", {len(self.fresh)} new" if self.fresh else ""
        order = ", newest first" if self.matches.newest else ""
        self.sub_title = "" if self.count is None else f"{self.count:,} debates{fresh}{order}"

    def _start(self, matches: Matches) -> None:
        self.load("page", lambda: self._page(matches), self._show)
        self._count(matches)

    def _page(self, matches: Matches, after: str | None = None) -> list[DebateRow]:
        return self.run.store.debates(matches.filter, newest=matches.newest, after=after, limit=PAGE)

    def _count(self, matches: Matches) -> None:
        self.load("count", lambda: self.run.store.count(matches.filter), self._counted)

    def _counted(self, count: int) -> None:
        self.count = count
        self._retitle()

    def _show(self, rows: list[DebateRow]) -> None:
        self._complete = len(rows) < PAGE
        self.list.show(rows)
        none = "no debate meets this filter: / changes it" if self.matches.filter else "no debates yet"
        self.say("" if rows else none)

    def on_listing_near_end(self, event: Listing.NearEnd) -> None:
        """Read the next page."""
        if not self._complete and self.list.items:
            self._read_on(fresh=False)

    def _read_on(self, *, fresh: bool) -> None:
        matches, last = self.matches, self.list.items[-1].id if self.list.items else None

        def add(rows: list[DebateRow]) -> None:
            self._complete = len(rows) < PAGE
            self._add(rows, fresh=fresh)

        self.load("page", lambda: self._page(matches, last), add)

    def _add(self, rows: list[DebateRow], *, fresh: bool, before: bool = False) -> None:
        if fresh:
            self.fresh |= {row.id for row in rows}
        self.list.add(rows, before=before)
        self._retitle()

    def refresh_run(self) -> None:
        """Add what came, without moving the cursor."""
        matches = self.matches
        self.with_text(self.run, matches.filter, lambda: self._count(matches))
        if not matches.newest:
            if self._complete:
                self._read_on(fresh=True)
            return
        known = {row.id for row in self.list.items[:PAGE]}

        def add(rows: list[DebateRow]) -> None:
            self._add([row for row in rows if row.id not in known], fresh=True, before=True)

        self.load("page", lambda: self._page(matches), add)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a debate."""
        from debate_rl.inspector.terminal.debate import DebateScreen

        self.app.push_screen(DebateScreen(self.run, event.item.id, self.matches), self._returned)

    def _returned(self, id: str | None) -> None:
        """Put the cursor on the debate that was seen last, where it is in the list."""
        index = next((index for index, row in enumerate(self.list.items) if row.id == id), None)
        if index is not None:
            self.list.action_move(index - self.list.cursor)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Return whether a key does something: a slash in the filter's line is a sign."""
        return action != "filter" or not self.filter_bar.is_open

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.filter_bar.open(self.matches.filter)

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
        self.app.push_screen(Replays(self.run))
