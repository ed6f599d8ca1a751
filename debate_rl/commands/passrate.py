"""``debate eval passrate RECIPE|RUN``: how often a policy solves each problem, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debate_rl.commands.console import plain_console, print_table, progress_of, write_json
from debate_rl.commands.options import JsonFile, Overrides, RecipeOrRun, WeightsOption, writable
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.evaluation.asking import kept_folder, policy_of, requests_at_once, weights_named
from debate_rl.evaluation.folder import identity, open_folder
from debate_rl.evaluation.pass_rates import (
    measure,
    measured_of,
    pass_rate_plan,
    problems_to_measure,
    summary,
)
from debate_rl.formatting import counted, interval, share
from debate_rl.sampling.difficulty import HELD_OUT_KEY, KEY, write_difficulty

MAX_SAMPLES = 1024
FILE = "difficulty.jsonl"
HEADS = ("problems", "pass rate", "never solved", "sometimes", "always", "missing")


def passrate(
    what: RecipeOrRun,
    overrides: Overrides = None,
    weights: WeightsOption = "newest",
    samples: Annotated[int, typer.Option(help="Sample this many solutions of each problem.")] = 8,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Measure the held-out problems, for held_out.difficulty.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=writable, help="Also write the difficulty file here."),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Measure how often a policy solves each training problem; run it again to continue, or to add samples.

    The file is what env.difficulty.path reads, of held-out problems held_out.difficulty: docs/curriculum.md.
    """
    if not 1 <= samples <= MAX_SAMPLES:
        raise ValueError(f"--samples {samples}: needs 1 to {MAX_SAMPLES}")
    run, config = open_run_or_recipe(what, overrides or ())
    path = weights_named(run, weights, what)
    data = problems_to_measure(config, held_out=held_out)
    plan = pass_rate_plan(config, data, samples=samples, requests=requests_at_once(config))
    kept = identity(config, plan.problems, path, plan.seeds, direct=True)
    folder = kept_folder("passrates", run, config, path, kept)
    with open_folder(folder, kept), progress_of(str(folder)) as tell, policy_of(config, path) as policy:
        rows = measure(plan, policy, folder, tell=tell)
        of = measured_of(config, path, samples=samples)
        for file in (folder / FILE, *([Path(out)] if out else [])):
            write_difficulty(file, of, rows)
    figures = summary(rows, {problem.id: problem.level for problem in data.train})
    cells = [
        (
            f"{name}: {found['problems']}",
            f"{share(found['pass_rate'])} ({interval(found['low'], found['high'], share)})",
            *(str(found[key]) for key in ("never", "sometimes", "always")),
            share(found["missing"]),
        )
        for name, found in figures.items()
    ]
    print_table([HEADS, *cells])
    say, file = plain_console().print, Path(out) if out else folder / FILE
    if without := len(data.train) - len(rows):
        say(f"{counted(without, 'problem')} without any verdict of the grader left out")
    say(f"difficulty file: {file}; {HELD_OUT_KEY if held_out else KEY}={file} reads it")
    if json is not None:
        write_json(json, {"file": str(file), "of": of, "figures": figures})
