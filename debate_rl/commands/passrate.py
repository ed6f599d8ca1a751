"""``debate eval passrate RECIPE|RUN``: how often a policy solves each problem, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.console import plain_console, text_table, wide_console, write_json
from debate_rl.commands.options import JsonFile, Overrides, writable

if TYPE_CHECKING:
    from debate_rl.config import Config

MAX_SAMPLES = 1024
FILE = "difficulty.jsonl"


def passrate(
    what: Annotated[
        str,
        typer.Argument(metavar="RECIPE|RUN", help="A recipe (its model as it is), or the folder of a run."),
    ],
    overrides: Overrides = None,
    weights: Annotated[
        str, typer.Option(help="Of a run: newest, best, start, or the step of a checkpoint.")
    ] = "newest",
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
    from debate_rl.config.recipes import open_run_or_recipe
    from debate_rl.runs.weights import named_weights

    if not 1 <= samples <= MAX_SAMPLES:
        raise ValueError(f"--samples {samples}: needs 1 to {MAX_SAMPLES}")
    run, config = open_run_or_recipe(what, overrides or ())
    if run is None and weights != "newest":
        raise ValueError(f"--weights {weights}: {what} is a recipe, the model as it is; name a run")
    chosen = named_weights(run, weights) if run is not None else [None]
    if len(chosen) != 1:
        raise ValueError(f"--weights {weights}: is {len(chosen)} checkpoints; name one")
    _measure(run, config, chosen[0], samples, out, json, held_out=held_out)


def _measure(
    run: Path | None,
    config: Config,
    weights: Path | None,
    samples: int,
    out: str | None,
    json: str | None,
    *,
    held_out: bool,
) -> None:
    """Sample, grade, write the file and print what it says."""
    from debate_rl.commands.eval_sets import policy_of, progress_of
    from debate_rl.config.models import ENGINES
    from debate_rl.evaluation.folder import default_folder, identity, open_folder
    from debate_rl.evaluation.pass_rates import (
        measure,
        measured_of,
        pass_rate_plan,
        problems_to_measure,
        summary,
    )
    from debate_rl.sampling.difficulty import HELD_OUT_KEY, KEY, write_difficulty

    data = problems_to_measure(config, held_out=held_out)
    requests = None if config.model.policy in ENGINES else config.train.sample_batch_size
    plan = pass_rate_plan(config, data, samples=samples, requests=requests)
    what = identity(config, plan.problems, weights, plan.seeds, direct=True)
    home = run / "passrates" if run else Path("passrates") / Path(config.run.dir).name
    folder = default_folder(home, weights, what)
    with open_folder(folder, what), progress_of(str(folder)) as tell, policy_of(config, weights) as policy:
        rows = measure(plan, policy, folder, tell=tell)
        of = measured_of(config, weights, samples=samples)
        for path in (folder / FILE, *([Path(out)] if out else [])):
            write_difficulty(path, of, rows)
    figures = summary(rows, {problem.id: problem.level for problem in data.train})
    path = Path(out) if out else folder / FILE
    key = HELD_OUT_KEY if held_out else KEY
    _show(figures, f"{path}; {key}={path} reads it", without=len(data.train) - len(rows))
    if json is not None:
        write_json(json, {"file": str(path), "of": of, "figures": figures})


def _show(figures: dict[str, dict[str, float | int]], file: str, *, without: int) -> None:
    from debate_rl.formatting import counted, interval, share

    heads = ("problems", "pass rate", "never solved", "sometimes", "always", "missing")
    rows = [
        (
            f"{name}: {found['problems']}",
            f"{share(found['pass_rate'])} ({interval(found['low'], found['high'], share)})",
            *(str(found[key]) for key in ("never", "sometimes", "always")),
            share(found["missing"]),
        )
        for name, found in figures.items()
    ]
    wide_console(100).print(text_table(heads, rows))
    say = plain_console().print
    if without:
        say(f"{counted(without, 'problem')} without any verdict of the grader left out")
    say(f"difficulty file: {file}")
