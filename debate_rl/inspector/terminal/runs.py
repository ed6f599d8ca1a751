"""The runs of a folder, and the steps of one run with their figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from debate_rl.formatting import counted, fixed, one_line, share
from debate_rl.inspector.runs import FoundRun, find_runs
from debate_rl.inspector.terminal.debates import FILTER, Debates
from debate_rl.inspector.terminal.opened import Matches, Opened
from debate_rl.inspector.terminal.replays import REPLAYS, Replays
from debate_rl.inspector.terminal.screen import RunScreen
from debate_rl.inspector.terminal.style import FAINT, RIGHT, STRONG, Cell, Column
from debate_rl.inspector.terminal.widgets import Listing
from transcripts import StepRow

RUN_COLUMNS = (
    Column("run", 20, left=True, rest=True),
    Column("steps", 7),
    Column("debates", 10),
    Column("", 10, left=True),
)


class RunList(Listing[FoundRun]):
    """One row a run."""

    def __init__(self, *, id: str) -> None:
        super().__init__(RUN_COLUMNS, id=id)

    def cells(self, item: FoundRun) -> Sequence[Cell]:
        """Return a run's cells."""
        debates = "–" if item.debates is None else f"{item.debates:,}"
        going = ("going on", RIGHT) if item.writing else ("", FAINT)
        return (one_line(item.name), f"{item.steps:,}", debates, going)


class Runs(RunScreen):
    """The runs found at a path."""

    def __init__(self, path: Path, runs: Sequence[FoundRun], enter: Callable[[Opened], None]) -> None:
        super().__init__()
        self._path, self._runs, self._enter = path, runs, enter

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield RunList(id="runs")

    def place(self) -> str:
        """Return the folder."""
        return self._path.resolve().name

    def told(self) -> str:
        """Return how many runs there are."""
        return f"{len(self._runs)} runs"

    def on_mount(self) -> None:
        """Show the runs."""
        super().on_mount()
        self.query_one(RunList).show(self._runs)
        self.query_one(RunList).focus()

    def on_screen_resume(self) -> None:
        """Look again which runs there are."""
        self.load("runs", lambda: find_runs(self._path), self._show)

    def _show(self, runs: Sequence[FoundRun]) -> None:
        self._runs = runs
        listed = self.query_one(RunList)
        listed.show(runs, cursor=listed.cursor)
        self.retitle()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a run."""
        run = self.query_one(RunList).items[event.place]
        self.load("open", lambda: Opened.of(run.path, run.name), self._enter)


STEP_COLUMNS = (
    Column("step", 6, left=True),
    Column("debates", 8),
    Column("accuracy", 9),
    Column("winner", 6),
    Column("judge", 5),
    Column("cycles", 6, need=4),
    Column("malformed", 9, need=3),
    Column("truncated", 9, need=5),
    Column("peer", 6, need=2),
    Column("truth", 6, need=1),
    Column("judge reward", 12, need=6),
    Column("format", 6, need=7),
    Column("tokens", 12, need=8),
)


class StepList(Listing[StepRow]):
    """One row a step; the first one is the whole run."""

    def __init__(self, *, id: str) -> None:
        super().__init__(STEP_COLUMNS, id=id)

    def cells(self, item: StepRow) -> Sequence[Cell]:
        """Return a step's cells."""
        return (
            ("all", STRONG) if item.step is None else str(item.step),
            f"{item.debates:,}",
            f"{share(item.accuracy_round_0)}→{share(item.accuracy_last_round)}",
            share(item.winner_accuracy),
            share(item.judge_accuracy),
            _count(item.cycles),
            _count(item.malformed),
            _count(item.truncated),
            fixed(item.reward_peer, "+.2f"),
            fixed(item.reward_truth, "+.2f"),
            fixed(item.reward_judge, "+.2f"),
            fixed(item.reward_format, "+.2f"),
            (f"{item.tokens:,}", FAINT),
        )


def _count(value: int) -> Cell:
    return (f"{value:,}", "" if value else FAINT)


class Steps(RunScreen):
    """The steps of one run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", tooltip=FILTER),
        Binding("d", "all", "all debates"),
        Binding("r", "replays", "replays", tooltip=REPLAYS),
    ]

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened = opened
        self._reading = False

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield StepList(id="steps")

    @property
    def list(self) -> StepList:
        """The list."""
        return self.query_one(StepList)

    def place(self) -> str:
        """Return the run."""
        return self.opened.name

    def told(self) -> str:
        """Return how many debates there are."""
        whole = self.list.items[0].debates if self.list.items else None
        return "" if whole is None else f"{whole:,} debates in {len(self.list.items) - 1:,} steps"

    def on_mount(self) -> None:
        """Bring the index up to date, telling how far it is, and read the steps."""
        super().on_mount()
        self.list.focus()
        self._reading = True
        self.set_interval(0.3, self._tell)
        self.load("index", self.opened.refresh, lambda added: self._read())

    def _tell(self) -> None:
        done, whole = self.opened.taken_in
        if self._reading and whole:
            self.say(f"taking in the debates of the run: {done:,} of {whole:,} steps")

    def _read(self) -> None:
        store = self.opened.store
        self.load("steps", lambda: ([store.overall(), *store.steps()], store.damage), self._show)

    def _show(self, found: tuple[list[StepRow], list[str]]) -> None:
        rows, damage = found
        self._reading = False
        self.list.show(rows, cursor=self.list.cursor)
        if damage:
            self.say(f"{counted(len(damage), 'damaged place')}: {damage[0]}", wrong=True)
        else:
            self.say("" if len(rows) > 1 else "no debate yet: the run has just begun, or holds none")
        self.retitle()

    def look_again(self, added: int) -> None:
        """Read the figures again."""
        if added:
            self._read()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """List a step's debates."""
        step = self.list.items[event.place].step
        self.app.push_screen(Debates(self.opened, Matches("" if step is None else f"step:{step}")))

    def action_all(self) -> None:
        """List all debates."""
        self.app.push_screen(Debates(self.opened))

    def action_filter(self) -> None:
        """List the debates of a filter."""
        self.app.push_screen(Debates(self.opened, ask=True))

    def action_replays(self) -> None:
        """List what other schemes would have given."""
        self.app.push_screen(Replays(self.opened))
