"""``debate``: the entry point. A user's mistake is one line on stderr and exit code 2."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Multi-agent debate reinforcement learning for reasoning models.",
)

Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="e.g. learner.lr=1e-5")]


@app.command()
def quickstart(
    family: Annotated[str, typer.Option(help="Synthetic family: pair_sum or words.")] = "pair_sum",
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the figures here.")] = None,
    overrides: Overrides = None,
) -> None:
    """From nothing to a tiny model that learned by debate, on a CPU, in minutes."""
    from commands.quickstart import run_quickstart

    run_quickstart(family, seed=seed, json_path=json, overrides=overrides or [])


@app.command()
def train(
    config: Annotated[str, typer.Argument(help="A TOML recipe, for instance configs/gsm8k_smoke.toml.")],
    overrides: Overrides = None,
) -> None:
    """Train; the same command again goes on where the run stopped."""
    from commands.train import run_train

    run_train(config, overrides or [])


@app.command()
def play(
    config: Annotated[str, typer.Argument(help="A TOML recipe, or the folder of a run.")],
    problem: Annotated[str, typer.Argument(help="The problem to debate.")],
    answer: Annotated[str | None, typer.Option(help="The right answer, if you know it.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the debate.")] = 0,
    overrides: Overrides = None,
) -> None:
    """Watch one debate with its votes and rewards."""
    from commands.play import run_play

    run_play(config, problem, answer=answer, seed=seed, overrides=overrides or [])


def run() -> None:
    """Run the command line (the ``debate`` script)."""
    warnings.formatwarning = lambda message, *_, **__: f"debate: note: {message}\n"
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("DEBATE_TRACEBACK"):
            raise
        print(f"debate: {_one_line(error)}", file=sys.stderr)
        sys.exit(2)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    run()
