"""``debate``: the entry point. A user's mistake is one line on stderr and exit code 2."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import sys
import warnings
from typing import Annotated, Literal, NoReturn

import typer

from commands.errors import Ended, one_line, refuse_shadows, refuse_windows

WRONG, INTERRUPTED, TERMINATED = 2, 130, 143
STOPPED = "stopped; a run goes on from its newest checkpoint when the same command is given again"
LOOKING = ("inspect", "replay", "report")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="A mistake in a recipe or file is one line and exit code 2; DEBATE_TRACEBACK=1 shows where.",
)

Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="e.g. learner.lr=1e-5; KEY=none takes the recipe's value away, so that the default counts. "
        "`debate keys` lists them all.",
    ),
]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"debate {importlib.metadata.version('debate-rl')}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Multi-agent debate reinforcement learning for reasoning models."""


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


@app.command("eval")
def evaluate(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|CONFIG... [KEY=VALUE...]",
            help="Folders of runs, or recipes (the model as it is). held_out.* says on which problems.",
        ),
    ],
    weights: Annotated[
        str,
        typer.Option(
            help="newest, best, start (the warm start), all, or a checkpoint's step; or several: a,b."
        ),
    ] = "newest",
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=FILE]", help="A data set in place of held_out's; again for each further one."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many times each problem is played, under other seeds.")] = 1,
    samples: Annotated[
        int, typer.Option(help="At least so many single solutions of each problem: for pass@k with large k.")
    ] = 0,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Also ask one agent at temperature 0 for one answer.")
    ] = False,
    modes: Annotated[
        str, typer.Option(metavar="A,B", help="Also grade single solutions in these modes (docs/grading.md).")
    ] = "",
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where what is said is kept; found by itself else.")
    ] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the figures here.")] = None,
    table: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write the tables here, as .md or .tex.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Evaluate checkpoints as they come.")] = False,
) -> None:
    """Direct answers, debate and self-consistency at equal tokens; the same command goes on if cut off."""
    from commands.eval import Asked, run_eval

    names = [word for word in what if "=" not in word]
    overrides = [word for word in what if "=" in word]
    named = tuple(mode.strip() for mode in modes.split(",") if mode.strip())
    asked = Asked(weights, seeds, samples, greedy, named, on or (), out, json, table, watch)
    run_eval(names, asked, overrides)


