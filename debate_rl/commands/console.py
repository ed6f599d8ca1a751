"""Output of commands: lines, tables, progress bars, JSON and errors, in any encoding."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from debate_rl.formatting import interval, printable, share, signed_share

if TYPE_CHECKING:
    from rich.progress import Progress

    from debate_rl.metrics.intervals import Estimate

Lines: TypeAlias = Sequence[Sequence[str]]
"""The rows of a table, starting with the header."""


NARROW: Mapping[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}
"""Settings of rich for a table with many columns."""

NO_GO, WRONG, INTERRUPTED, TERMINATED = 1, 2, 130, 143
"""Exit codes for an alarm or a failed doctor, a user error, SIGINT and SIGTERM (128 + signal number)."""
LONGEST = 2000
"""Maximum length of an error line in characters."""
HOME = Path(__file__).parents[2]
"""The folder that contains the packages of debate-rl."""
PACKAGES = ("debate", "envs", "rewards", "learner", "transcripts")
EXTRAS: dict[str, str] = dict.fromkeys(("torch", "transformers", "peft", "safetensors"), "train")
EXTRAS |= {"pyarrow": "train", "httpx": "openai", "vllm": "vllm", "bitsandbytes": "quantize"}
EXTRAS |= {"tinker": "tinker"}
EXTRAS |= dict.fromkeys(("jinja2", "starlette", "textual", "uvicorn"), "inspect") | {"matplotlib": "report"}
STDOUT_NAME = "-"
"""The file name that means standard output."""
STDOUT = "standard output"
PIPE_CLOSED = 141
"""Exit code after the reader of the output closed the pipe (128 + SIGPIPE)."""


class PlainConsole(Console):
    """Prints text unchanged: without markup, colour, wrapping, or terminal control sequences."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print strings with unprintable characters replaced, and other objects as rich prints them."""
        super().print(*(printed(one) if isinstance(one, str) else one for one in objects), **settings)


def printed(text: str) -> str:
    """Return a text with a visible sign in place of each unprintable character."""
    return "\n".join(map(printable, text.split("\n")))


def plain_console(*, stderr: bool = False, quiet: bool = False) -> PlainConsole:
    """Return a console for plain text, which prints nothing if ``quiet``."""
    return PlainConsole(stderr=stderr, quiet=quiet, markup=False, highlight=False, soft_wrap=True)


def wide_console(width: int) -> Console:
    """Return a console for tables, as wide as the terminal or, in a pipe, as wide as needed."""
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
    """Return a table of texts without markup.

    ``align``: l or r for each column; the last letter also applies to all further columns.
    ``settings``: those of rich's Table.
    """
    table = Table(**settings)
    for index, head in enumerate(heads):
        justify: Literal["left", "right"] = "left" if align[min(index, len(align) - 1)] == "l" else "right"
        table.add_column(Text(printed(head)), justify=justify, no_wrap=no_wrap)
    for row in rows:
        table.add_row(*(Text(printed(cell)) for cell in row))
    return table


def print_table(lines: Lines, title: str | None = None, *, fixed: int = 1, align: str = "") -> None:
    """Print a table whose first row is the header. If the terminal is too narrow, print it in parts.

    ``fixed``: the number of leading columns that every part repeats. ``align``: as for ``text_table``.
    """
    width = max(len(title or ""), sum(map(max, _widths(lines))) + 1)
    console = wide_console(width)
    for heads, *rows in _parts(lines, console.width, fixed):
        style = {"title": title and Text(one_line(title)), "title_justify": "left"}
        console.print(text_table(heads, rows, align=align or "l" * fixed + "r", no_wrap=True, **style))


def _widths(lines: Lines) -> list[list[int]]:
    """Return the width of each column, including its frame, for every cell."""
    return [[len(cell) + 3 for cell in column] for column in zip(*lines, strict=True)]


def _parts(lines: Lines, width: int, fixed: int) -> Iterator[Lines]:
    """Yield the parts of a table that fit the width, each with the first ``fixed`` columns.

    >>> [part[0] for part in _parts([["", "one", "two"], ["a", "1", "2"]], 14, fixed=1)]
    [['', 'one'], ['', 'two']]
    """
    widths = [max(column) for column in _widths(lines)]
    columns: list[int] = []
    room = width - sum(widths[:fixed]) - 1
    for index in range(fixed, len(widths)):
        if columns and sum(widths[at] for at in columns) + widths[index] > room:
            yield [[*line[:fixed], *(line[at] for at in columns)] for line in lines]
            columns = []
        columns.append(index)
    yield [[*line[:fixed], *(line[at] for at in columns)] for line in lines]


def with_interval(estimate: Estimate, *, signed: bool = False, none: str = "") -> str:
    """Return a rate, or if ``signed`` a difference of rates, with its interval.

    ``none`` replaces the bounds of an interval that is unknown or infinite.
    """
    write, least = (signed_share, -1.0) if signed else (share, 0.0)
    bounds = interval(max(least, estimate.low), min(1.0, estimate.high), write, none=none)
    return f"{write(estimate.value)} ({bounds})" if bounds else write(estimate.value)


