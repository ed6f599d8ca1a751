"""Options and arguments that commands share, checks of their values, and help pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand

from debate.types import Kind
from debate_rl.commands.console import STDOUT_NAME, Ended
from debate_rl.training.stops import Stopped


def writable(option: typer.CallbackParam, name: str | None) -> str | None:
    """Return the file name of an output option. Raise ValueError if the file cannot be written."""
    if name is None or name == STDOUT_NAME:
        return name
    file = Path(name)
    fits = "\0" not in name and file.parent.is_dir() and not file.is_dir()
    if not fits or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ValueError(f"{option.opts[0]} {name}: cannot be written; name a file in a folder that exists")
    return name


def positive(option: typer.CallbackParam, value: int | None) -> int | None:
    """Return the value of an option. Raise ValueError if it is below 1."""
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
    typer.Argument(metavar="RECIPE|RUN", help="A shipped recipe, a TOML file, or the folder of a run."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Set a key of the recipe, e.g. learner.lr=1e-5; KEY=none restores the default. "
        "`debate keys` lists all keys.",
    ),
]
FilterOption = Annotated[
    str,
    typer.Option(
        "--filter",
        metavar="FILTER",
        help="Use only debates that match, e.g. winner:wrong (docs/transcripts.md).",
    ),
]
JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", callback=writable, help="Also write the figures as JSON; - is stdout."
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
    str | None, typer.Option("--out", metavar="FOLDER", help="Store replies and figures in this folder.")
]
OnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="NAME[=FILE]",
        help="Evaluate on this data set instead of held_out's; with --suite, only on this set of the suite. "
        "May be repeated.",
    ),
]
ProblemsOption = Annotated[
    int | None,
    typer.Option("--problems", min=1, help="Use at most N problems; default: held_out.limit, or all."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of all sampling.")]
StepsOption = Annotated[
    str, typer.Option("--steps", metavar="A..B", help="Use only these training steps, counted from 0.")
]
KindOption = Annotated[
    Kind | None,
    typer.Option(
        "--kind", help="How to compare answers; default: as set in the file, or else as mathematics."
    ),
]
WeightsOption = Annotated[
    str, typer.Option("--weights", help="Weights of a run: newest, best, start, or the step of a checkpoint.")
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="RUN|RECIPE|JUDGE",
        help="The model that compares solutions; JUDGE is a folder from debate export --judge. Default: the "
        "model that solves the problems.",
    ),
]


def named_and_set(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words into names and KEY=VALUE settings."""
    return [word for word in words if "=" not in word], [word for word in words if "=" in word]


def limited(problems: int | None) -> list[str]:
    """Return the override that --problems stands for."""
    return [] if problems is None else [f"held_out.limit={problems}"]


def listed(text: str) -> list[str]:
    """Return the items of a list A,B."""
    return [part.strip() for part in text.split(",") if part.strip()]


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
        raise ValueError(f"--steps {text!r}: write A, A.., ..B or A..B with A <= B, counted from 0")
    return low, high


class Command(TyperCommand):
    """A command whose help page shows types such as FILE, N and TEXT, and no type for flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, with their types as the help page shows them."""
        params = super().get_params(ctx)
        for param in params:
            param.display_type_rich = partial(_kind, param)  # type: ignore[attr-defined]
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raise ValueError for a key of a recipe that begins with dashes."""
        if any("KEY=" in (param.metavar or "") for param in self.params):
            _refuse_dashes(args, known={name for param in self.params for name in param.opts})
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Turn a stop by a signal into ``Ended``, with its last line and exit code."""
        try:
            return super().invoke(ctx)
        except Stopped as stop:
            raise Ended(str(stop), stop.exit_code) from stop


def as_command(
    function: Callable[..., None], examples: Sequence[str], kind: type[Command] = Command, **context: Any
) -> Any:
    """Return the command of a function. Its help page ends with the examples."""
    commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    settings = {"help_option_names": ["-h", "--help"], **context}
    commands.command(cls=kind, epilog=example_lines(examples), context_settings=settings)(function)
    return typer.main.get_command(commands)


def example_lines(lines: Sequence[str]) -> str | None:
    """Return the end of a help page with one example per line. None if there are no examples."""
    head = "Examples:" if len(lines) > 1 else "Example:"
    return "\n\n".join((head, *(f"debate {line}" for line in lines))) if lines else None


def _kind(param: Any, ctx: Any) -> str | None:
    """Return the type that the help page shows after an option. None for a flag or an argument."""
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
            raise ValueError(f"{word}: keys of a recipe have no dashes; write {key}={value or 'VALUE'}")
