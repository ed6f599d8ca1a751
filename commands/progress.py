"""The bar of a command that reads a run."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def progress_bar() -> Progress:
    """Return a bar on stderr, where that is a terminal; its names are no markup."""
    console = Console(stderr=True)
    name = TextColumn("{task.description}", markup=False)
    columns = name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
