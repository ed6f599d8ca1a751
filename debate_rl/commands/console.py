"""How commands print: lines as they are, tables as wide as they need, a bar, figures as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from debate_rl.formatting import printable

if TYPE_CHECKING:
    from rich.progress import Progress


MEMORY_S = 3600.0
"""How far back a bar looks for the time that is left: rich's 30 s know none of units that take as long."""
NARROW: Mapping[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
"""How a table of many columns fits a terminal."""


class PlainConsole(Console):
    """Prints text as it is: no markup, no colour, no line broken, and no terminal control sequence."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print texts with what cannot be printed in them marked, and anything else as rich does."""
        super().print(*(printed(one) if isinstance(one, str) else one for one in objects), **settings)


def printed(text: str) -> str:
    """Return a text as its lines may be printed: what cannot be seen in them is marked."""
    return "\n".join(map(printable, text.split("\n")))


def plain_console(*, stderr: bool = False, quiet: bool = False) -> PlainConsole:
    """Return what prints plain text, nothing if it is ``quiet``."""
    return PlainConsole(stderr=stderr, quiet=quiet, markup=False, highlight=False, soft_wrap=True)


def wide_console(width: int) -> Console:
    """Return what prints tables: as wide as the terminal, or into a pipe as wide as is asked for."""
    console = Console()
    return console if console.is_terminal else Console(width=max(80, width))


def text_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    align: str = "lr",
    no_wrap: bool = False,
    **settings: Any,
) -> Table:
    """Return a table of texts, none of which is read as markup; ``settings`` are those of rich's Table.

    ``align``: l or r for each column; its last letter also serves all columns behind.
    """
    table = Table(**settings)
    for index, head in enumerate(heads):
        justify: Literal["left", "right"] = "left" if align[min(index, len(align) - 1)] == "l" else "right"
        table.add_column(Text(printed(head)), justify=justify, no_wrap=no_wrap)
    for row in rows:
        table.add_row(*(Text(printed(cell)) for cell in row))
    return table


def progress_bar() -> Progress:
    """Return a bar on stderr, where that is a terminal, until it is done; names are not read as markup."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    name = TextColumn("{task.description}", markup=False)
    columns = name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    shown = {"transient": True, "disable": not console.is_terminal, "speed_estimate_period": MEMORY_S}
    return Progress(*columns, console=console, **shown)


def write_json(file: str | Path, figures: object) -> None:
    """Replace a file by the figures as JSON."""
    import json

    from debate.files import write_text

    write_text(file, json.dumps(figures, indent=1, allow_nan=False) + "\n")
