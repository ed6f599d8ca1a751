"""A curriculum against direct training on its last stage, at equal generated tokens and from one start.

Of each seed the stages of a recipe are trained, then the last stage alone from the weights that the first
one began with, until as many tokens are generated as all stages generated. Both are evaluated on the held-out
problems of the last stage, the same for all seeds. ``curriculum_gain`` is the difference of the accuracies,
the mean over seeds with an interval over seeds and problems; that of one seed is over problems alone.
``--jitter N`` does all N times, from starts that differ by rounding. The targets of the recipe are left as
they are, so a stage that is not reached costs the curriculum its tokens. The warm start and evaluations are
in neither budget. Runs are kept in ``--out``, and the same command resumes.

    .venv/bin/python benchmarks/curriculum.py --seeds 11 12 13 14 15 --out runs/curriculum --json figures.json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean

import torch
from report import (
    Figure,
    Repeat,
    add_jitter,
    jittered,
    over_seeds_and_problems,
    parser,
    repeated,
    repeats,
    report,
)

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.curriculum.drive import Driver, stage_config
from debate_rl.runs.curriculum import Visit, stage_runs
from debate_rl.tracking.held_out import HeldOut, evaluations_of
from debate_rl.tracking.step_lines import read_metrics
from debate_rl.training.session import Session, open_session
from debate_rl.training.train import train, train_step

Accuracies = dict[str, float]
MOST_STEPS = 1_000_000
"""More than any budget has: the tokens end direct training."""


def main() -> None:
    """Run what is missing, then print both arms and their difference."""
    args = arguments()
    torch.set_num_threads(1)
    pairs = {repeat: both_arms(args, *repeat) for repeat in repeats(args.seeds, args.jitter)}
    figures = [*arm_figures("curriculum", {repeat: c for repeat, (c, _) in pairs.items()})]
    figures += arm_figures("direct", {repeat: d for repeat, (_, d) in pairs.items()})
    gains = {repeat: {id: c[id] - d[id] for id in c if id in d} for repeat, (c, d) in pairs.items()}
    gain, *spread = over_seeds_and_problems("curriculum_gain", gains, "accuracy", signed=True)
    low, high, count = gain.low or 0.0, gain.high or 0.0, len(args.seeds)
    figures += [gain, *spread]
    if count > 1:
        figures.append(Figure("curriculum_gain_low", low, "accuracy", count))
    report("Curriculum against direct training on the last stage", figures, args.json)
    print(verdict(count, low, high))


def verdict(count: int, low: float, high: float) -> str:
    """Return in one line what the interval over seeds and problems says."""
    if count < 5:
        return f"{count} seeds are too few to say anything: run 5 or more"
    if low > 0:
        return "the curriculum ends higher than direct training: the interval is above 0"
    return "direct training ends higher" if high < 0 else "no difference can be told: the interval holds 0"


def arm_figures(name: str, values: Mapping[Repeat, Mapping[str, float]]) -> Iterator[Figure]:
    """Yield an arm's accuracy on the last stage's problems, over seeds and for each run."""
    yield from over_seeds_and_problems(f"{name}/accuracy", values, "accuracy")
    for (seed, number), by_problem in values.items():
        yield Figure(f"{name}/seed_{seed}{repeated(number)}", fmean(by_problem.values()), "accuracy", 1)


def both_arms(args: argparse.Namespace, seed: int, number: int) -> tuple[Accuracies, Accuracies]:
    """Return the accuracies by problem of the curriculum and of direct training for one run of a seed."""
    first = args.out / f"seed_{seed}"
    home = first.with_name(first.name + repeated(number))
    own = [f"seed={seed}", f"run.dir={home}/curriculum"]
    own += jittered(number, stage_runs(first / "curriculum")[0]) if number else []
    config = load_config(Config, args.recipe, [*args.set, *own])
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
        "train": direct.train.model_copy(update={"steps": MOST_STEPS, "jitter": 0}),
    }
    with open_session(direct.model_copy(update=changes)) as session:
        of_direct = trained_for(session, budget)
    return accuracies(evaluations_of(runs[-1] / "held_out.jsonl")[-1]), of_direct


def read_stage(run: Path) -> str:
    """Return the name of the stage that a run's folder is of."""
    return run.name.partition("_")[2]


def tokens_of(run: Path) -> float:
    """Return the tokens that the steps of a run generated."""
    return sum(row["tokens/generated"] or 0.0 for row in read_metrics(run / "metrics.jsonl"))


def trained_for(session: Session, budget: float) -> Accuracies:
    """Train until so many tokens are generated, and return the accuracy on each held-out problem."""
    session.evaluate_first()
    while tokens_of(session.folder.path) < budget if session.step else True:
        session.finish_step(session.step, train_step(session, session.step))
    session.save_finished()
    session.evaluate(session.step)
    return accuracies(evaluations_of(session.folder.held_out)[-1])


def accuracies(evaluation: HeldOut) -> Accuracies:
    """Return the accuracy of one agent alone by problem."""
    found = evaluation.means("direct/accuracy")
    if not found:
        raise ValueError("no held-out problem has a verdict")
    return found


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    known = parser(__doc__ or "")
    known.add_argument("--recipe", default="curriculum/tiny", help="a recipe with stages")
    known.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    known.add_argument("--out", type=Path, default=Path("runs/benchmark-curriculum"), metavar="FOLDER")
    add_jitter(known)
    known.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of the recipe")
    return known.parse_args()


if __name__ == "__main__":
    main()
