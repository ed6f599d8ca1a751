"""What the votes add, and where they harm: the quick-start beside its controls, on both families.

Every arm of a family and seed begins with the same warm start and does as many steps at equal generated
tokens, with held-out problems that are the seed's own. ``--jitter N`` does every run N times, from starts
that differ by rounding. Each is kept in ``--out`` as one JSON file, and the same command resumes; warm starts
that ``quickstart_seeds.py`` left in the same folder are used. From nothing it takes about 45 minutes.

    .venv/bin/python benchmarks/controls.py --seeds 31 32 33 --json figures.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

import torch
from report import (
    Figure,
    Repeat,
    add_held_out_seed,
    add_jitter,
    over_seeds,
    parser,
    repeated,
    repeats,
    report,
)

from debate import DebateConfig, run_debates
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.evaluation.grading import grade_debate
from debate_rl.evaluation.play import solutions_of_a_debate
from debate_rl.evaluation.scores import winner_is_right
from debate_rl.judge_attack.judging import judge_accuracy
from debate_rl.training.loop import finish_step, train_step
from debate_rl.training.open_or_resume import open_training
from debate_rl.training.run import Run
from rewards import RewardConfig, score_debate

RECIPES = {"pair_sum": "quickstart", "words": "quickstart_words"}
PEER_ONLY = ("rewards.truth_weight=0", "advantages.lambda_judge=0")
ARMS: Mapping[str, tuple[str, ...]] = {
    "start": ("train.steps=0",),
    "both": (),
    "truth_only": ("rewards.truth_weight=1",),
    "single_agent": ("rewards.truth_weight=1", "debate.num_rounds=1", "debate.final_ballot=false"),
    "peer_only": PEER_ONLY,
    "own_answer": (*PEER_ONLY, "train.control=own_answer"),
    "shuffled_votes": (*PEER_ONLY, "train.control=shuffled_votes"),
    "random_judge": (*PEER_ONLY, "train.control=random_judge"),
}
"""What each arm changes of the recipe. "start" is the warm start. In "single_agent" nobody sees or judges
anybody; as many more solutions of round 0 are drawn as spend the tokens of a debate. The last four learn from
votes alone, or from what stands in their place.
"""
Examined = dict[str, list[float]]
"""Held-out figures: "solve" (round 0) and "winner" by problem; of one element: "judge", and "solutions":
as many direct solutions as spend the tokens of a debate."""


def main() -> None:
    """Run what is missing, then print each arm's figures, pooled over the seeds."""
    args = arguments()
    torch.set_num_threads(1)
    figures: list[Figure] = []
    for family in args.families:
        every = repeats(args.seeds, args.jitter)
        runs = {arm: {repeat: run_once(family, arm, repeat, args) for repeat in every} for arm in ARMS}
        figures += [figure for arm in ARMS for figure in figures_of(family, arm, runs)]
    report("controls; 95% intervals over seeds", figures, args.json)


def arguments() -> argparse.Namespace:
    result = parser("The quick-start beside its controls, on both families.")
    result.add_argument("--seeds", type=int, nargs="+", default=[31, 32, 33])
    result.add_argument("--families", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    result.add_argument("--out", type=Path, default=Path("runs/quickstart_seeds"))
    add_held_out_seed(result)
    add_jitter(result)
    return result.parse_args()


def name_of(family: str, arm: str, repeat: Repeat, args: argparse.Namespace) -> str:
    seed, number = repeat
    return f"{family}-{arm}-{seed}-{args.held_out_seed + seed}{repeated(number)}"


def run_once(family: str, arm: str, repeat: Repeat, args: argparse.Namespace) -> Examined:
    """Train one arm and keep its held-out figures; read them where they are there."""
    name = f"controls-{name_of(family, arm, repeat, args)}"
    path = args.out / f"{name}.json"
    if not path.exists():
        print(name, flush=True)
        config = config_of(family, arm, repeat, args, run_dir=args.out / "runs" / name)
        with open_training(config) as session:
            for step in range(session.step, config.train.steps):
                finish_step(session, step, train_step(session, step))
            found = examine(session, load_config(Config, RECIPES[family]).debate, repeat[0])
        fresh = path.with_suffix(".partial")
        fresh.write_text(json.dumps(found), encoding="utf-8")
        fresh.rename(path)
    return json.loads(path.read_text(encoding="utf-8"))


def config_of(family: str, arm: str, repeat: Repeat, args: argparse.Namespace, *, run_dir: Path) -> Config:
    """Return the configuration of an arm, which begins with the warm start of the seed's first "start"."""
    (seed, number), first = repeat, (repeat[0], 0)
    overrides = [
        f"seed={seed}",
        f"held_out.seed={args.held_out_seed + seed}",
        f"run.dir={run_dir}",
        *ARMS[arm],
    ]
    overrides.append(f"train.jitter={number}")
    start = args.out / "runs" / f"controls-{name_of(family, 'start', first, args)}"
    if run_dir == start:
        start = args.out / "runs" / name_of(family, "both", first, args)  # of quickstart_seeds.py
    if (start / "warm_start").exists():
        overrides.append(f"warm_start.from_run={start}")
    if arm == "single_agent":
        (solutions,) = run_once(family, "start", first, args)["solutions"]
        recipe = load_config(Config, RECIPES[family])
        more = solutions / recipe.debate.num_agents * recipe.train.group_size
        overrides.append(f"train.group_size={round(more)}")
    return load_config(Config, RECIPES[family], overrides)


def examine(session: Run, protocol: DebateConfig, seed: int) -> Examined:
    """Return the held-out figures of the session's weights, in debates of the recipe's protocol."""
    problems, eval_environment = session.data.held_out, session.data.eval_environment
    held = run_debates(problems, session.policy, protocol, seed=derive_seed(seed, "controls"))
    tables = [grade_debate(eval_environment, debate)[1] or () for debate in held]
    scored = [score_debate(d, t, RewardConfig()) for d, t in zip(held, tables, strict=True)]
    kind = session.config.env.kind
    judge = judge_accuracy(session.policy, kind, problems, config=protocol, greedy=True, seed=seed)
    return {
        "solve": [fmean(seat[0] is True for seat in table) for table in tables],
        "winner": [winner_is_right(*one) for one in zip(held, tables, scored, strict=True)],
        "judge": [judge.value],
        "solutions": [solutions_of_a_debate(held)],
    }


def figures_of(family: str, arm: str, runs: Mapping[str, Mapping[Repeat, Examined]]) -> Iterator[Figure]:
    """Yield an arm's accuracy in round 0 and of winners, its gain over the warm start, and its judge."""
    own = {repeat: {name: fmean(run[name]) for name in run} for repeat, run in runs[arm].items()}
    for name in ("solve", "winner", "judge"):
        yield from over_seeds(f"{family}_{arm}_{name}", {one: found[name] for one, found in own.items()})
    if arm != "start":
        gains = {one: found["solve"] - fmean(runs["start"][one]["solve"]) for one, found in own.items()}
        yield from over_seeds(f"{family}_{arm}_gain", gains, signed=True)


if __name__ == "__main__":
    main()
