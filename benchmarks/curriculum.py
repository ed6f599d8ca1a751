"""A curriculum against direct training on its last stage, at equal generated tokens and from one start.

Of each seed the stages of a recipe are trained, then the last stage alone from the weights that the first one
began with, until as many tokens are generated as all stages generated. Both are evaluated on the held-out
problems of the last stage, the same for all seeds. ``curriculum_gain`` is the difference of the accuracies,
the mean over seeds with an interval over seeds; one seed has none. The targets of the recipe are left as they
are, so a stage that is not reached costs the curriculum its tokens. The warm start and evaluations are in
neither budget. Runs are kept in ``--out``, and a call goes on where the last one stopped.

    .venv/bin/python benchmarks/curriculum.py --seeds 11 12 13 14 15 --out runs/curriculum --json figures.json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from report import Figure, parser, report

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.curriculum.drive import Driver, stage_config
from debate_rl.runs.curriculum import Visit, stage_runs
from debate_rl.statistics import clustered_mean
from debate_rl.tracking.held_out import HeldOut, evaluations_of
from debate_rl.tracking.step_lines import read_metrics
from debate_rl.training.session import Session, open_session
from debate_rl.training.train import train, train_step

MOST_STEPS = 1_000_000
"""More than any budget has: the tokens end direct training."""


def main() -> None:
    """Run what is missing, then print both arms and their difference."""
    args = arguments()
    torch.set_num_threads(1)
    pairs = [both_arms(args, seed) for seed in args.seeds]
    figures = [*arm_figures("curriculum", [c for c, _ in pairs], args.seeds)]
    figures += arm_figures("direct", [d for _, d in pairs], args.seeds)
    gains = [c - d for c, d in pairs]
    gain = clustered_mean(gains, args.seeds, signed=True)
    count = len(args.seeds)
    figures.append(Figure("curriculum_gain", gain.value, "accuracy", count, gain.low, gain.high))
    if count > 1:
        figures.append(Figure("curriculum_gain_low", gain.low, "accuracy", count))
    report("Curriculum against direct training on the last stage", figures, args.json)
    print(verdict(count, gain.low, gain.high))


def verdict(count: int, low: float, high: float) -> str:
    """Return in one line what the interval over seeds says."""
    if count < 5:
        return f"{count} seeds are too few to say anything: run 5 or more"
    if low > 0:
        return "the curriculum ends higher than direct training: the interval is above 0"
    return "direct training ends higher" if high < 0 else "no difference can be told: the interval holds 0"


def arm_figures(name: str, values: list[float], seeds: list[int]) -> Iterator[Figure]:
    """Yield an arm's accuracy on the last stage's problems, over seeds and for each."""
    mean = clustered_mean(values, seeds)
    yield Figure(f"{name}/accuracy", mean.value, "accuracy", len(seeds), mean.low, mean.high)
    yield from (Figure(f"{name}/seed_{s}", v, "accuracy", 1) for s, v in zip(seeds, values, strict=True))


def both_arms(args: argparse.Namespace, seed: int) -> tuple[float, float]:
    """Return the accuracies of the curriculum and of direct training for one seed."""
    home = args.out / f"seed_{seed}"
    config = load_config(Config, args.recipe, [*args.set, f"seed={seed}", f"run.dir={home}/curriculum"])
    Driver(config, lambda own: train(own).step, print).drive()
    runs = stage_runs(home / "curriculum")
    budget = sum(tokens_of(run) for run in runs)
    last = len(config.stages or ()) - 1
    if read_stage(runs[-1]) != (config.stages or ())[last].name:
        raise ValueError(f"{home}: the curriculum ended before its last stage; lower the targets before it")
    direct = stage_config(config, Visit(last, "direct", "direct", seed))
    changes = {
        "run": direct.run.model_copy(update={"dir": str(home / "direct")}),
        "goal": None,
        "warm_start": direct.warm_start.model_copy(update={"from_run": str(runs[0])}),
        "train": direct.train.model_copy(update={"steps": MOST_STEPS}),
    }
    with open_session(direct.model_copy(update=changes)) as session:
        accuracy_of_direct = trained_for(session, budget)
    return accuracy(evaluations_of(runs[-1] / "held_out.jsonl")[-1]), accuracy_of_direct


def read_stage(run: Path) -> str:
    """Return the name of the stage that a run's folder is of."""
    return run.name.partition("_")[2]


def tokens_of(run: Path) -> float:
    """Return the tokens that the steps of a run generated."""
    return sum(row["tokens/generated"] or 0.0 for row in read_metrics(run / "metrics.jsonl"))


def trained_for(session: Session, budget: float) -> float:
    """Train until so many tokens are generated, and return the accuracy on the held-out problems."""
    session.evaluate_first()
    while tokens_of(session.folder.path) < budget if session.step else True:
        session.finish_step(session.step, train_step(session, session.step))
    session.save_finished()
    session.evaluate(session.step)
    return accuracy(evaluations_of(session.folder.held_out)[-1])


def accuracy(evaluation: HeldOut) -> float:
    """Return the accuracy of one agent alone."""
    estimate = evaluation.estimate("direct/accuracy")
    if estimate is None:
        raise ValueError("no held-out problem has a verdict")
    return estimate.value


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    known = parser(__doc__ or "")
    known.add_argument("--recipe", default="curriculum/tiny", help="a recipe with stages")
    known.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    known.add_argument("--out", type=Path, default=Path("runs/benchmark-curriculum"), metavar="FOLDER")
    known.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of the recipe")
    return known.parse_args()


if __name__ == "__main__":
    main()
