"""Arguments and options that several commands take, and how their values are read and checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from debate.types import TurnId


def writable(option: typer.CallbackParam, name: str | None) -> str | None:
    """Return the name of a file that an option is to write.

    ValueError where it cannot be written, before the minutes of work whose figures it would hold.
    """
    if name is None:
        return None
    file = Path(name)
    fits = "\0" not in name and file.parent.is_dir() and not file.is_dir()
    if not fits or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ValueError(f"{option.opts[0]} {name}: cannot be written; name a file in a folder that exists")
    return name


RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Set a key of the recipe, e.g. learner.lr=1e-5; KEY=none takes a setting away. "
        "`debate keys` lists all keys.",
    ),
]
FilterOption = Annotated[
    str,
    typer.Option(
        "--filter", metavar="FILTER", help="Only debates that match, e.g. winner:wrong (docs/transcripts.md)."
    ),
]
JsonFile = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", callback=writable, help="Also write the figures to this file."),
]


MemoryOption = Annotated[
    float | None, typer.Option("--memory", metavar="GIB", help="With --plan: for a GPU with so much memory.")
]


def check_memory(memory: float | None, *, plan: bool) -> None:
    """ValueError for a GPU's memory that cannot be, or without a plan that is for it."""
    if memory is not None and not (plan and 0 < memory < 1 << 30):
        raise ValueError(
            f"--memory {memory:g}: is the GiB of a GPU that --plan is for, as in --plan --memory 80"
        )


def turn_of(text: str) -> TurnId:
    """Return the turn that --turn names; ValueError where it names none.

    >>> turn_of("2.1")
    TurnId(agent=2, round=1)
    """
    from debate.types import TurnId

    agent, _, round_ = text.partition(".")
    if not all(part.isdecimal() and len(part) < 10 for part in (agent, round_)):
        raise ValueError(f"--turn {text!r}: write AGENT.ROUND, both from 0, the final ballot last")
    return TurnId(int(agent), int(round_))
