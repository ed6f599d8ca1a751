"""A curriculum against its last stage alone and against all its problems mixed, at equal generated tokens.

Of each seed the stages of a recipe are trained. Two more arms start from the weights that the first stage
began with, and train until as many tokens are generated: ``direct`` on the problems of the last stage,
``mixed`` on those that the recipe draws where no stage says otherwise, all levels at once. All are evaluated
on the last stage's held-out problems, of which each seed has its own. ``curriculum_gain`` is the curriculum
less ``direct``: a seed's is the mean over its runs, and the interval is over seeds; one seed has none. With
``--jitter 3`` a seed has three runs, whose starts differ by rounding; the last two are without ``mixed``. The
targets of the recipe are left as they are, so a stage that does not reach its target costs the curriculum its
tokens. The warm start and evaluations are in no budget. Runs are kept in ``--out``, and the same command
resumes. How many seeds are needed is printed first.

    .venv/bin/python benchmarks/curriculum.py --seeds 11 12 13 14 15 --jitter 3 --json figures.json
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from math import sqrt
from pathlib import Path
from statistics import fmean, variance

import torch
from report import Figure, Repeat, add_jitter, jittered, over_seeds, parser, repeated, repeats, report
from scipy import stats

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.curriculum.drive import Driver, stage_config
from debate_rl.curriculum.record import Visit, stage_runs
from debate_rl.metrics.held_out import HeldOut, evaluations_of
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import evaluate, evaluate_first, finish_step, train, train_step
from debate_rl.training.open_or_resume import open_training

MOST_STEPS = 1_000_000
"""More than any budget has: the tokens end direct training."""


FEWEST, POWER = 5, 0.9
DEVELOPED = {1: 0.78, 2: 0.805}
"""The gains of the seeds that the recipe was made with: its claim is made on others."""
DOUBT = 10
"""Two seeds say little about how far seeds differ: more are planned as if it were so many times as much."""
Accuracies = Mapping[str, float]
"""On the last stage's problems, of the start and of each arm at its end."""


def main() -> None:
    """Run what is missing, then print the arms and their differences."""
    args = arguments()
    torch.set_num_threads(1)
    print(planned(len(args.seeds)), flush=True)
    runs = {repeat: all_arms(args, *repeat) for repeat in repeats(args.seeds, args.jitter)}
    figures = [*figures_of(runs)]
    report("A curriculum, its last stage alone, and all its levels mixed", figures, args.json)
    gain = next(figure for figure in figures if figure.name == "curriculum_gain")
    print(verdict(gain.n, gain.low or 0.0, gain.high or 0.0))


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


def figures_of(runs: Mapping[Repeat, Accuracies]) -> Iterator[Figure]:
    """Yield every arm's accuracy, over seeds and of each run, and what the curriculum gains on the others."""
    for arm in ("start", "curriculum", "direct", "mixed"):
        own = {repeat: found[arm] for repeat, found in runs.items() if arm in found}
        yield from over_seeds(f"{arm}/accuracy", own, "accuracy")
        for (seed, number), value in own.items():
            yield Figure(f"{arm}/seed_{seed}{repeated(number)}", value, "accuracy", 1)
    for name, arm in (("curriculum_minus_mixed", "mixed"), ("curriculum_gain", "direct")):
        gains = {repeat: found["curriculum"] - found[arm] for repeat, found in runs.items() if arm in found}
        mean, *spread = over_seeds(name, gains, "accuracy", signed=True)
        yield from (
            mean,
            *spread,
            Figure(f"{name}, lowest of all runs", min(gains.values()), "accuracy", len(gains)),
        )
        if mean.n > 1 and mean.low is not None:
            yield Figure(f"{name}_low", mean.low, "accuracy", mean.n)


def all_arms(args: argparse.Namespace, seed: int, number: int) -> Accuracies:
    """Return what the arms of a run of a seed come to."""
    first = args.out / f"seed_{seed}"
    home = first.with_name(first.name + repeated(number))
    settings = [f"seed={seed}", f"held_out.seed={seed}", f"run.dir={home}/curriculum"]
    settings += jittered(number, stage_runs(first / "curriculum")[0]) if number else []
    config = load_config(Config, args.recipe, [*args.set, *settings])
    Driver(config, lambda own: train(own).step, print).drive()
    runs = stage_runs(home / "curriculum")
    last = len(config.stages or ()) - 1
    if read_stage(runs[-1]) != (config.stages or ())[last].name:
        raise ValueError(f"{home}: the curriculum ended before its last stage; lower the targets before it")
    alone = stage_config(config, Visit(last, "direct", "direct", seed))
    changes = {
        "goal": None,
        "warm_start": alone.warm_start.model_copy(update={"from_run": str(runs[0])}),
        "train": alone.train.model_copy(update={"steps": MOST_STEPS, "jitter": 0}),
    }
    found, budget = {"curriculum": accuracy(evaluations(runs[-1])[-1])}, sum(map(tokens_of, runs))
    for arm, sampling in (("direct", alone.sampling), ("mixed", config.sampling))[: 1 if number else 2]:
        own = {"sampling": sampling, "run": alone.run.model_copy(update={"dir": str(home / arm)})}
        before, *_, after = trained_for(alone.model_copy(update=changes | own), budget)
        found |= {"start": accuracy(before), arm: accuracy(after)}
    return found


def read_stage(run: Path) -> str:
    """Return the name of the stage that a run's folder is of."""
    return run.name.partition("_")[2]


def tokens_of(run: Path) -> float:
    """Return the tokens that the steps of a run generated."""
    return sum(row["tokens/generated"] or 0.0 for row in read_metrics(run / "metrics.jsonl"))


def trained_for(config: Config, budget: float) -> list[HeldOut]:
    """Train until so many tokens are generated, and return the evaluations on the held-out problems."""
    with open_training(config) as session:
        evaluate_first(session)
        while tokens_of(session.folder.path) < budget if session.step else True:
            finish_step(session, session.step, train_step(session, session.step))
        session.save_finished()
        evaluate(session, session.step)
    return evaluations(Path(config.run.dir))


def evaluations(run: Path) -> list[HeldOut]:
    """Return the evaluations of a run, in their order."""
    return evaluations_of(run / "held_out.jsonl")


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
