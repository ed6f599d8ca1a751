"""``debate sweep``: train the arms of a recipe over several seeds, and compare them in a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from shlex import quote
from typing import Annotated

import typer

from debate_rl.commands.console import plain_console, print_table, write_json
from debate_rl.commands.eval_tables import write_tables
from debate_rl.commands.options import JsonFile, TableFile
from debate_rl.formatting import counted, interval, printable
from debate_rl.metrics.intervals import Estimate
from debate_rl.replay.regrading import plain
from debate_rl.sweeps.arms import Arm, Sweep, open_sweep
from debate_rl.sweeps.results import ArmFigure, costs_of, figures_of, read_evaluations
from debate_rl.sweeps.running import Runner, open_state, runs_of


def sweep(
    config: Annotated[
        str,
        typer.Argument(metavar="RECIPE|SWEEP", help="A shipped recipe or sweep, or a TOML file."),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=A,B",
            help="A key of the recipe: each of several values makes an arm, a single value applies to all. "
            'Or a key of the sweep: seeds=5, at_once=2, devices=["0","1"], figures, out=FOLDER.',
        ),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="List the arms without starting any run.")] = False,
    table: TableFile = None,
    json: JsonFile = None,
) -> None:
    """Train every arm with every seed, and compare them. The same command resumes.

    Arms with the same seed start from the same weights, and are compared by problem: docs/sweeps.md.
    """
    settings, arms = open_sweep(config, changes or ())
    runs = runs_of(settings, arms)
    say = plain_console().print
    size = f"{counted(len(arms), 'arm')} x {counted(len(settings.seeds_from(0)), 'seed')}"
    say(f"{settings.out}: {size} of {settings.recipe}")
    if plan:
        say(*(f"  {arm.name}: {' '.join(arm.changes) or 'the unchanged recipe'}" for arm in arms), sep="\n")
        return
    with open_state(settings, arms) as state:
        runner = Runner(settings, state, plain_console(stderr=True).print)
        runner.run(runs)
    state = runner.state
    figures = figures_of(read_evaluations(runs), arms, settings.figures)
    costs = costs_of(runs, arms, state)
    heads = ("arm", "tokens generated", "tokens forward", "steps", "runs")
    rows = [
        (one.arm, f"{one.tokens:,.0f}", f"{one.passes:,.0f}", f"{one.steps:g}", one.state) for one in costs
    ]
    tables = {**_figure_tables(figures, arms), "cost": [heads, *rows]}
    for name, lines in tables.items():
        print_table(lines, name, align="lr")
    say(*_notes(settings, runner, arms), sep="\n")
    if json is not None:
        facts = {"recipe": settings.recipe, "out": settings.out, "arms": state.arms, "failed": state.failed}
        found = [
            asdict(row) | {name: plain(getattr(row, name)) for name in ("value", "gained", "less")}
            for row in figures
        ]
        costs_found = [asdict(one) for one in costs]
        write_json(json, {"schema": 1, **facts, "figures": found, "costs": costs_found})
    if table is not None:
        write_tables(table, tables)
    if state.failed:
        raise typer.Exit(1)


def _figure_tables(figures: Sequence[ArmFigure], arms: Sequence[Arm]) -> dict[str, list[tuple[str, ...]]]:
    """Return a table of each figure, one line per arm."""
    heads = ("arm", "after step", "seeds", "value", "gained", f"minus {arms[0].name}", "p, adjusted")
    tables: dict[str, list[tuple[str, ...]]] = {}
    for row in figures:
        p = "" if row.p is None else f"{row.p:.3g}"
        cells = (row.arm, str(row.step), str(row.seeds))
        values = (_text(row.value), _text(row.gained, signed=True), _text(row.less, signed=True))
        tables.setdefault(row.figure, [heads]).append((*cells, *values, p))
    return tables


def _text(estimate: Estimate | None, *, signed: bool = False) -> str:
    """Return an estimate with its interval. Large numbers, such as tokens, have no decimals."""
    if estimate is None:
        return ""
    digits = 3 if abs(estimate.value) < 10 else 0
    form = f"{{:{'+' if signed else ''},.{digits}f}}".format
    low, high = estimate.low, estimate.high
    if not signed and 0 <= estimate.value <= 1:  # a fraction
        low, high = max(low, 0.0), min(high, 1.0)
    return f"{form(estimate.value)} ({interval(low, high, form, none='no interval')})"


def _notes(settings: Sweep, runner: Runner, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield notes on intervals and failures, and the command of a report."""
    if (count := len(settings.seeds_from(0))) > 1:
        yield f"95% intervals over {count} seeds and held-out problems; differences are by seed and problem."
    else:
        yield "95% intervals clustered by problem; a single seed does not show the spread over seeds."
    for name, line in runner.state.failed.items():
        yield printable(f"failed: {name}: {line}")
    yield f"report: debate report {quote(settings.out)}/{quote(arms[0].folder)}/seed_*"
