"""The replays of a run: what another scheme would have given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from debate_rl.formatting import fixed, one_line
from debate_rl.inspector.terminal.panels.rewards import summary_lines
from debate_rl.inspector.terminal.screen import Matches, OpenRun, RunScreen
from debate_rl.inspector.terminal.style import DOUBT, Cell, Column
from debate_rl.inspector.terminal.widgets import Lines, Listing
from debate_rl.inspector.views.replays import MostChanged, ReplayName, StoredReplay, read_replay, replays

REPLAYS = "replays: what other schemes would have given"


def _scheme(replay: ReplayName) -> Cell:
    """Return what was changed, or why the replay cannot be read."""
    if replay.problem:
        return one_line(replay.problem), DOUBT
    return one_line(" ".join(replay.overrides) or "the run's own scheme")


COLUMNS: Sequence[Column[ReplayName]] = (
    Column("replay", 24, lambda replay: one_line(replay.name, 60), left=True),
    Column("debates", 9, lambda replay: "" if replay.problem else f"{replay.debates:,}"),
    Column("changed", 9, lambda replay: "" if replay.problem else f"{replay.changed:,}"),
    Column("scheme", 20, _scheme, rest=True),
)
CHANGED: Sequence[Column[MostChanged]] = (
    Column("debate", 12, lambda debate: one_line(debate.id, 40), left=True),
    Column("change", 10, lambda debate: fixed(debate.change)),
    Column("", 1, lambda debate: "", rest=True),
)


class Replays(RunScreen):
    """The replays of one run."""

    def __init__(self, run: OpenRun) -> None:
        self.run, self.list = run, Listing(COLUMNS, id="replays")
        super().__init__(f"{run.name} › replays", self.list)

    def on_mount(self) -> None:
        """Read which there are."""
        self.load("replays", lambda: replays(self.run.store.run), self._show)

    def _show(self, known: list[ReplayName]) -> None:
        self.list.show(known)
        if not known:
            self.say("none yet: debate replay RUN rewards.truth_weight=0.3 makes one")

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a replay."""
        replay: ReplayName = event.item
        if replay.problem:
            self.say(replay.problem, error=True)
        else:
            self.app.push_screen(Replay(self.run, replay.name))


class Replay(RunScreen):
    """One replay: its figures, and the debates that change most, to open."""

    AUTO_FOCUS = "#changed"
    CSS = """
    #figures { padding: 0 1; height: 2fr; }
    #changed { height: 1fr; min-height: 5; border-top: hkey $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "app.focus_next", "figures or debates")]

    def __init__(self, run: OpenRun, name: str) -> None:
        self.run, self._replay = run, name
        self._figures, self._changed = Lines(id="figures"), Listing(CHANGED, id="changed")
        super().__init__(f"{run.name} › {name}", self._figures, self._changed)
        self.sub_title = "below: the debates that change most"

    def on_mount(self) -> None:
        """Read it."""
        self.load("replay", lambda: read_replay(self.run.store.run, self._replay), self._show)

    def _show(self, replay: StoredReplay) -> None:
        self._figures.show(summary_lines(replay))
        self._changed.show(replay.facts.most_changed)

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a debate."""
        from debate_rl.inspector.terminal.debate import DebateScreen

        self.app.push_screen(DebateScreen(self.run, event.item.id, Matches()))
