"""A judge that debate trained, exported, on the samples of a stronger solver: what it selects.

.venv/bin/python benchmarks/judge_selector.py --seeds 0 1 2 --json selector.json

The judge is that of the quick-start (7 steps). The solver begins with the same warm start and is trained
three times as long by the same recipe with another seed, and so is its own judge. Of each problem the solver
writes 16 solutions; a Swiss tournament and best of n by either judge stand beside the solver's
self-consistency of as many generated tokens, and of as many tokens read and generated. Each seed has its 95%
interval over problems; "mean" is over seeds, with the t interval of their differences. Runs and replies are
kept in --home, those of solvers and their replies by their steps, and the same command goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from report import Figure, parser, report

from debate_rl.config import Config
from debate_rl.config.recipes import load_config, open_run_or_recipe, read_run_config
from debate_rl.engines import open_policy
from debate_rl.evaluation.folder import KeptReplies
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.runs.export import export_run
from debate_rl.runs.weights import newest_weights
from debate_rl.sampling.load_problems import load_held_out
from debate_rl.strategies.equal_cost import BUDGETS, CONTENDERS, Measured, compare_strategies, gap
from debate_rl.strategies.work import Judge, SolvePlan
from debate_rl.training.loop import train

SELECTED = ("best_of_n", "swiss")
Values = Mapping[str, float]


def main() -> None:
    arguments = parser(__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument("--home", type=Path, default=Path("runs/judge_selector"))
    arguments.add_argument("--problems", type=int, default=300)
    arguments.add_argument("--steps", type=int, default=21, help="of the solver; the judge has 7")
    args = arguments.parse_args()
    found: dict[str, list[Estimate]] = {}
    figures: list[Figure] = []
    for seed in args.seeds:
        for name, estimate in of_seed(args.home, seed, args.problems, args.steps).items():
            found.setdefault(name, []).append(estimate)
            figures.append(figure(f"seed_{seed}/{name}", estimate))
    for name, by_seed in found.items():
        seeds = clustered_mean([one.value for one in by_seed], range(len(by_seed)), signed=True)
        figures.append(figure(f"mean/{name}", seeds))
    title = f"an exported judge on a stronger solver, {args.problems} held-out problems"
    report(title, figures, args.json)


def figure(name: str, estimate: Estimate) -> Figure:
    return Figure(name, estimate.value, "share", estimate.n, estimate.low, estimate.high)


def of_seed(home: Path, seed: int, problems: int, steps: int) -> dict[str, Estimate]:
    """Return the accuracies of a seed and the differences that matter, by name."""
    judge = trained(home / f"judge-{seed}", seed, [])
    warm = [f"warm_start.from_run={judge}", f"train.steps={steps}"]
    solver = trained(home / f"solver-{seed}-{steps}", seed + 1000, warm)
    folder = home / f"exported-{seed}"
    export_run(judge, read_run_config(judge), folder, judge=True)
    of_judge = climbed(judge, None, problems, ["single"])
    own = climbed(solver, None, problems, ["single", "majority", *SELECTED])
    by_judge = climbed(solver, folder, problems, list(SELECTED))
    figures = {
        "judge/one_solution": mean(of_judge["single"].right),
        "solver/one_solution": mean(own["single"].right),
        "solver/majority": mean(own["majority"].right),
    }
    for name in SELECTED:
        for whose, rungs in (("own", own), ("exported", by_judge)):
            one = rungs[name]
            figures[f"{name}/{whose}"] = mean(one.right)
            for budget in BUDGETS:
                less = gap(one.right, one.equal[budget].right)
                figures[f"{name}/{whose}_minus_self_consistency/{budget}"] = less
        figures[f"{name}/exported_minus_own"] = gap(by_judge[name].right, own[name].right)
    return figures


def mean(right: Values) -> Estimate:
    return clustered_mean(list(right.values()), list(right))


def trained(run: Path, seed: int, more: Sequence[str]) -> Path:
    """Return the folder of a finished run of the quick-start's recipe; what is there is not trained again."""
    settings = [f"run.dir={run}", f"seed={seed}", "held_out.every=0", "logging.progress=none", *more]
    config = load_config(Config, "quickstart", settings)
    if not (run / "checkpoints" / f"step_{config.train.steps:06d}").is_dir():
        train(config)
    return run


def climbed(run: Path, judge: Path | None, problems: int, names: Sequence[str]) -> Mapping[str, Measured]:
    """Return the rungs of a run's newest weights; ``judge``: the folder of another one that compares."""
    _, config = open_run_or_recipe(str(run), [f"held_out.limit={problems}"])
    environment, held_out = load_held_out(config)
    plan, contenders = (
        SolvePlan.of(config, "majority", environment),
        {name: CONTENDERS[name] for name in names},
    )
    with KeptReplies(open_policy(config, newest_weights(run)), run / "selector.jsonl", stay=True) as policy:
        if judge is None:
            return compare_strategies(held_out, contenders, plan, policy).measured
        _, its = open_run_or_recipe(str(judge), ())
        with KeptReplies(open_policy(its, None), run / "selector_judge.jsonl", stay=True) as kept:
            own = Judge(kept, its.debate)
            return compare_strategies(held_out, contenders, plan, policy, judge=own).measured


if __name__ == "__main__":
    main()