@app.command()
def play(
    config: Annotated[str, typer.Argument(help="A TOML recipe, or the folder of a run.")],
    problem: Annotated[str, typer.Argument(help="The problem to debate.")],
    answer: Annotated[str | None, typer.Option(help="The right answer, if you know it.")] = None,
    kind: Annotated[
        Literal["number", "expression", "choice", "text", "verbatim", "instructions", "open"] | None,
        typer.Option(help="How the answer is compared; as mathematics if not given."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the debate.")] = 0,
    overrides: Overrides = None,
) -> None:
    """Watch one debate with its votes and rewards. Rounds count from 1 here, from 0 in the transcripts."""
    from commands.play import run_play

    run_play(config, problem, answer=answer, kind=kind, seed=seed, overrides=overrides or [])


@app.command()
def export(
    run: Annotated[str, typer.Argument(help="The folder of a run.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Add a LoRA adapter into its base's weights.")
    ] = False,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where to; RUN/export if not given.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16 or float16; as trained if not given.")
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Write a run's newest weights as a folder that transformers, peft and vLLM load, with a model card."""
    from commands.export import run_export

    run_export(run, out=out, merge=merge, dtype=dtype, overrides=overrides or [])


@app.command()
def tokens(
    run: Annotated[str, typer.Argument(help="The folder of a run.")],
    debate: Annotated[
        str, typer.Argument(metavar="DEBATE", help="STEP.PLACE, e.g. 12.3: the 4th debate of the 13th step.")
    ],
    turn: Annotated[
        str, typer.Option(metavar="AGENT.ROUND", help="Which turn; both from 0, the final ballot last.")
    ] = "0.0",
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the table here.")] = None,
    overrides: Overrides = None,
) -> None:
    """Show one turn token by token: stream, advantage, log-probabilities of sampler and trainer, ratio."""
    from commands.tokens import run_tokens

    run_tokens(run, debate, turn=turn, json_path=json, overrides=overrides or [])


@app.command()
def replay(
    run: Annotated[str, typer.Argument(help="The folder of a run.")],
    filter: Annotated[
        str,
        typer.Option(metavar="FILTER", help="Debates to show, e.g. winner:wrong (docs/transcripts.md)."),
    ] = "",
    steps: Annotated[str, typer.Option(metavar="A..B", help="Show these steps, from 0.")] = "",
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where to; RUN/replays/NAME if not given.")
    ] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the figures here.")] = None,
    overrides: Overrides = None,
) -> None:
    """Pay a run's debates under another scheme (rewards.*, advantages.*): what changes. Needs no GPU.

    Exit code 1: what is stored is not what the run's own scheme gives.
    """
    from commands.replay import Asked, run_replay

    run_replay(run, Asked(filter, steps, out, json), overrides or [])


@app.command(context_settings={"ignore_unknown_options": True})  # a filter may begin with -
def inspect(
    run: Annotated[str, typer.Argument(help="The folder of a run, or a folder of runs.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ACTION] [ARGS]",
            help="ls [FILTER], show ID..., grep WORDS [FILTER], stats [FILTER], why ID, "
            "same PROBLEM [ID ID], fixture ID FILE, or replays [NAME [ID]]. Without one: an application that "
            "fills the terminal, or ls where there is none.",
        ),
    ] = None,
    filter: Annotated[
        str,
        typer.Option(metavar="FILTER", help="Debates to look at, e.g. winner:wrong (docs/transcripts.md)."),
    ] = "",
    limit: Annotated[
        int | None, typer.Option(min=1, help="The most debates: of ls 50 if not given, of grep all.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="ls: begin behind this debate, for the next page.")
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="ls: the newest debates first.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="show: replies as written, with thinking.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON (docs/inspector.md).")] = False,
    turn: Annotated[
        str | None,
        typer.Option(metavar="AGENT.ROUND", help="why: which turn; both from 0, 0.0 if not given."),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Show the debates in a browser.")] = False,
    host: Annotated[
        str | None,
        typer.Option(help="--web: where to listen, 127.0.0.1 if not given; elsewhere a token is asked for."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="--web: 8123 if not given, 0 for a free one.")
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="--web: open the browser.")] = False,
    export: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write what is found as one HTML file, 200 without --limit."),
    ] = None,
) -> None:
    """Look at a run's debates: in the terminal, in lines (ls, show, ...), or with --web in a browser."""
    from commands.inspect import Asked, run_inspect
    from commands.inspect_pages import Pages

    pages = Pages(web, host, port, open, export)
    run_inspect(Asked(run, words or (), filter, limit, after, newest, raw, json, turn, pages))


@app.command()
def report(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Folders of runs.")] = None,
    filter: Annotated[
        str, typer.Option(metavar="FILTER", help="Of these debates only (docs/transcripts.md).")
    ] = "",
    out: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where to; RUN/report, or ./report for several runs."),
    ] = None,
    json: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the figures here.")] = None,
    inspector: Annotated[
        str, typer.Option(metavar="URL", help="Of a browser inspector, which numbers then link to.")
    ] = "",
    example: Annotated[
        bool, typer.Option("--example", help="Make a run of simulated debates, and report on it.")
    ] = False,
    solutions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The same, on the solutions of a file of JSON lines."),
    ] = None,
    judge_accuracy: Annotated[float, typer.Option(help="Accuracy of simulated judges.")] = 0.7,
    position_bias: Annotated[float, typer.Option(help="Their bias for what is shown first.")] = 0.0,
    tie_rate: Annotated[float, typer.Option(help="The share of their votes that are ties.")] = 0.0,
    agents: Annotated[int, typer.Option(help="Agents of simulated debates.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of simulated debates.")] = 0,
) -> None:
    """Report how well a policy judges and how training went, as a page, as Markdown and as JSON."""
    from commands.report import Asked, Simulated, run_report

    made = Simulated(solutions, judge_accuracy, position_bias, tie_rate, agents, seed)
    asked = Asked(filter, out, json, inspector)
    run_report(runs or [], asked, made if example or solutions is not None else None)


@app.command()
def keys(
    part: Annotated[
        str | None, typer.Argument(help="A key, a table such as learner, or a word to look for.")
    ] = None,
) -> None:
    """List the keys of a recipe with type, default and meaning."""
    from commands.keys import run_keys

    run_keys(part)


def run() -> None:
    """Run the command line (the ``debate`` script)."""
    # Where a signal ends a round, some of its requests may not have begun.
    warnings.filterwarnings("ignore", r"coroutine '.*' was never awaited", RuntimeWarning)
    warnings.formatwarning = lambda message, *_, **__: f"debate: note: {one_line(message)}\n"
    try:
        refuse_windows(sys.platform)
        refuse_shadows()
        signal.signal(signal.SIGTERM, _terminate)
        app()
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("DEBATE_TRACEBACK"):
            raise
        _end(_told(error), WRONG)
    except Ended as ended:
        _end(ended.line, int(str(ended.code)))
    except KeyboardInterrupt:
        _end(_stopped(), INTERRUPTED)
    except SystemExit as ended:  # an interrupted command ends so in typer, without a word
        if ended.code == INTERRUPTED:
            _end(_stopped(), INTERRUPTED)
        raise


def _told(error: ValueError | OSError | ImportError) -> str:
    """Return what is wrong in one line; of a filter also the filter, with a caret under the character."""
    if isinstance(error, ValueError):
        from transcripts import FilterError

        if isinstance(error, FilterError):
            return str(error)
    return one_line(error)


def _terminate(*_: object) -> NoReturn:
    raise Ended(_stopped(), TERMINATED)


def _stopped() -> str:
    """Return what a command that was stopped says; those that only look have nothing to go on with."""
    return "stopped" if sys.argv[1:2] and sys.argv[1] in LOOKING else STOPPED


def _end(line: str, code: int) -> NoReturn:
    print(f"debate: {line}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    run()
