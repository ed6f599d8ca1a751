"""Whole steps of training through vLLM, debates to published weights, at lookahead 0 and 1.

    OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/step.py --json step.json
    .venv-bench/bin/python benchmarks/step.py gsm8k_qwen3_8b_1gpu --steps 8

The second line is for a GPU. Both runs have one engine in a process of its own. Of each step: its seconds,
what the learner waited for debates, and what the engine waited for requests, both as shares of the step;
``idle_share`` is the mean of the two. Medians leave out the first two steps, in which debates of the first
step are waited for and kernels are chosen. The default recipe is the quick-start, with ``--times`` as many
problems in a step, so that debates and learning both take a while; its warm start is made once. Where there
is a GPU it learns there too, and its figures are of how long a tiny model's kernels wait to be started.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

from cpu_engine import FOR_VLLM
from report import Figure, parser, report

LEFT_OUT = 2
PHASES = ("rollout", "reward", "learn", "record")
SETTINGS = ("model.policy=vllm", "model.vllm.engines=1", "held_out.every=0", "train.save_every=0")
QUICKSTART = (
    "model.device=auto",
    "model.vllm.enforce_eager=true",
    "warm_start.solve_steps=60",
    "warm_start.debate_steps=200",
)


def main() -> None:
    """Print the table."""
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("recipe", nargs="?", default="quickstart")
    options.add_argument("--steps", type=int, default=7, help=f"the first {LEFT_OUT} do not count")
    options.add_argument("--times", type=int, default=1, help="as many problems a step as in the quick-start")
    args = options.parse_args()
    if find_spec("vllm") is None:
        sys.exit("this needs vLLM: make bench, then .venv-bench/bin/python benchmarks/step.py")
    with TemporaryDirectory() as folder:
        figures = [
            figure
            for lookahead in (0, 1)
            for figure in figures_of(lookahead, trained(Path(folder), lookahead, args)[LEFT_OUT:])
        ]
    report(f"steps of {args.recipe}; medians, range in low and high", figures, args.json)


def trained(folder: Path, lookahead: int, args: argparse.Namespace) -> list[dict[str, float]]:
    """Train for some steps; return their metrics."""
    run = folder / f"lookahead_{lookahead}"
    settings = [*SETTINGS, f"run.dir={run}", f"train.steps={args.steps}", f"train.async_level={lookahead}"]
    environment = dict(os.environ)
    if args.recipe == "quickstart":
        settings += [*QUICKSTART, f"train.batch_size={12 * args.times}"]
        settings += [f"warm_start.from_run={folder / 'lookahead_0'}"] if lookahead else []
        environment |= FOR_VLLM
    program = [sys.executable, "-m", "debate_rl.commands.main", "train", args.recipe]
    subprocess.run([*program, *settings], check=True, env=environment)
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if "idle/learner" in row]


def figures_of(lookahead: int, steps: Sequence[dict[str, float]]) -> list[Figure]:
    """Return seconds and idle shares of some steps."""
    columns = {
        "step_seconds": [sum(step[f"seconds/{phase}"] for phase in PHASES) for step in steps],
        "idle_learner": [step["idle/learner"] for step in steps],
        "idle_engine": [step["idle/engines"] for step in steps],
        "idle_share": [fmean((step["idle/learner"], step["idle/engines"])) for step in steps],
    }
    return [
        Figure(
            f"{name}, lookahead {lookahead}",
            median(values),
            "s" if name == "step_seconds" else "share",
            len(values),
            min(values),
            max(values),
        )
        for name, values in columns.items()
    ]


if __name__ == "__main__":
    main()
