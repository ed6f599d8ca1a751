"""What a replay shows on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from learner.formatting import fixed, percent

if TYPE_CHECKING:
    from learner.replay import Summary
    from learner.replay.summary import Tally

CAPTION = (
    "flipped: share that changed sign; gained, lost: share that had, or has, none or 0; "
    "moved: mean |new - old|; peer and truth are the parts of generator"
)


def show(console: Console, run: str, summary: Summary, *, damage: int, only_check: bool) -> None:
    """Print the check, then the tables, then the debates to open."""
    plain = Console(markup=False, highlight=False, soft_wrap=True)
    for line in check_lines(run, summary, damage):
        plain.print(line)
    if only_check or not summary.debates:
        return
    plain.print(f"{summary.changed} of {summary.debates} debates have other advantages.")
    console.print(_table("by stream", ("stream",), summary))
    console.print(_table("by stream and persona", ("stream", "persona"), summary))
    console.print(_table("by stream and round, from 0", ("stream", "round"), summary, caption=CAPTION))
    if summary.most_changed:
        named = ", ".join(f"{id} ({change:.3g})" for id, change in summary.most_changed)
        plain.print(f"These change most (sum of |new - old|): {named}")


def check_lines(run: str, summary: Summary, damage: int) -> list[str]:
    """Return what there is to say of stored and recomputed numbers."""
    lines = [f"{run}: {damage} lines cannot be read; their groups lack a debate"] if damage else []
    if not summary.debates:
        return [*lines, f"{run}: no debates are found"]
    if not summary.checked:
        return [*lines, f"{run}: no rewards are stored to check against"]
    if not summary.differ:
        same = f"stored = recomputed under the run's own scheme: all of {summary.checked} debates"
        return [*lines, same]
    named = ", ".join(summary.differing) + (", ..." if summary.differ > len(summary.differing) else "")
    differ = (
        f"stored and recomputed under the run's own scheme differ in {summary.differ} of {summary.checked}"
    )
    return [*lines, f"{differ} debates: {named}"]


def _table(title: str, parts: tuple[str, ...], summary: Summary, caption: str | None = None) -> Table:
    table = Table(title=Text(title), caption=caption)
    for part in parts:
        table.add_column(part)
    for column in ("turns", "flipped", "gained", "lost", "mean old", "mean new", "moved"):
        table.add_column(column, justify="right")
    for key, tally in summary.by(*parts).items():
        table.add_row(*(Text(str(part)) for part in key), str(tally.turns), *_figures(tally))
    return table


def _figures(tally: Tally) -> list[str]:
    figures = tally.figures()
    shares = [percent(figures[name]) for name in ("flipped", "gained", "lost")]
    return [*shares, *(fixed(figures[name], "+.3f") for name in ("old", "new")), fixed(figures["moved"])]
