"""The replays of a run: what another scheme would have given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from debate_rl.formatting import fixed, one_line
from debate_rl.inspector.terminal.opened import Matches, Opened
from debate_rl.inspector.terminal.panels.rewards import summary_lines
from debate_rl.inspector.terminal.screen import RunScreen
from debate_rl.inspector.terminal.style import DOUBT, Cell, Column
from debate_rl.inspector.terminal.widgets import Lines, Listing
from debate_rl.inspector.views.replays import MostChanged, ReplayComparison, ReplayName, read_replay, replays

REPLAYS = "replays: what other schemes would have given"
COLUMNS = (
    Column("replay", 24, left=True),
    Column("debates", 9),
    Column("changed", 9),
    Column("scheme", 20, rest=True),
)
CHANGED = (Column("debate", 12, left=True), Column("change", 10), Column("", 1, rest=True))


class ReplayList(Listing[ReplayName]):
    """One row a replay."""

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, id=id)

    def cells(self, item: ReplayName) -> Sequence[Cell]:
        """Return a replay's cells."""
        if item.problem:
            return (one_line(item.name, 60), "", "", (one_line(item.problem), DOUBT))
        scheme = one_line(" ".join(item.overrides) or "the run's own scheme")
        return (one_line(item.name, 60), f"{item.debates:,}", f"{item.changed:,}", scheme)


class Replays(RunScreen):
    """The replays of one run."""

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened = opened

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield ReplayList(id="replays")

    def place(self) -> str:
        """Return the run."""
        return f"{self.opened.name} › replays"

    def on_mount(self) -> None:
        """Read which there are."""
        super().on_mount()
        self.query_one(ReplayList).focus()
        self.load("replays", lambda: replays(self.opened.store.run), self._show)

    def _show(self, found: list[ReplayName]) -> None:
        self.query_one(ReplayList).show(found)
        if not found:
            self.say("none yet: debate replay RUN rewards.truth_weight=0.3 makes one")

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a replay."""
        item = self.query_one(ReplayList).items[event.place]
        if item.problem:
            self.say(item.problem, wrong=True)
        else:
            self.app.push_screen(Replay(self.opened, item.name))


class ChangedList(Listing[MostChanged]):
    """The debates that change most."""

    def __init__(self, *, id: str) -> None:
        super().__init__(CHANGED, id=id)

    def cells(self, item: MostChanged) -> Sequence[Cell]:
        """Return a debate's cells."""
        return (one_line(item.id, 40), fixed(item.change), "")


class Replay(RunScreen):
    """One replay: its figures, and the debates that change most, to open."""

    CSS = """
    Replay Lines { padding: 0 1; height: 2fr; }
    Replay ChangedList { height: 1fr; min-height: 5; border-top: hkey $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "app.focus_next", "figures or debates")]

    def __init__(self, opened: Opened, name: str) -> None:
        super().__init__()
        self.opened, self._replay = opened, name

    def body(self) -> Iterable[Widget]:
        """Return figures and debates."""
        yield Lines(id="figures")
        yield ChangedList(id="changed")

    def place(self) -> str:
        """Return run and replay."""
        return f"{self.opened.name} › {self._replay}"

    def told(self) -> str:
        """Return what the lower list is."""
        return "below: the debates that change most"

    def on_mount(self) -> None:
        """Read it."""
        super().on_mount()
        self.query_one(ChangedList).focus()
        self.load("replay", lambda: read_replay(self.opened.store.run, self._replay), self._show)

    def _show(self, found: ReplayComparison) -> None:
        self.query_one(Lines).show(summary_lines(found))
        self.query_one(ChangedList).show(found.most_changed)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a debate."""
        from debate_rl.inspector.terminal.debate import DebateScreen

        id = self.query_one(ChangedList).items[event.place].id
        self.app.push_screen(DebateScreen(self.opened, id, Matches()))
