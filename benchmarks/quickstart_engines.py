"""The quick-start's task, learnt through vLLM in every mode, beside the policy of this process.

    OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/quickstart_engines.py --json engines.json

One warm start is the base of all runs. Full weights and an adapter are trained by the local policy, and by
vLLM with lookahead 0 and 1; each run of vLLM of the first seed is killed (SIGKILL) once ``--kill-after``
steps are saved, and the same command goes on. Figures are those of the recipe's 300 held-out problems: what
one agent alone and the debates' winner have in the end, the mean over seeds, and what vLLM's runs have less
the local ones'. Runs of one configuration differ by their seed, so 95% intervals are Student's over seeds; of
one seed alone they are over its problems, and say nothing of other seeds. Runs are kept in ``--out``, and a
call goes on where the last one stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from cpu_engine import FOR_VLLM
from report import Figure, parser, report

from debate_rl.metrics.held_out import DIRECT, WINNER, HeldOut, gain, read_held_out
from debate_rl.metrics.intervals import Estimate, clustered_mean

ADAPTER = ("model.lora_rank=16", "learner.lr=6e-3")
ENGINE = ("model.policy=vllm", "model.vllm.enforce_eager=true", "train.save_every=1")
WAYS = {"whole": (), "adapter": ADAPTER}
MODES = {
    "local": (),
    "lookahead 0": ENGINE,
    "lookahead 1": (*ENGINE, "train.async_level=1"),
}
NAMES = {DIRECT: "one agent alone", WINNER: "winner"}
ENVIRONMENT = {"OMP_NUM_THREADS": "1"} | os.environ | FOR_VLLM


def main() -> None:
    """Run what is missing, and print the figures; exit code 1 where vLLM's runs are worse."""
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--out", type=Path, default=Path("runs/quickstart_engines"))
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    options.add_argument("--kill-after", type=int, default=3, metavar="STEPS", help="0 kills no run")
    args = options.parse_args()
    if find_spec("vllm") is None:
        sys.exit("this needs vLLM: make bench, then .venv-bench/bin/python benchmarks/quickstart_engines.py")
    args.out.mkdir(parents=True, exist_ok=True)
    recipe = written_recipe(args.out)
    figures: list[Figure] = []
    for way in args.ways:
        ends = {mode: [finished(recipe, way, mode, seed, args) for seed in args.seeds] for mode in args.modes}
        figures += figures_of(way, ends)
    report("the quick-start's task by engine; held-out problems", figures, args.json)
    worse = [f.name for f in figures if f.name.endswith("less local") and (f.high or 0.0) < 0]
    sys.exit(f"worse than the local policy: {', '.join(worse)}" if worse else 0)


def written_recipe(out: Path) -> Path:
    """Return the quick-start's recipe on the weights of its warm start, as a model in a folder."""
    path = out / "recipe.toml"
    if not path.exists():
        base = (out / "base").resolve()
        command("train", "quickstart", f"run.dir={out / 'warm_start'}", "train.steps=0", "held_out.every=0")
        command("export", str(out / "warm_start"), "--out", str(base))
        text = Path("configs/quickstart.toml").read_text(encoding="utf-8")
        head, _, rest = text.partition("[model.tiny]")
        _, _, rest = rest.partition("[learner]")
        head = head.replace("[model]\n", f"[model]\nname_or_path = {json.dumps(str(base))}\n")
        path.write_text(f"{head}[learner]{rest}", encoding="utf-8")
    return path


def command(*arguments: str) -> None:
    """Run a command of ``debate`` to its end."""
    subprocess.run([*PROGRAM, *arguments], check=True, env=ENVIRONMENT)


Ends = tuple[HeldOut, HeldOut]
PROGRAM = (sys.executable, "-m", "debate_rl.commands.main")


def finished(recipe: Path, way: str, mode: str, seed: int, args: argparse.Namespace) -> Ends:
    """Return the evaluations before and after a run; it is killed on its way where that is asked."""
    run = args.out / f"{way} {mode} {seed}".replace(" ", "_")
    settings = (f"run.dir={run}", f"seed={seed}", *WAYS[way], *MODES[mode])
    if mode != "local" and args.kill_after and seed == args.seeds[0]:
        killed(run, args.kill_after, "train", str(recipe), *settings)
    command("train", str(recipe), *settings)
    evaluations = read_held_out(run)
    return evaluations[0], evaluations[-1]


def killed(run: Path, steps: int, *arguments: str) -> None:
    """Start a run, and kill it once so many steps are saved; one that has so many is left alone."""
    saved = run / "checkpoints" / f"step_{steps:06d}"
    if any(path.name >= saved.name for path in saved.parent.glob("step_*")):
        return
    with subprocess.Popen([*PROGRAM, *arguments], env=ENVIRONMENT) as process:
        while not saved.exists():
            if process.poll() is not None:
                sys.exit(f"{run} ended before step {steps} was saved: exit code {process.returncode}")
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
    print(f"{run}: killed after {saved.name}")


def figures_of(way: str, ends: dict[str, list[Ends]]) -> list[Figure]:
    """Return how accurate the runs of a way are in the end, and how far from the local ones."""
    figures: list[Figure] = []
    for name, title in NAMES.items():
        firsts = [first.estimate(name) for first, _ in next(iter(ends.values()))]
        figures.append(figure(f"{way}: {title} before", firsts))
        for mode, runs in ends.items():
            figures.append(figure(f"{way}, {mode}: {title}", [last.estimate(name) for _, last in runs]))
            if mode != "local" and "local" in ends:
                pairs = zip(ends["local"], runs, strict=True)
                apart = [gain(local[1], last, name) for local, (_, last) in pairs]
                differences = [None if one is None else one.difference for one in apart]
                figures.append(figure(f"{way}, {mode}: {title} less local", differences))
    return figures


def figure(name: str, estimates: Sequence[Estimate | None]) -> Figure:
    """Return the mean of an estimate for each seed, with the interval over seeds; of one seed its own."""
    known = [estimate for estimate in estimates if estimate is not None]
    one = (
        known[0]
        if len(known) == 1
        else clustered_mean([e.value for e in known], range(len(known)), signed=True)
    )
    return Figure(name, one.value, "share", len(known), one.low, one.high)


if __name__ == "__main__":
    main()
