"""``debate``: the entry point. A user's mistake is one line on stderr and exit code 2."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from debate_rl.commands.errors import (
    INTERRUPTED,
    TERMINATED,
    WRONG,
    Ended,
    one_line,
    refuse_shadows,
    refuse_windows,
)
from debate_rl.commands.eval import evaluate
from debate_rl.commands.export import export
from debate_rl.commands.inspect import inspect
from debate_rl.commands.keys import keys
from debate_rl.commands.play import play
from debate_rl.commands.quickstart import quickstart
from debate_rl.commands.replay import replay
from debate_rl.commands.report import report
from debate_rl.commands.streams import quiet_pipe, take_any_encoding
from debate_rl.commands.tokens import tokens
from debate_rl.commands.train import train

STOPPED = "stopped; a run goes on from its newest checkpoint when the same command is given again"
LOOKING = ("inspect", "replay", "report")
"""Commands that only look at a run: stopped, they leave nothing to continue."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="A mistake in a recipe or file is one line and exit code 2; DEBATE_TRACEBACK=1 shows where.",
)
app.command()(quickstart)
app.command()(train)
app.command("eval")(evaluate)
app.command()(play)
app.command()(export)
app.command()(tokens)
app.command()(replay)
app.command(context_settings={"ignore_unknown_options": True})(inspect)  # a filter may begin with -
app.command()(report)
app.command()(keys)


def _print_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        typer.echo(f"debate {importlib.metadata.version('debate-rl')}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Multi-agent debate reinforcement learning for reasoning models."""


def run() -> None:
    """Run the command line (the ``debate`` script)."""
    # Where a signal ends a round, some of its requests may not have begun.
    warnings.filterwarnings("ignore", r"coroutine '.*' was never awaited", RuntimeWarning)
    warnings.formatwarning = lambda message, *_, **__: f"debate: note: {one_line(message)}\n"
    try:
        refuse_windows(sys.platform)
        refuse_shadows()
        take_any_encoding()
        signal.signal(signal.SIGTERM, _terminate)
        with quiet_pipe():
            app()
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("DEBATE_TRACEBACK"):
            raise
        _end(_mistake(error), WRONG)
    except Ended as ended:
        _end(ended.line, int(str(ended.code)))
    except KeyboardInterrupt:
        _end(_stopped(), INTERRUPTED)
    except SystemExit as ended:  # an interrupted command ends so in typer, without a word
        if ended.code == INTERRUPTED:
            _end(_stopped(), INTERRUPTED)
        raise


def _mistake(error: ValueError | OSError | ImportError) -> str:
    """Return what is wrong in one line; of a filter also the filter, with a caret under the character."""
    if isinstance(error, ValueError):
        from transcripts import FilterError

        if isinstance(error, FilterError):
            return str(error)
    return one_line(error)


def _terminate(*_: object) -> NoReturn:
    raise Ended(_stopped(), TERMINATED)


def _stopped() -> str:
    """Return the last line of a command that was stopped."""
    return "stopped" if sys.argv[1:2] and sys.argv[1] in LOOKING else STOPPED


def _end(line: str, code: int) -> NoReturn:
    with suppress(OSError):  # nobody reads it
        print(f"debate: {line}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    run()