def progress_bar() -> Progress:
    """Return a progress bar on stderr. It appears only in a terminal and disappears at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    name = TextColumn("{task.description}", markup=False)
    columns = name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    shown = {"transient": True, "disable": not console.is_terminal, "speed_estimate_period": 3600.0}
    return Progress(*columns, console=console, **shown)


def write_json(file: str | Path, figures: object) -> None:
    """Write the figures as JSON to a file, or to standard output if the name is "-"."""
    from debate.files import write_text

    text = json.dumps(figures, indent=1, allow_nan=False) + "\n"
    if str(file) == STDOUT_NAME:
        sys.stdout.write(text)
    else:
        write_text(file, text)


class Ended(SystemExit):
    """The early end of a command, such as by a signal. ``line``: its last output. ``code``: its exit code."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(code)
        self.line = line


def one_line(error: BaseException | str) -> str:
    r"""Return an error or a warning as one line of printable text.

    >>> one_line(ValueError("lr: must be positive,\n  got \x1b[2J-1"))
    'lr: must be positive, got �[2J-1'
    >>> one_line(FileNotFoundError(2, "No such file or directory", "train.jsonl"))
    'train.jsonl: No such file or directory'
    """
    text = " ".join(_text_of(error).split()) or type(error).__name__
    if len(text) > LONGEST:  # it quotes a value from a file
        text = f"{text[: LONGEST - 100]} ... {text[-80:]}"
    return "".join(c if c.isprintable() else "�" for c in text)  # imports nothing: a package may be missing


def _text_of(error: BaseException | str) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] in EXTRAS:
        from debate.settings import install_hint

        package = error.name.partition(".")[0]
        return f"the package {package!r} is not installed: {install_hint(EXTRAS[package])}"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def refuse_windows(platform: str) -> None:
    """Raise ImportError on Windows, because run folders and grading need POSIX.

    >>> refuse_windows("linux")
    """
    if platform == "win32":
        raise ImportError("debate-rl runs on Linux and macOS; on Windows, use it inside WSL 2")


def refuse_torchrun(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raise ValueError if torchrun started several processes of a command that needs one.

    WORLD_SIZE alone does not decide, because other launchers set it too.

    >>> refuse_torchrun(["train", "RECIPE"], {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "6"})
    >>> refuse_torchrun(["eval", "RUN"], {"WORLD_SIZE": "6"})
    """
    processes = environment.get("WORLD_SIZE", "1") if "TORCHELASTIC_RUN_ID" in environment else "1"
    if processes != "1" and words[:1] != ["train"]:
        raise ValueError(
            f"torchrun: only debate train can run as {processes} processes; start this command "
            f"without torchrun"
        )


def refuse_shadows(home: Path = HOME) -> None:
    """Raise ImportError if another folder or file hides a package of debate-rl."""
    for name in PACKAGES:
        spec = find_spec(name)
        file = Path(spec.origin).resolve() if spec and spec.origin else None
        if file is None:
            raise ImportError(
                f"the package {name!r} is missing next to {home / 'debate_rl'}; install debate-rl again"
            )
        if file != (home / name / "__init__.py").resolve():
            owner = file.parent if file.name == "__init__.py" else file
            raise ImportError(
                f"{owner} hides debate-rl's own package {name!r}; rename it, "
                "or remove its folder from PYTHONPATH and run from another folder"
            )


def take_any_encoding() -> None:
    """Print characters outside the encoding as escapes, and discard output to closed streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def progress_of(folder: str | Path) -> Iterator[Callable[..., None]]:
    """Yield a function that shows progress: a bar with the remaining time in a terminal, lines in a pipe.

    Its arguments are those of ``Tell``; the last one, the amount of work done, is optional.
    """
    from debate_rl.metrics.progress import parts_shown

    counts: dict[str, str] = {}
    try:
        with parts_shown("auto", plain_console(stderr=True), head=f"{folder}: ", keep=True) as parts:

            def tell(part: str, done: int, total: int, work: float | None = None) -> None:
                counts[part] = f"{part} {done}/{total}"
                parts.advance(part, done if work is None else work, total)

            yield tell
    except (KeyboardInterrupt, Ended) as stop:
        kept = ", ".join(counts.values()) or "nothing yet"
        line = f"stopped; {folder} keeps {kept}; the same command resumes"
        raise Ended(line, int(stop.code or 0) if isinstance(stop, Ended) else INTERRUPTED) from stop


@contextmanager
def quiet_pipe() -> Generator[None]:
    """Exit silently if the reader of the output has closed the pipe, as with ``| head``.

    Raise OSError for any other error of standard output, such as a full disk.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _end_if_unread()
        raise
    except OSError as error:
        from debate.files import name_error  # loads pydantic, which help pages do not need

        name_error(error, STDOUT)  # errors of other files already have a name
        if error.filename == STDOUT:
            _to_nowhere(sys.stdout)
        raise
    except SystemExit as ended:  # typer and rich raise this after a broken pipe
        if isinstance(ended.__context__, BrokenPipeError):
            _end_if_unread()
        raise


def _end_if_unread() -> None:
    if unread := [stream for stream in (sys.stdout, sys.stderr) if _is_unread(stream)]:
        _to_nowhere(*unread)
        raise SystemExit(PIPE_CLOSED) from None


def _is_unread(stream: TextIO) -> bool:
    """Return True if the reader has closed the pipe, or if rich has replaced the pipe by /dev/null."""
    try:
        fd = stream.fileno()
    except OSError:  # the stream is not a file, as in a notebook
        return False
    watch = select.poll()
    watch.register(fd, 0)
    gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
    return gone or os.path.samestat(os.fstat(fd), os.stat(os.devnull))


def _to_nowhere(*streams: TextIO) -> None:
    """Discard buffered output, so that Python reports no error at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
