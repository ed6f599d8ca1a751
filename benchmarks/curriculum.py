"""A curriculum against its last stage alone and against all its problems mixed, at equal generated tokens.

Of each seed the stages of a recipe are trained. Two more arms start from the weights that the first stage
began with, and train until as many tokens are generated: ``direct`` on the problems of the last stage,
``mixed`` on those that the recipe draws where no stage says otherwise, all levels at once. All are evaluated
on the last stage's held-out problems, of which each seed has its own. ``curriculum_gain`` is the curriculum
less ``direct``: a seed's is the mean over its runs, and the interval is over seeds; one seed has none. With
``--jitter 3`` a seed has three runs, whose starts differ by rounding; ``jitter_sd`` is the spread of the gain
among them. The targets of the recipe are left as they are, so a stage that does not reach its target costs
the curriculum its tokens. The warm start and evaluations are in no budget. Runs are kept in ``--out``, and
the same command resumes. How many seeds are needed is printed first.

    .venv/bin/python benchmarks/curriculum.py --seeds 11 12 13 14 15 --jitter 3 --json figures.json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, variance
from typing import TypeAlias

import torch
from report import Figure, add_jitter, jittered, parser, report
from scipy import stats

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.curriculum.drive import Driver, stage_config
from debate_rl.runs.curriculum import Visit, stage_runs
from debate_rl.statistics import Estimate, clustered_mean
from debate_rl.tracking.held_out import HeldOut, evaluations_of
from debate_rl.tracking.step_lines import read_metrics
from debate_rl.training.session import Session, open_session
from debate_rl.training.train import train, train_step

MOST_STEPS = 1_000_000
"""More than any budget has: the tokens end direct training."""


FEWEST, POWER = 5, 0.9
DEVELOPED = {1: 0.78, 2: 0.805}
"""The gains of the seeds that the recipe was made with: its claim is made on others."""
DOUBT = 10
"""Two seeds say little about how far seeds differ: more are planned as if it were so many times as much."""
ARMS = ("start", "curriculum", "direct", "mixed")
Run: TypeAlias = Mapping[str, float]
"""Accuracies on the last stage's problems: of the start, and of each arm at the end."""


def main() -> None:
    """Run what is missing, then print the arms and their differences."""
    args = arguments()
    torch.set_num_threads(1)
    print(planned(len(args.seeds)), flush=True)
    runs = {seed: [all_arms(args, seed, jitter) for jitter in range(args.jitter)] for seed in args.seeds}
    title = "A curriculum, its last stage alone, and all its levels mixed"
    report(title, [*figures_of(runs)], args.json)
    found = gain_of(runs)
    print(verdict(len(runs), found.low, found.high))


def planned(count: int) -> str:
    """Return in one line how many seeds were planned, and from what."""
    gains, known = [*DEVELOPED.values()], ", ".join(map(str, DEVELOPED))
    half, sd = fmean(gains) / 2, DOUBT * sqrt(variance(gains))
    return (
        f"seeds {known} gained {fmean(gains):+.2f}; half of it, with a standard deviation of {sd:.2f} "
        f"between seeds, takes {seeds_needed(half, sd)} seeds at a power of {POWER:g}; these are {count}"
    )


def seeds_needed(gain: float, sd: float) -> int:
    """Return the fewest seeds whose interval lies above 0 with the wanted power, at least five.

    ``sd``: of the gain between seeds. The power is that of a two-sided t test at 5%.
    """
    for count in range(FEWEST, 1000):
        beyond = stats.t.ppf(0.975, count - 1)
        if stats.nct.sf(beyond, count - 1, gain * sqrt(count) / max(sd, 1e-9)) >= POWER:
            return count
    raise ValueError(f"a gain of {gain:g} with a standard deviation of {sd:g} takes 1000 seeds or more")


def verdict(count: int, low: float, high: float) -> str:
    """Return in one line what the interval over seeds says."""
    if count < FEWEST:
        return f"{count} seeds are too few to say anything: run {FEWEST} or more"
    if low > 0:
        return "the curriculum ends higher than direct training: the interval is above 0"
    return "direct training ends higher" if high < 0 else "no difference can be told: the interval holds 0"


