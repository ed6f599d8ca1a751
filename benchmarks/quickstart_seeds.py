"""The quick-start over several seeds: medians, and the ablation truth only, peer only, both, shuffled votes.

Every run is kept in ``--out`` as one JSON file, and the same command resumes. The arms of a seed share its
warm start and its own held-out problems: four arms take six minutes on one core; ``--jobs 2`` runs two seeds
at a time. ``--jitter N`` does every run N times, from starts that differ by rounding; the figures of a seed
are then the means of its runs.

    .venv/bin/python benchmarks/quickstart_seeds.py --seeds 11 12 13 14 15 --json figures.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, median
from typing import Any

from report import Figure, add_held_out_seed, add_jitter, parser, repeated, repeats, report
from report import over_seeds as mean_and_spread
from rich.console import Console
from rich.table import Table

PEER_ONLY = ("rewards.truth_weight=0", "advantages.lambda_judge=0")
MISJUDGING = ("warm_start.misjudge=0.8",)
DIVIDED = tuple(f"advantages.{stream}.scale=group" for stream in ("truth", "judge"))
ARMS: Mapping[str, tuple[str, ...]] = {
    "both": (),
    "truth_only": ("rewards.truth_weight=1",),
    "peer_only": PEER_ONLY,
    "shuffled_votes": (*PEER_ONLY, "train.control=shuffled_votes"),
    "dr_grpo": ("learner.loss=dr_grpo", "learner.max_tokens=48", *DIVIDED),
    "dr_grpo_matched": ("learner.loss=dr_grpo", "learner.max_tokens=16", *DIVIDED),
    "context": ("advantages.truth.key=context",),
    "debate": ("advantages.truth.key=debate",),
    "truth_only_context": ("rewards.truth_weight=1", "advantages.truth.key=context"),
    "truth_only_debate": ("rewards.truth_weight=1", "advantages.truth.key=debate"),
    "misjudging": MISJUDGING,
    "misjudging_peer_only": (*MISJUDGING, *PEER_ONLY),
}
"""What each arm changes of the recipe. dr_grpo divides by the token limit, and its gradient is a third of
grpo's there; by 16 the first steps' gradients are as large as grpo's. In the last two arms the planted judges
have the solvers' habit."""
MAIN = (
    "accuracy_round_0_before",
    "accuracy_round_0_after",
    "winner_accuracy_before",
    "winner_accuracy_after",
    "judge_accuracy_before",
    "judge_accuracy_after",
    "judge_accuracy_before_sampled",
    "judge_accuracy_after_sampled",
    "self_consistency_before",
    "self_consistency_after",
    "winner_minus_round_0_before",
    "winner_minus_round_0",
    "round_1_minus_round_0_before",
    "round_1_minus_round_0",
    "winner_minus_self_consistency_before",
    "winner_minus_self_consistency",
    "debate_generated_tokens_after",
    "debate_prompt_tokens_after",
    "self_consistency_generated_tokens_after",
    "self_consistency_prompt_tokens_after",
    "valid_xml",
    "cpu_seconds",
)
Run = dict[str, dict[str, Any]]


def main() -> None:
    """Run what is missing, then print the table by seed, the ablation and the medians."""
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda seed: run_arms(seed, args), args.seeds))
    wanted = [(arm, seed) for arm in args.arms for seed in args.seeds]
    runs = {(arm, seed): mean_run(args, arm, seed) for arm, seed in wanted}
    by_seed(runs, args.seeds)
    figures = [*summary(runs, args), *(spread(args, arm) for arm in args.arms if args.jitter > 1)]
    report(
        f"quick-start, {args.family}: medians over seeds, range in low and high",
        figures,
        args.json,
    )


def arguments() -> argparse.Namespace:
    result = parser("The quick-start over several seeds, with its ablation.")
    result.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    result.add_argument("--arms", nargs="+", default=list(ARMS)[:4], choices=list(ARMS))
    result.add_argument("--family", default="pair_sum", choices=["pair_sum", "words"])
    result.add_argument("--out", type=Path, default=Path("runs/quickstart_seeds"))
    result.add_argument("--jobs", type=int, default=1)
    add_held_out_seed(result)
    add_jitter(result)
    return result.parse_args()


def file_of(args: argparse.Namespace, arm: str, seed: int, number: int = 0) -> Path:
    return args.out / f"{args.family}-{arm}-{seed}-{args.held_out_seed + seed}{repeated(number)}.json"


def run_arms(seed: int, args: argparse.Namespace) -> None:
    """Run the arms of a seed one after the other, each from the warm start of the first of its kind."""
    for arm in sorted(args.arms, key=list(ARMS).index):
        for number in range(args.jitter):
            run_once(arm, seed, number, args)


