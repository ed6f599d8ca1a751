"""SmolLM2-135M-Instruct learns by debate: gains over several seeds, with controls of equal cost.

Each seed supervises the form, then trains four arms from the same weights: debate RL, plain RL (one agent,
truth alone), votes alone, and more supervised steps. RL arms generate about equally many tokens, and the
supervised arm reads as many as debate RL. All seeds share the held-out problems, whose wordings never occur in
training; intervals hold for other seeds and problems. The plan is in experiments/results/real_model.md.

Every finished run is kept as one file in ``--kept``, so the seeds can be measured one after another. A seed
takes about two hours on two cores.

    .venv/bin/python benchmarks/real_model.py --seeds 1 2 3 --json real_model.json
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from report import Figure, over_seeds_and_problems, parser, report

from debate_rl.metrics.held_out import DIRECT, JUDGE, WINNER, evaluations_of
from debate_rl.smollm2 import find_smollm2

FORM = "form"
BASE = "base"
ALONE = ("debate.num_agents=1", "debate.num_rounds=1", "rewards.truth_weight=1")
ARMS: Mapping[str, tuple[str, ...]] = {
    "debate": (),
    "plain": (*ALONE, "train.batch_size=8", "train.group_size=28"),
    "votes": ("rewards.truth_weight=0", "advantages.lambda_judge=0"),
    "supervised": (),
}
FIRST, LAST, MAJORITY = "debate/accuracy/round_0", "debate/majority", "direct/self_consistency"
VALID = "debate/valid_xml"
KEPT = (DIRECT, MAJORITY, FIRST, "debate/accuracy/round_1", LAST, WINNER, JUDGE, VALID)
"""The figures that are kept of each problem."""
Kept = dict[str, Any]


def main() -> None:
    known = parser("SmolLM2 learns by debate: gains and controls over several seeds.")
    known.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    known.add_argument("--arms", nargs="*", default=list(ARMS), choices=list(ARMS))
    known.add_argument("--out", type=Path, default=Path("runs/real_model"), help="folder of the runs")
    known.add_argument("--kept", type=Path, default=Path("experiments/results/real_model"))
    known.add_argument("--only-report", action="store_true", help="train nothing; report what is kept")
    known.add_argument("overrides", nargs="*", help="keys of the recipes to change, such as train.steps=2")
    args = known.parse_args()
    args.kept.mkdir(parents=True, exist_ok=True)
    if not args.only_report:
        model = find_smollm2()
        for seed in args.seeds:
            for arm in (FORM, *args.arms):
                file = args.kept / f"{arm}-{seed}.json"
                if not file.exists():
                    keep(file, arm, seed, model, args)
    report("SmolLM2-135M-Instruct on word problems", figures(args), args.json)


def keep(file: Path, arm: str, seed: int, model: str, args: Any) -> None:
    """Train an arm, evaluate its weights with debates, and keep the figures of each problem."""
    started = time.monotonic()
    home = args.out / str(seed)
    run, form = home / arm, home / FORM
    keys = [f"seed={seed}", f"model.name_or_path={model}", f"run.dir={run}", "logging.progress=lines"]
    if arm == FORM:
        debate("train", "smollm2/form", *keys, *args.overrides)
    elif arm == "supervised":
        more = (f"warm_start.from_run={form}@newest", "env.seed=1", "learner.warmup_steps=3")
        debate("train", "smollm2/form", *keys, *more, *args.overrides)
    else:
        start = f"warm_start.from_run={form}"
        debate("train", "smollm2/debate", *keys, start, "held_out.every=0", *ARMS[arm], *args.overrides)
    trained_s = time.monotonic() - started
    evaluated = home / f"{arm}-held_out"
    protocol = ("debate.num_agents=3", "debate.num_rounds=2")
    debate("eval", str(run), *protocol, "--out", str(evaluated), *args.overrides)
    [found] = evaluations_of(evaluated / "held_out.jsonl")
    kept: Kept = {
        "arm": arm,
        "seed": seed,
        "trained_s": round(trained_s),
        "evaluated_s": round(time.monotonic() - started - trained_s),
        "figures": {name: found.means(name) for name in KEPT},
    }
    file.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


def debate(*words: str) -> None:
    print("debate", *words, flush=True)
    subprocess.run([sys.executable, "-m", "debate_rl", *words], check=True)


if __name__ == "__main__":
    main()