def figures_of(runs: Mapping[int, Sequence[Run]]) -> Iterator[Figure]:
    """Yield every arm's accuracy over seeds, and of each seed; then what the curriculum gains."""
    count = len(runs)
    for name in ARMS:
        seeds = {seed: [run[name] for run in own] for seed, own in runs.items()}
        mean = clustered_mean([*map(fmean, seeds.values())], [*seeds])
        yield Figure(f"{name}/accuracy", mean.value, "accuracy", count, mean.low, mean.high)
        for seed, own in seeds.items():
            yield Figure(f"{name}/seed_{seed}", fmean(own), "mean, range", len(own), min(own), max(own))
    spread = [variance(gains_of(own, "direct")) for own in runs.values() if len(own) > 1]
    if spread:
        yield Figure("jitter_sd", sqrt(fmean(spread)), "accuracy", count)
    yield Figure("lowest_gain", min(min(gains_of(own, "direct")) for own in runs.values()), "accuracy", count)
    for name, arm in (("curriculum_minus_mixed", "mixed"), ("curriculum_gain", "direct")):
        gain = gain_of(runs, arm)
        yield Figure(name, gain.value, "accuracy", count, gain.low, gain.high)
    if count > 1:
        yield Figure("curriculum_gain_low", gain_of(runs).low, "accuracy", count)


def gain_of(runs: Mapping[int, Sequence[Run]], arm: str = "direct") -> Estimate:
    """Return by how much the curriculum ends above another arm, with the interval over seeds."""
    return clustered_mean([fmean(gains_of(own, arm)) for own in runs.values()], [*runs], signed=True)


def gains_of(runs: Sequence[Run], arm: str) -> list[float]:
    """Return by how much the curriculum ends above another arm in each run."""
    return [run["curriculum"] - run[arm] for run in runs]


def all_arms(args: argparse.Namespace, seed: int, jitter: int) -> Run:
    """Return what the arms of a seed come to, from its start as it is or changed by rounding."""
    first = args.out / f"seed_{seed}"
    home = first / f"jitter_{jitter}" if jitter else first
    settings = [f"seed={seed}", f"held_out.seed={seed}", f"run.dir={home}/curriculum"]
    if jitter:
        begun = stage_runs(first / "curriculum")[0]
        settings += jittered(jitter, begun)
    config = load_config(Config, args.recipe, [*args.set, *settings])
    Driver(config, lambda own: train(own).step, print).drive()
    runs = stage_runs(home / "curriculum")
    last = len(config.stages or ()) - 1
    if read_stage(runs[-1]) != (config.stages or ())[last].name:
        raise ValueError(f"{home}: the curriculum ended before its last stage; lower the targets before it")
    alone = stage_config(config, Visit(last, "direct", "direct", seed))
    budget, start = sum(map(tokens_of, runs)), {"from_run": str(runs[0])}
    changes = {
        "goal": None,
        "warm_start": alone.warm_start.model_copy(update=start),
        "train": alone.train.model_copy(update={"steps": MOST_STEPS, "jitter": 0}),
    }
    found = {"curriculum": accuracy(evaluations_of(runs[-1] / "held_out.jsonl")[-1])}
    for arm, sampling in (("direct", alone.sampling), ("mixed", config.sampling)):
        own = {"sampling": sampling, "run": alone.run.model_copy(update={"dir": str(home / arm)})}
        with open_session(alone.model_copy(update=changes | own)) as session:
            evaluations = trained_for(session, budget)
        found |= {"start": accuracy(evaluations[0]), arm: accuracy(evaluations[-1])}
    return found


def read_stage(run: Path) -> str:
    """Return the name of the stage that a run's folder is of."""
    return run.name.partition("_")[2]


def tokens_of(run: Path) -> float:
    """Return the tokens that the steps of a run generated."""
    return sum(row["tokens/generated"] or 0.0 for row in read_metrics(run / "metrics.jsonl"))


def trained_for(session: Session, budget: float) -> list[HeldOut]:
    """Train until so many tokens are generated, and return the evaluations on the held-out problems."""
    session.evaluate_first()
    while tokens_of(session.folder.path) < budget if session.step else True:
        session.finish_step(session.step, train_step(session, session.step))
    session.save_finished()
    session.evaluate(session.step)
    return evaluations_of(session.folder.held_out)


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
    add_jitter(known)
    return known.parse_args()


if __name__ == "__main__":
    main()
