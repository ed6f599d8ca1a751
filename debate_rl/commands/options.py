"""Shared options and arguments of commands, checks of their values, and help pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand

from debate.types import Kind, TurnId
from debate_rl.commands.console import STDOUT_NAME, Ended
from debate_rl.training.stops import Stopped


def writable(option: typer.CallbackParam, name: str | None) -> str | None:
    """Return the file name of an output option. ValueError, before any work, if it cannot be written."""
    if name is None or name == STDOUT_NAME:
        return name
    file = Path(name)
    fits = "\0" not in name and file.parent.is_dir() and not file.is_dir()
    if not fits or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ValueError(f"{option.opts[0]} {name}: cannot be written; name a file in a folder that exists")
    return name


def positive(option: typer.CallbackParam, value: int | None) -> int | None:
    """Return an option's number. ValueError if it is below 1."""
    if value is not None and value < 1:
        raise ValueError(f"{option.opts[0]} {value}: must be at least 1")
    return value


def _table_file(option: typer.CallbackParam, name: str | None) -> str | None:
    if name is not None and Path(name).suffix not in (".md", ".tex"):
        raise ValueError(f"--table {name}: the name must end in .md or .tex")
    return writable(option, name)


RunFolder = Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run.")]
RecipeOrRun = Annotated[
    str,
    typer.Argument(metavar="RECIPE|RUN", help="A recipe (shipped, or a TOML file), or the folder of a run."),
]
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
    typer.Option(
        "--json", metavar="FILE", callback=writable, help="Also write the figures to this file; - is stdout."
    ),
]
TableFile = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="FILE",
        callback=_table_file,
        help="Also write the tables to an .md or .tex file.",
    ),
]
OutFolder = Annotated[
    str | None, typer.Option("--out", metavar="FOLDER", help="Keep replies and figures in this folder.")
]
OnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="NAME[=FILE]",
        help="Use this data set instead of held_out's, or this set of the suite. May be repeated.",
    ),
]
ProblemsOption = Annotated[
    int | None,
    typer.Option("--problems", min=1, help="At most N problems; default: held_out.limit, or all."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of all sampling.")]
StepsOption = Annotated[
    str, typer.Option("--steps", metavar="A..B", help="Only these steps of training, counted from 0.")
]
KindOption = Annotated[
    Kind | None,
    typer.Option("--kind", help="How answers are compared; default: as the file says, else as mathematics."),
]
WeightsOption = Annotated[
    str, typer.Option("--weights", help="Of a run: newest, best, start, or the step of a checkpoint.")
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="RUN|RECIPE|JUDGE",
        help="The model that compares solutions; JUDGE: a folder by debate export --judge; default: itself.",
    ),
]


def named_and_set(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words into names and KEY=VALUE settings."""
    return [word for word in words if "=" not in word], [word for word in words if "=" in word]


def limited(problems: int | None) -> list[str]:
    """Return the setting that --problems stands for."""
    return [] if problems is None else [f"held_out.limit={problems}"]


def listed(text: str) -> list[str]:
    """Return the parts of a list A,B."""
    return [part.strip() for part in text.split(",") if part.strip()]


def turn_of(text: str) -> TurnId:
    """Return the turn of --turn. ValueError if it is not a turn.

    >>> turn_of("2.1")
    TurnId(agent=2, round=1)
    """
    agent, _, round_ = text.partition(".")
    if not all(part.isdecimal() and len(part) < 10 for part in (agent, round_)):
        raise ValueError(f"--turn {text!r}: write AGENT.ROUND, both from 0, the final ballot last")
    return TurnId(int(agent), int(round_))


def steps_of(text: str) -> tuple[int, int | None]:
    """Return the first and last step of A..B, A.., ..B or A. None means the run's last step.

    >>> steps_of("3..5"), steps_of("3.."), steps_of("..5"), steps_of("4"), steps_of("")
    ((3, 5), (3, None), (0, 5), (4, 4), (0, None))
    """
    if not text:
        return 0, None
    first, dots, last = text.partition("..")
    ends = (first, last) if dots else (first, first)
    good = all(end == "" or (end.isdecimal() and len(end) <= 11) for end in ends) and any(ends)
    low, high = (int(ends[0] or 0), int(ends[1]) if ends[1] else None) if good else (1, 0)
    if high is not None and high < low:
        raise ValueError(f"--steps {text!r}: write A..B with A no greater than B, A.., ..B or A, from 0")
    return low, high


class Command(TyperCommand):
    """A command whose help page names types in plain words: FILE, N, TEXT, and none for a switch."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, each with the name of its type on the help page."""
        params = super().get_params(ctx)
        for param in params:
            param.display_type_rich = partial(_kind, param)  # type: ignore[attr-defined]
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words. ValueError for a recipe's key with dashes before it."""
        if any("KEY=" in (param.metavar or "") for param in self.params):
            _refuse_dashes(args, known={name for param in self.params for name in param.opts})
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. If a signal stops it, print its last line."""
        try:
            return super().invoke(ctx)
        except Stopped as stop:
            raise Ended(str(stop), stop.exit_code) from stop


def as_command(
    function: Callable[..., None], examples: Sequence[str], kind: type[Command] = Command, **context: Any
) -> Any:
    """Return a function as a command whose help page ends with examples."""
    commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    settings = {"help_option_names": ["-h", "--help"], **context}
    commands.command(cls=kind, epilog=example_lines(examples), context_settings=settings)(function)
    return typer.main.get_command(commands)


def example_lines(lines: Sequence[str]) -> str | None:
    """Return the end of a help page: examples, one per line."""
    head = "Examples:" if len(lines) > 1 else "Example:"
    return "\n\n".join((head, *(f"debate {line}" for line in lines))) if lines else None


def _kind(param: Any, ctx: Any) -> str | None:
    """Return the type that the help page shows after an option. None for a switch and for an argument."""
    if param.param_type_name == "argument" or param.is_flag:
        return None
    if param.metavar is not None:
        return str(param.metavar)
    plain = str(param.display_type(ctx)).strip("<>")
    return plain if "|" in plain else {"int": "N", "float": "X"}.get(plain.split()[0], "TEXT")


def _refuse_dashes(words: Sequence[str], known: set[str]) -> None:
    """Raise ValueError for ``--KEY=VALUE`` or ``--KEY VALUE`` if KEY is a recipe's key.

    >>> _refuse_dashes(["RECIPE", "--plan", "--unknown=1"], known={"--plan"})
    """
    from debate_rl.config import Config
    from debate_rl.config.keys import key_type

    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word == "--":
            return
        key = name.removeprefix("--")
        if word.startswith("--") and name not in known and key_type(Config, key.split(".")) is not None:
            value = value if equals else " ".join(words[number + 1 : number + 2])
            raise ValueError(f"{word}: a key of a recipe has no dashes; write {key}={value or 'VALUE'}")
