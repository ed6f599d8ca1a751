"""The runs of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.widget import Widget

from inspector.runs import FoundRun, find_runs
from inspector.terminal.columns import Cell, Column
from inspector.terminal.face import Face
from inspector.terminal.listing import Listing
from inspector.terminal.opened import Opened
from inspector.terminal.style import FAINT, RIGHT
from learner.formatting import one_line

if TYPE_CHECKING:
    from inspector.terminal.app import Inspector

COLUMNS = (
    Column("run", 20, left=True, rest=True),
    Column("steps", 7),
    Column("debates", 10),
    Column("", 10, left=True),
)


class RunList(Listing[FoundRun]):
    """One row a run."""

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, id=id)

    def cells(self, item: FoundRun) -> Sequence[Cell]:
        """Return a run's cells."""
        debates = "?" if item.debates is None else f"{item.debates:,}"
        going = ("going on", RIGHT) if item.writing else ("", FAINT)
        return (one_line(item.name), f"{item.steps:,}", debates, going)


class Runs(Face):
    """The runs found at a path."""

    keys = "Enter open  ? help  q quit"

    def __init__(self, path: Path, runs: Sequence[FoundRun]) -> None:
        super().__init__()
        self._path, self._runs = path, runs

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
        enter = cast("Inspector", self.app).enter
        self.load("open", lambda: Opened.of(run.path, run.name), enter)
