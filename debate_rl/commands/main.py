"""``debate``: the entry point. A user's mistake is one line on stderr and exit code 2."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Annotated, NoReturn

import typer

from debate_rl.commands.chat import chat
from debate_rl.commands.doctor import doctor
from debate_rl.commands.errors import (
    INTERRUPTED,
    TERMINATED,
    WRONG,
    Ended,
    one_line,
    refuse_shadows,
    refuse_torchrun,
    refuse_windows,
)
from debate_rl.commands.eval import evaluate
from debate_rl.commands.export import export
from debate_rl.commands.helping import HELP, Command, Group, InspectCommand, examples
from debate_rl.commands.inspect import inspect
from debate_rl.commands.keys import keys
from debate_rl.commands.ladder import ladder
from debate_rl.commands.passrate import passrate
from debate_rl.commands.play import play
from debate_rl.commands.prompts import prompts
from debate_rl.commands.quickstart import quickstart
from debate_rl.commands.regrade import regrade
from debate_rl.commands.replay import replay
from debate_rl.commands.report import report
from debate_rl.commands.run import run_recipe
from debate_rl.commands.sandbox import sandbox
from debate_rl.commands.sft import sft
from debate_rl.commands.solve import solve
from debate_rl.commands.streams import quiet_pipe, take_any_encoding
from debate_rl.commands.sweep import sweep
from debate_rl.commands.tokens import tokens
from debate_rl.commands.traces import traces
from debate_rl.commands.train import train
from debate_rl.training.stops import raise_from_signal

STOPPED = "stopped; the same command resumes a run from its newest checkpoint"
LOOKING = ("doctor", "inspect", "regrade", "replay", "report", "sandbox")
"""Commands that only look at a run: stopped, they leave nothing to continue."""

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings=HELP,
    epilog="debate COMMAND --help has examples. A mistake in a recipe or file is one line and exit code 2; "
    "DEBATE_TRACEBACK=1 shows where.",
)
COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "quickstart": (quickstart, ("quickstart", "quickstart --family words --seed 1")),
    "doctor": (doctor, ("doctor gsm8k_smoke --quick", "doctor runs/mine --problems 100 --json")),
    "train": (
        train,
        (
            "train gsm8k_smoke run.dir=runs/mine",
            "train runs/mine",
            "train gsm8k_qwen3_8b_1gpu --plan --memory 80",
        ),
    ),
    "run": (run_recipe, ("run aimo3/tiny", "run aimo3/full --plan --memory 80", "run aimo3/full stage=cot")),
    "sweep": (
        sweep,
        (
            "sweep quickstart learner.lr=1e-4,3e-4 seeds=5",
            "sweep math_features at_once=2 --table features.md",
        ),
    ),
    "traces": (
        traces,
        (
            "traces runs/mine --samples 4 --out traces/mine.jsonl",
            "traces runs/one runs/two --winners --out traces/winners.jsonl",
            "traces traces/mine.jsonl traces/winners.jsonl --per-problem 2 --out traces/all.jsonl",
        ),
    ),
    "sft": (sft, ("sft sft/tiny", "sft runs/sft-tiny", "sft sft/tiny sft.epochs=3 learner.lr=1e-4")),
    "eval": (evaluate, ("eval runs/mine --weights all", "eval runs/mine --on gsm8k --on svamp --table t.md")),
    "ladder": (
        ladder,
        (
            "ladder runs/mine",
            "ladder gsm8k_smoke --on gsm8k --problems 200 --rungs majority,self_correction,debate_winner",
        ),
    ),
    "prompts": (
        prompts,
        ("prompts rlvr/tiny", "prompts gsm8k_qwen3_8b_1gpu debate.prompts=boxed --suite math"),
    ),
    "passrate": (
        passrate,
        ("passrate gsm8k_qwen3_8b_1gpu --samples 8", "passrate runs/mine --weights best --out rates.jsonl"),
    ),
    "play": (play, ('play runs/mine "What is 3 + 4?" --answer 7',)),
    "solve": (
        solve,
        (
            'solve runs/mine "What is 3 + 4?"',
            "solve runs/mine problems.jsonl --strategy swiss --hours 5 --out answers.jsonl",
            "solve runs/mine - --strategy greedy",
        ),
    ),
    "chat": (chat, ("chat runs/mine", "chat runs/mine --temperature 0 --max-tokens 64")),
    "export": (export, ("export runs/mine --out weights", "export runs/mine --judge --out judge")),
    "tokens": (tokens, ("tokens runs/mine 12.3 --turn 1.0",)),
    "replay": (replay, ("replay runs/mine rewards.truth_weight=0.3",)),
    "regrade": (
        regrade,
        ("regrade runs/mine --modes boxed,math_verify", r"regrade runs/mine --clip 'Question:,Q:,\n\n\n'"),
    ),
    "inspect": (
        inspect,
        (
            "inspect runs/mine",
            "inspect runs/mine ls winner:wrong",
            "inspect runs/mine --web",
            "inspect ls --help",
        ),
    ),
    "sandbox": (sandbox, ("sandbox program.py", "sandbox one.py two.py --session --seconds 5")),
    "report": (report, ("report runs/mine", "report runs/one runs/two --out compared")),
    "keys": (keys, ("keys learner", "keys temperature")),
}
"""Every command with what can be typed."""
for _name, (_function, _lines) in COMMANDS.items():
    _inspects = _name == "inspect"
    app.command(
        _name,
        cls=InspectCommand if _inspects else Command,
        epilog=examples(*_lines),
        context_settings={**HELP, "ignore_unknown_options": _inspects},  # a filter may begin with -
    )(_function)


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


def run(commands: typer.Typer | None = None, name: str = "debate") -> None:
    """Run a command line: the ``debate`` script unless others are given."""
    # Where a signal ends a round, some of its requests may not have begun.
    warnings.filterwarnings("ignore", r"coroutine '.*' was never awaited", RuntimeWarning)
    warnings.formatwarning = lambda message, *_, **__: f"debate: note: {one_line(message)}\n"
    try:
        refuse_windows(sys.platform)
        refuse_shadows()
        refuse_torchrun(sys.argv[1:], os.environ)
        take_any_encoding()
        signal.signal(signal.SIGTERM, _terminate)
        with quiet_pipe():
            (commands or app)(prog_name=name)
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


def run_alone(command: Callable[..., None], name: str) -> None:
    """Run one function as a command line of its own, such as an experiment, with the errors of ``debate``."""
    commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=HELP)
    commands.command(cls=Command, context_settings=HELP)(command)
    run(commands, name)


def _mistake(error: ValueError | OSError | ImportError) -> str:
    """Return what is wrong in one line; of a filter also the filter, with a caret under the character."""
    if isinstance(error, ValueError):
        from transcripts import FilterError

        if isinstance(error, FilterError):
            return str(error)
    return one_line(error)


def _terminate(_signum: int, frame: FrameType | None) -> None:
    def stop() -> NoReturn:
        raise Ended(_stopped(), TERMINATED)

    raise_from_signal(frame, stop)


def _stopped() -> str:
    """Return the last line of a command that was stopped."""
    return "stopped" if sys.argv[1:2] and sys.argv[1] in LOOKING else STOPPED


def _end(line: str, code: int) -> NoReturn:
    if os.environ.get("RANK", "0") == "0":  # of torchrun's processes the first speaks for all
        with suppress(OSError):  # nobody reads it
            print(f"debate: {line}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    run()
