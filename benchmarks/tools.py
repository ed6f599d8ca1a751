"""Solving with programs against solving without, by a model that cannot compute what a line of Python can.

Of each seed all stages of ``aimo3/tiny`` are done: written solutions, solutions with programs, RL with tools.
Beside it, from the weights behind the first stage, the same two stages without tools: as many steps of
further written solutions, and of RL. Both are evaluated on the same held-out problems. ``tools_gain`` is
the difference of the accuracies, paired by problem: the mean over seeds with an interval over seeds, and of
each seed one over problems. Runs are kept in ``--out``, and a call goes on where the last one stopped.

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
from report import Figure, parser, report

from debate_rl.config.recipes import find_recipe, read_tables
from debate_rl.runs.curriculum import read_curriculum, stage_runs
from debate_rl.statistics import clustered_mean
from debate_rl.tracking.held_out import evaluations_of

ACCURACY = "direct/accuracy"


def main() -> None:
    """Run what is missing, then print both arms and their difference."""
    args = arguments()
    figures: list[Figure] = []
    gains: list[float] = []
    arms: dict[str, list[float]] = {"tools": [], "without": []}
    for seed in args.seeds:
        home = args.out / f"seed_{seed}"
        tools, seconds = done(args, home, seed, "tools", read_tables(find_recipe(args.recipe)))
        without, _ = done(args, home, seed, "without", without_tools(args.recipe, home))
        if seconds is not None:
            figures.append(Figure(f"seconds/seed_{seed}", seconds, "seconds", 1))
        gain = clustered_mean([tools[id] - without[id] for id in tools], list(tools), signed=True)
        figures.append(Figure(f"tools_gain/seed_{seed}", gain.value, "accuracy", gain.n, gain.low, gain.high))
        gains.append(gain.value)
        for name, right in (("tools", tools), ("without", without)):
            arms[name].append(sum(right.values()) / len(right))
    for name, values in arms.items():
        mean = clustered_mean(values, args.seeds)
        figures.append(Figure(f"{name}/accuracy", mean.value, "accuracy", len(values), mean.low, mean.high))
    whole = clustered_mean(gains, args.seeds, signed=True)
    figures.append(Figure("tools_gain", whole.value, "accuracy", len(gains), whole.low, whole.high))
    if len(gains) > 1:
        figures.append(Figure("tools_gain_low", whole.low, "accuracy", len(gains)))
    report("With programs and without", figures, args.json)


def without_tools(recipe: str, home: Path) -> dict[str, Any]:
    """Return the recipe's later stages without programs, from the weights behind its first stage."""
    tables: Any = read_tables(find_recipe(recipe))
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
    words = [sys.executable, "-m", "debate_rl", "run", str(path), "logging.progress=none", *args.set]
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
    known.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of both arms")
    return known.parse_args()


if __name__ == "__main__":
    main()
