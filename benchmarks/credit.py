"""Whose credit an evaluation gets, and by what a stream's loss is divided: the quick-start under each choice.

Two tasks. "quickstart" is the shipped recipe, whose warm start checks well. In "careless" the planted checks
believe in the solvers' habit, there is no final ballot, and no stronger KL holds judges back than generators:
who is to judge better has to learn it in debate turns. All choices of a seed share its warm start and its
own held-out problems, so they are compared by their differences within seeds. ``--jitter N`` does every run N
times, from starts that differ by rounding. Each run's figures are kept in ``--out``, and the same command
resumes. A warm start takes two minutes on one core, and training from it one.

    .venv/bin/python benchmarks/credit.py --tasks careless --json figures.json
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from multiprocessing import get_context
from pathlib import Path

from report import Figure, Repeat, add_jitter, over_seeds, parser, repeated, repeats, report

from debate import run_debates
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.evaluation.grading import grade_debate
from debate_rl.judge_attack.judging import judge_accuracy
from debate_rl.metrics.debates import debate_metrics
from debate_rl.training.loop import train_steps
from debate_rl.training.open_or_resume import open_training
from debate_rl.training.run import Run
from rewards import score_debate

TASKS: Mapping[str, tuple[str, ...]] = {
    "careless": (
        "warm_start.misjudge=0.8",
        "debate.final_ballot=false",
        "learner.beta_judge=0.02",
        "train.steps=15",
    ),
    "quickstart": (),
}
CHOICES: Mapping[str, tuple[str, str]] = {
    "generator": ("generator", "joint"),
    "judge": ("judge", "joint"),
    "both": ("both", "joint"),
    "judge-stream": ("judge", "stream"),
}
"""``advantages.evaluation`` and ``learner.normalise``."""
FIRST = "generator"
COMPARED = (("judge", FIRST), ("both", FIRST), ("judge-stream", "judge"))
Figures = dict[str, float]


def main() -> None:
    """Run what is missing; print the means over seeds, and the differences within them."""
    args = arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    every = repeats(args.seeds, args.jitter)
    for repeat, (task, choice) in product(every, [*product(args.tasks, CHOICES)]):
        if not file_of(task, choice, repeat, args).exists():
            process = get_context("spawn").Process(target=run_once, args=(task, choice, repeat, args))
            process.start()
            process.join()
    for task in args.tasks:
        runs = {choice: {one: read_run(task, choice, one, args) for one in every} for choice in CHOICES}
        path = args.json and args.json.with_stem(f"{args.json.stem}_{task}")
        report(f"{task}: means over {len(args.seeds)} seeds, 95% intervals", list(figures(runs)), path)


def arguments() -> argparse.Namespace:
    result = parser("Whose credit an evaluation gets, and by what a stream's loss is divided.")
    result.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    result.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    result.add_argument("--out", type=Path, default=Path("runs/credit"))
    result.add_argument("--start", type=int, help="take the warm start of this seed for all")
    add_jitter(result)
    return result.parse_args()


def file_of(task: str, choice: str, repeat: Repeat, args: argparse.Namespace) -> Path:
    """Return the file of a run's figures, the name of its folder without the suffix."""
    seed, number = repeat
    return args.out / f"{task}-{choice}-seed_{seed}{repeated(number)}.json"


def run_once(task: str, choice: str, repeat: Repeat, args: argparse.Namespace) -> None:
    """Train once and write the figures before and after, in a process of its own."""
    evaluation, normalise = CHOICES[choice]
    path, (seed, number) = file_of(task, choice, repeat, args), repeat
    start = file_of(task, FIRST, (seed if args.start is None else args.start, 0), args).with_suffix("")
    changes = [f"seed={seed}", f"held_out.seed={seed}", f"run.dir={path.with_suffix('')}", "held_out.every=0"]
    changes += [
        f"train.jitter={number}",
        f"advantages.evaluation={evaluation}",
        f"learner.normalise={normalise}",
        *TASKS[task],
    ]
    if (start / "warm_start").exists():
        changes.append(f"warm_start.from_run={start}")
    with open_training(load_config(Config, "quickstart", changes)) as session:
        before = measured(session)
        train_steps(session)
        found = {"before": before, "after": measured(session)}
    path.write_text(json.dumps(found), encoding="utf-8")


def measured(session: Run) -> Figures:
    """Return held-out figures: of one debate a problem, and of the judge, greedy, on fixed pairs."""
    config, problems = session.config, session.data.held_out
    debates = run_debates(problems, session.policy, config.debate, seed=derive_seed(0, "held out"))
    correct = [grade_debate(session.data.eval_environment, debate, Counter())[1] for debate in debates]
    rewards = [
        score_debate(debate, table, config.rewards) for debate, table in zip(debates, correct, strict=True)
    ]
    held = debate_metrics(debates, correct, rewards, evaluation=config.advantages.evaluation)
    judged = judge_accuracy(
        session.policy, config.env.kind, problems, config=config.debate, greedy=True, seed=0
    )
    names = {"accuracy": "accuracy/round_0", "winner accuracy": "winner/accuracy"}
    return {title: held[name] for title, name in names.items()} | {"judge accuracy": judged.value}


def read_run(task: str, choice: str, repeat: Repeat, args: argparse.Namespace) -> dict[str, Figures]:
    return json.loads(file_of(task, choice, repeat, args).read_text(encoding="utf-8"))


def figures(runs: Mapping[str, Mapping[Repeat, Mapping[str, Figures]]]) -> Iterator[Figure]:
    """Yield each figure before and after under each choice, and how much more than under another."""
    for name in next(iter(runs[FIRST].values()))["before"]:
        yield from over_seeds(
            f"{name}, before", {one: run["before"][name] for one, run in runs[FIRST].items()}
        )
        for choice, own in runs.items():
            yield from over_seeds(f"{name}, {choice}", {one: run["after"][name] for one, run in own.items()})
        for choice, other in COMPARED:
            gains = {
                one: run["after"][name] - runs[other][one]["after"][name] for one, run in runs[choice].items()
            }
            yield from over_seeds(f"{name}, {choice} - {other}", gains, signed=True)


if __name__ == "__main__":
    main()
