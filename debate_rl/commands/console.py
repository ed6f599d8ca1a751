"""How commands print: lines as they are, tables as wide as they need, a bar, figures as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress


def plain_console(*, stderr: bool = False) -> Console:
    """Return what prints text as it is: no markup, no colour, no line broken."""
    return Console(stderr=stderr, markup=False, highlight=False, soft_wrap=True)


def wide_console(width: int) -> Console:
    """Return what prints tables: as wide as the terminal, or into a pipe as wide as is asked for."""
    console = Console()
    return console if console.is_terminal else Console(width=max(80, width))


def progress_bar(*, transient: bool = True) -> Progress:
    """Return a bar on stderr, where that is a terminal; its names are not read as markup."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    name = TextColumn("{task.description}", markup=False)
    columns = name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)


def write_json(file: str | Path, figures: object) -> None:
    """Replace a file by the figures as JSON."""
    import json

    Path(file).write_text(json.dumps(figures, indent=1, allow_nan=False) + "\n", encoding="utf-8")