def run_folder(args: argparse.Namespace, arm: str, seed: int, number: int = 0) -> Path:
    return args.out / "runs" / file_of(args, arm, seed, number).stem


def run_once(arm: str, seed: int, number: int, args: argparse.Namespace) -> None:
    """Run one quick-start in a process of its own on one thread, unless its figures are there."""
    path = file_of(args, arm, seed, number)
    if path.exists():
        return
    fresh = path.with_suffix(".partial")
    command = [
        sys.executable,
        "-m",
        "debate_rl.commands.main",
        "quickstart",
        "--family",
        args.family,
        "--seed",
        str(seed),
    ]
    folder, held_out = run_folder(args, arm, seed, number), args.held_out_seed + seed
    command += ["--json", str(fresh), f"run.dir={folder}", f"held_out.seed={held_out}", *ARMS[arm]]
    command.append(f"train.jitter={number}")
    first = "misjudging" if arm.startswith("misjudging") else "both"
    shared = run_folder(args, first, seed)
    if folder != shared and (shared / "warm_start").exists():
        command.append(f"warm_start.from_run={shared}")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    with path.with_suffix(".log").open("w", encoding="utf-8") as log:
        subprocess.run(command, check=True, env=environment, stdout=log, stderr=subprocess.STDOUT)
    fresh.rename(path)


def read_run(args: argparse.Namespace, arm: str, seed: int, number: int) -> Run:
    rows = json.loads(file_of(args, arm, seed, number).read_text(encoding="utf-8"))
    return {row["name"]: row for row in rows}


def mean_run(args: argparse.Namespace, arm: str, seed: int) -> Run:
    """Return the figures of a seed, the means of its runs; of several there is no interval by problem."""
    first, *others = (read_run(args, arm, seed, number) for number in range(args.jitter))
    if not others:
        return first
    return {
        name: {"value": fmean(value(run, name) for run in (first, *others)), "low": None, "high": None}
        for name in first
    }


def spread(args: argparse.Namespace, arm: str) -> Figure:
    """Return the standard deviation of the gain of first answers over the runs of a seed."""
    gains = {
        (seed, number): value(run, "accuracy_round_0_after") - value(run, "accuracy_round_0_before")
        for seed, number in repeats(args.seeds, args.jitter)
        for run in [read_run(args, arm, seed, number)]
    }
    return [*mean_and_spread(f"accuracy_round_0_gain_{arm}", gains)][-1]


def by_seed(runs: Mapping[tuple[str, int], Run], seeds: Sequence[int]) -> None:
    """Print every run: value, and the half-width of its clustered 95% interval."""
    names = [name for name in MAIN if "tokens" not in name]
    table = Table(title="every run")
    for column in ("arm", "figure", *map(str, seeds)):
        table.add_column(column)
    for arm in dict.fromkeys(arm for arm, _ in runs):
        for name in names:
            table.add_row(arm, name, *(cell(runs[arm, seed][name]) for seed in seeds))
        table.add_section()
    Console(width=140).print(table)


def cell(row: Mapping[str, float | None]) -> str:
    value, low, high = row["value"], row["low"], row["high"]
    assert value is not None
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} ±{(high - low) / 2:.3f}"


def summary(runs: Mapping[tuple[str, int], Run], args: argparse.Namespace) -> list[Figure]:
    """Return the medians over seeds; low and high are the lowest and the highest seed."""
    figures: list[Figure] = []
    if "both" in args.arms:
        figures += [over_seeds(name, [value(runs["both", s], name) for s in args.seeds]) for name in MAIN]
        leads = [value(runs["both", s], "winner_minus_self_consistency") for s in args.seeds]
        name = "winner_minus_self_consistency_mean"
        figures += mean_and_spread(
            name, {(s, 0): lead for s, lead in zip(args.seeds, leads, strict=True)}, signed=True
        )
    for arm in args.arms:
        gains = [
            value(runs[arm, s], "accuracy_round_0_after") - value(runs[arm, s], "accuracy_round_0_before")
            for s in args.seeds
        ]
        figures.append(
            over_seeds("accuracy_round_0_gain" if arm == "both" else f"accuracy_round_0_gain_{arm}", gains)
        )
        for name in ("winner_accuracy_after", "winner_minus_self_consistency", "judge_accuracy_after"):
            if arm != "both":
                figures.append(over_seeds(f"{name}_{arm}", [value(runs[arm, s], name) for s in args.seeds]))
    return figures


def value(run: Run, name: str) -> float:
    return run[name]["value"]


def over_seeds(name: str, values: Sequence[float]) -> Figure:
    unit = "s" if name == "cpu_seconds" else "tokens" if "tokens" in name else "share"
    return Figure(name, median(values), unit, len(values), min(values), max(values))


if __name__ == "__main__":
    main()
