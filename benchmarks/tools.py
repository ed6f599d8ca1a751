"""Solving with programs against solving without, by a model that cannot compute what a line of Python can.

Of each seed all stages of ``aimo3/tiny`` are done: written solutions, solutions with programs, RL with tools.
Beside it, from the weights behind the first stage, the same two stages without tools: as many steps of
further written solutions, and of RL. Both are evaluated on the same held-out problems. ``tools_gain`` is
the difference of the accuracies, paired by problem: the mean over seeds with an interval over seeds and
problems, and of each seed one over problems. ``--jitter N`` does all N times, from weights that differ by
rounding. Runs are kept in ``--out``, and a call goes on where the last one stopped.

    .venv/bin/python benchmarks/tools.py --seeds 0 1 2 --out runs/benchmark-tools --json figures.json
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tomli_w
from report import Figure, Repeat, add_jitter, over_seeds_and_problems, parser, repeated, repeats, report

from debate_rl.config.recipes import find_recipe, read_tables
from debate_rl.curriculum.record import read_curriculum, stage_runs
from debate_rl.metrics.held_out import evaluations_of
from debate_rl.metrics.intervals import clustered_mean

ACCURACY = "direct/accuracy"


def main() -> None:
    """Run what is missing, then print both arms and their difference."""
    args = arguments()
    figures: list[Figure] = []
    gains: dict[Repeat, dict[str, float]] = {}
    arms: dict[str, dict[Repeat, dict[str, float]]] = {"tools": {}, "without": {}}
    for seed, number in repeats(args.seeds, args.jitter):
        home = args.out / f"seed_{seed}{repeated(number)}"
        tools, seconds = done(args, home, seed, "tools", with_tools(args.recipe, number))
        without, _ = done(args, home, seed, "without", without_tools(args.recipe, home, number))
        name = home.name
        if seconds is not None:
            figures.append(Figure(f"seconds/{name}", seconds, "seconds", 1))
        own = {id: tools[id] - without[id] for id in tools}
        gain = clustered_mean([*own.values()], [*own], signed=True)
        figures.append(Figure(f"tools_gain/{name}", gain.value, "accuracy", gain.n, gain.low, gain.high))
        gains[seed, number] = own
        arms["tools"][seed, number], arms["without"][seed, number] = tools, without
    for name, values in arms.items():
        figures += over_seeds_and_problems(f"{name}/accuracy", values, "accuracy")
    whole, *spread = over_seeds_and_problems("tools_gain", gains, "accuracy", signed=True)
    figures += [whole, *spread]
    if len(args.seeds) > 1 and whole.low is not None:
        figures.append(Figure("tools_gain_low", whole.low, "accuracy", whole.n))
    report("With programs and without", figures, args.json)


def with_tools(recipe: str, number: int) -> dict[str, Any]:
    """Return the recipe, whose stages begin with weights that differ by rounding in each of its runs."""
    tables: Any = read_tables(find_recipe(recipe))
    return tables | {"train": tables.get("train", {}) | {"jitter": number}} if number else tables


def without_tools(recipe: str, home: Path, number: int) -> dict[str, Any]:
    """Return the recipe's later stages without programs, from the weights behind its first stage."""
    tables = with_tools(recipe, number)
    first, *later = tables["stages"]
    for stage in later:
        stage["debate"] = stage.get("debate", {}) | {"tools": "none"}
        if "sft" in stage:
            stage["sft"]["data"] = first["sft"]["data"]
    begun = stage_runs(home / "tools")[0]
    record = read_curriculum(home / "tools")
    assert record is not None
    held_out = {key: value for key, value in tables["held_out"].items() if key != "strategies"}
    start = {"from_run": f"{begun}@{record.visits[0].steps}"}
    return tables | {"stages": later, "warm_start": start, "held_out": held_out}


def done(
    args: argparse.Namespace, home: Path, seed: int, name: str, tables: dict[str, Any]
) -> tuple[dict[str, float], float | None]:
    """Do a recipe; return the share of right answers by problem, and the seconds that it took now."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{name}.toml"
    path.write_text(tomli_w.dumps(tables | {"seed": seed, "run": {"dir": str(home / name)}}))
    started = time.perf_counter()
    words = [sys.executable, "-m", "debate_rl", "train", str(path), "logging.progress=none", *args.set]
    subprocess.run(words, check=True)
    seconds = time.perf_counter() - started
    last = evaluations_of(stage_runs(home / name)[-1] / "held_out.jsonl")[-1]
    return last.means(ACCURACY), seconds if name == "tools" else None


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    known = parser(__doc__ or "")
    known.add_argument("--recipe", default="aimo3/tiny", help="a recipe whose first stage has no tools")
    known.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    known.add_argument("--out", type=Path, default=Path("runs/benchmark-tools"), metavar="FOLDER")
    add_jitter(known)
    known.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of both arms")
    return known.parse_args()


if __name__ == "__main__":
    main()
