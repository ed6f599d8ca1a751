"""The runs of a folder, and the steps of one run with their figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from debate_rl.formatting import counted, fixed, one_line, share
from debate_rl.inspector.overview import Overview, overviews
from debate_rl.inspector.runs import FoundRun, find_runs
from debate_rl.inspector.terminal.debates import FILTER, Debates
from debate_rl.inspector.terminal.replays import REPLAYS, Replays
from debate_rl.inspector.terminal.screen import Matches, OpenRun, RunScreen
from debate_rl.inspector.terminal.style import FAINT, RIGHT, STRONG, Column, count_cell
from debate_rl.inspector.terminal.widgets import Listing
from transcripts import StepRow


def _held_out(one: Overview) -> str:
    return "–" if one.before is None else f"{share(one.before)}→{share(one.after)}"


RUN_COLUMNS: Sequence[Column[Overview]] = (
    Column("run", 20, lambda one: one_line(one.run.name), left=True, rest=True),
    Column("steps", 11, lambda one: one.progress),
    Column(
        "held-out", 9, lambda one: "–" if one.before is None else f"{share(one.before)}→{share(one.after)}"
    ),
    Column("judge", 5, lambda one: share(one.judge)),
    Column("alarms", 6, lambda one: "–" if one.alarms is None else count_cell(one.alarms)),
    Column("", 8, lambda one: (one.state, RIGHT) if one.state else "", left=True),
)


class Runs(RunScreen):
    """The runs found at a path."""

    def __init__(self, path: Path, enter: Callable[[OpenRun], None]) -> None:
        self._path, self._enter = path, enter
        self.list = Listing(RUN_COLUMNS, id="runs")
        super().__init__(path.resolve().name, self.list)

    def on_screen_resume(self) -> None:
        """Look which runs there are."""
        self.refresh_run()

    def refresh_run(self) -> None:
        """Look which runs there are, and how far they are."""
        self.load("runs", lambda: overviews(find_runs(self._path)), self._show)

    def _show(self, runs: Sequence[Overview]) -> None:
        """Show the runs, whose order changes as they write; the cursor stays on its run."""
        chosen = self.list.current.run.path if self.list.current else None
        cursors = [index for index, one in enumerate(runs) if one.run.path == chosen]
        self.list.show(runs, cursor=next(iter(cursors), self.list.cursor))
        self.sub_title = f"{len(runs)} runs"

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Open a run."""
        run: FoundRun = event.item.run
        self.load("open", lambda: OpenRun(run.path, run.name), self._enter)


STEP_COLUMNS: Sequence[Column[StepRow]] = (
    Column("step", 6, lambda row: ("all", STRONG) if row.step is None else str(row.step), left=True),
    Column("debates", 8, lambda row: f"{row.debates:,}"),
    Column("accuracy", 9, lambda row: f"{share(row.accuracy_round_0)}→{share(row.accuracy_last_round)}"),
    Column("winner", 6, lambda row: share(row.winner_accuracy)),
    Column("judge", 5, lambda row: share(row.judge_accuracy)),
    Column("cycles", 6, lambda row: count_cell(row.cycles), need=4),
    Column("malformed", 9, lambda row: count_cell(row.malformed), need=3),
    Column("truncated", 9, lambda row: count_cell(row.truncated), need=5),
    Column("peer", 6, lambda row: fixed(row.reward_peer, "+.2f"), need=2),
    Column("truth", 6, lambda row: fixed(row.reward_truth, "+.2f"), need=1),
    Column("judge reward", 12, lambda row: fixed(row.reward_judge, "+.2f"), need=6),
    Column("format", 6, lambda row: fixed(row.reward_format, "+.2f"), need=7),
    Column("tokens", 12, lambda row: (f"{row.tokens:,}", FAINT), need=8),
)


class Steps(RunScreen):
    """The steps of one run, below a row of the whole run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", tooltip=FILTER),
        Binding("d", "all", "all debates"),
        Binding("r", "replays", "replays", tooltip=REPLAYS),
    ]

    def __init__(self, run: OpenRun) -> None:
        self.run, self.list = run, Listing(STEP_COLUMNS, id="steps")
        super().__init__(run.name, self.list)
        self._reading = True

    def on_mount(self) -> None:
        """Bring the index up to date, saying how far it is, and read the steps."""
        self.set_interval(0.3, self._say_progress)
        self.load("index", self.run.refresh, lambda added: self.refresh_run())

    def _say_progress(self) -> None:
        done, whole = self.run.indexed
        if self._reading and whole:
            self.say(f"indexing the debates of the run: {done:,} of {whole:,} steps")

    def refresh_run(self) -> None:
        """Read the figures again."""
        store = self.run.store
        self.load("steps", lambda: ([store.overall(), *store.steps()], store.damage), self._show)

    def _show(self, rows_and_damage: tuple[list[StepRow], list[str]]) -> None:
        rows, damage = rows_and_damage
        self._reading = False
        self.list.show(rows, cursor=self.list.cursor)
        if damage:
            self.say(f"{counted(len(damage), 'damaged place')}: {damage[0]}", error=True)
        else:
            self.say("" if len(rows) > 1 else "no debate yet: the run has just begun, or holds none")
        self.sub_title = f"{rows[0].debates:,} debates in {len(rows) - 1:,} steps"

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """List a step's debates."""
        step = event.item.step
        self.app.push_screen(Debates(self.run, Matches("" if step is None else f"step:{step}")))

    def action_all(self) -> None:
        """List all debates."""
        self.app.push_screen(Debates(self.run))

    def action_filter(self) -> None:
        """List the debates of a filter."""
        self.app.push_screen(Debates(self.run, ask=True))

    def action_replays(self) -> None:
        """List what other schemes would have given."""
        self.app.push_screen(Replays(self.run))
