"""``debate sweep``: arms of a recipe over several seeds, and a table of what each came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from debate_rl.commands.console import plain_console, text_table, wide_console, write_json
from debate_rl.commands.options import JsonFile, writable
from debate_rl.formatting import counted, printable

if TYPE_CHECKING:
    from debate_rl.metrics.intervals import Estimate
    from debate_rl.sweeps.arms import Arm, Sweep
    from debate_rl.sweeps.results import ArmCost, ArmFigure
    from debate_rl.sweeps.running import Runner, SweepRun


def sweep(
    config: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE|SWEEP", help="A recipe, or a TOML file of a sweep, one's own or shipped."
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=A,B",
            help="A key of the recipe: with several values each is an arm, with one it holds for all. Or a "
            'key of the sweep: seeds=5, at_once=2, devices=["0","1"], figures, out=FOLDER.',
        ),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Tell the runs, and start nothing.")] = False,
    table: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=writable, help="Also write the tables to an .md or .tex file."),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Train every arm with every seed, and compare them; the same command again does what is left.

    Arms of one seed begin from the same weights and are compared problem by problem: docs/sweeps.md.
    """
    from debate_rl.sweeps.arms import open_sweep
    from debate_rl.sweeps.running import Runner, open_state, runs_of

    if table is not None and Path(table).suffix not in (".md", ".tex"):
        raise ValueError(f"--table {table}: write a name that ends in .md or .tex")
    settings, arms = open_sweep(config, changes or ())
    runs = runs_of(settings, arms)
    say = plain_console().print
    size = f"{counted(len(arms), 'arm')} x {counted(len(settings.seeds_from(0)), 'seed')}"
    say(f"{settings.out}: {size} of {settings.recipe}")
    if plan:
        say(*(f"  {arm.name}: {' '.join(arm.changes) or 'the recipe as it is'}" for arm in arms), sep="\n")
        return
    with open_state(settings, arms) as state:
        runner = Runner(settings, state, plain_console(stderr=True).print)
        runner.run(runs)
    _show(settings, runner, runs, arms, json, table)
    if runner.state.failed:
        raise typer.Exit(1)


def _show(
    settings: Sweep,
    runner: Runner,
    runs: Sequence[SweepRun],
    arms: Sequence[Arm],
    json: str | None,
    table: str | None,
) -> None:
    from debate.files import write_text
    from debate_rl.evaluation.report import as_text
    from debate_rl.sweeps.results import costs_of, figures_of, read_evaluations

    figures = figures_of(read_evaluations(runs), arms, settings.figures)
    costs = costs_of(runs, arms, runner.state)
    tables = {**_figure_tables(figures, arms), "what it took": _cost_table(costs)}
    for name, rows in tables.items():
        width = sum(max(len(row[column]) + 3 for row in rows) for column in range(len(rows[0])))
        wide_console(width + 1).print(text_table(rows[0], rows[1:], align="lr", no_wrap=True, title=name))
    plain_console().print(*_notes(settings, runner, arms), sep="\n")
    if json is not None:
        write_json(json, {"schema": 1, **_plain(settings, runner, figures, costs)})
    if table is not None:
        write_text(table, as_text(tables, cast(Literal["md", "tex"], Path(table).suffix[1:])))


def _figure_tables(figures: Sequence[ArmFigure], arms: Sequence[Arm]) -> dict[str, list[tuple[str, ...]]]:
    """Return a table of each figure, the arms below each other."""
    heads = ("arm", "after step", "seeds", "value", "gained", f"less {arms[0].name}", "p, adjusted")
    tables: dict[str, list[tuple[str, ...]]] = {}
    for row in figures:
        p = "" if row.p is None else f"{row.p:.3g}"
        cells = (row.arm, str(row.step), str(row.seeds))
        values = (_text(row.value), _text(row.gained, signed=True), _text(row.less, signed=True))
        tables.setdefault(row.figure, [heads]).append((*cells, *values, p))
    return tables


def _text(estimate: Estimate | None, *, signed: bool = False) -> str:
    """Return an estimate with its interval; tokens and other large numbers have no decimals."""
    from debate_rl.formatting import interval

    if estimate is None:
        return ""
    digits = 3 if abs(estimate.value) < 10 else 0
    form = f"{{:{'+' if signed else ''},.{digits}f}}".format
    low, high = estimate.low, estimate.high
    if not signed and 0 <= estimate.value <= 1:  # a share
        low, high = max(low, 0.0), min(high, 1.0)
    bounds = interval(low, high, form)
    return f"{form(estimate.value)} ({bounds or 'no interval'})"


def _cost_table(costs: Sequence[ArmCost]) -> list[tuple[str, ...]]:
    heads = ("arm", "tokens generated", "tokens forward", "steps", "runs")
    return [
        heads,
        *(
            (one.arm, f"{one.tokens:,.0f}", f"{one.passes:,.0f}", f"{one.steps:g}", one.state)
            for one in costs
        ),
    ]


def _notes(settings: Sweep, runner: Runner, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield what the tables' intervals are of, what failed, and how to look further."""
    if (count := len(settings.seeds_from(0))) > 1:
        yield f"95% intervals over {count} seeds and held-out problems; differences are by seed and problem."
    else:
        yield "95% intervals clustered by problem; one seed does not say what another would give."
    for name, line in runner.state.failed.items():
        yield printable(f"failed: {name}: {line}")
    yield f"look: debate report {quote(settings.out)}/{quote(arms[0].folder)}/seed_*"


def _plain(
    settings: Sweep, runner: Runner, figures: Sequence[ArmFigure], costs: Sequence[ArmCost]
) -> dict[str, object]:
    from dataclasses import asdict

    from debate_rl.replay.regrading import plain

    rows = [
        asdict(row) | {name: plain(getattr(row, name)) for name in ("value", "gained", "less")}
        for row in figures
    ]
    state = runner.state
    known = {"recipe": settings.recipe, "out": settings.out, "arms": state.arms, "failed": state.failed}
    return {**known, "figures": rows, "costs": [asdict(one) for one in costs]}
