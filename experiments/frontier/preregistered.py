"""Where votes pay: the experiment of README.md, whose plan and rules were written before it.

Three priors of the quick-start's task and the word problems; votes as they are and with errors put in,
majorities, labels and controls, all from one warm start for each prior and seed. Every seed has held-out
problems of its own: intervals over seeds hold for other problems too. What is done stays in ``--out``, and
the same command resumes. The whole takes 4.5 hours on 2 cores; ``--small`` is a cut of 11 minutes: votes,
TTRL and shuffled votes from one start. That is words, whose seeds differ least, so that three of them tell
the signs; ``--small trap`` and the others take more seeds. ``--check`` tests rule E, which was written after
runs of the others, on three priors and seeds that it was not written on. ``--jitter 3`` does every run three
times, from starts that differ by rounding; a seed's figure is then the mean of its runs, and intervals are
over the seeds.

    .venv/bin/python -m experiments.frontier.preregistered --json figures.json
    .venv/bin/python -m experiments.frontier.preregistered --check --json figures.json
    .venv/bin/python -m experiments.frontier.preregistered --small --seeds 7 13 99 --json figures.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.report import Figure, add_jitter, parser, report
from debate_rl.metrics.intervals import Estimate
from experiments.frontier.drawing import draw
from experiments.frontier.labels import worths
from experiments.frontier.results import Cell, cells_of, less
from experiments.frontier.rules import call_lines, judged_rules
from experiments.frontier.running import Plan, Prior, Wanted, joined, planned, run_plan
from experiments.frontier.signals import signal_named
from experiments.frontier.tables import (
    arm_table,
    cost_table,
    plain,
    rule_table,
    start_table,
    trace_table,
    worth_lines,
)

QUIET = ("logging.evaluation_transcripts=false",)
PRIORS = {
    "trap": ("warm_start.right=[0.2,0.1,0.14]", "warm_start.lure=[0.72,0.82,0.78]"),
    "split": ("warm_start.right=[0.45,0.3,0.35]", "warm_start.lure=[0.4,0.55,0.5]"),
    "good": ("warm_start.right=[0.68,0.55,0.6]", "warm_start.lure=[0.25,0.35,0.3]"),
}
"""What the warm start of each prior demonstrates; tuned on seeds 11 and 12 alone."""
CHECK = {
    "rare": ("warm_start.right=[0.32,0.2,0.25]", "warm_start.lure=[0.55,0.68,0.62]"),
    "even": ("warm_start.right=[0.57,0.43,0.48]", "warm_start.lure=[0.34,0.46,0.42]"),
    "sure": ("warm_start.right=[0.8,0.7,0.74]", "warm_start.lure=[0.14,0.22,0.18]"),
}
"""Between and beyond the priors above, as they come: nothing was run before they were written down."""
SEEDS, CHECK_SEEDS = [201, 202, 203, 204, 205], [206, 207, 208]
FLIPPED = (0.1, 0.2, 0.3, 0.4, 0.5)
DOSE = (*(f"flipped={q}" for q in FLIPPED), *(f"shared={q}" for q in (*FLIPPED, 0.65)))
MAJORITIES = ("ttrl", "ttrl_debate", "last_majority", "voted")
LABELS = (*(f"labels={n}" for n in (6, 12, 24, 48)), "truth=1.0")
CONTROLS = ("shuffled", "random", "own_answer")
LONG, LONG_STEPS = ("votes", "voted", "ttrl", "truth=1.0"), 70
CHECKED = (*MAJORITIES[:3], "flipped=0.3", "shared=0.5", "shared=0.65")
WORDS = ("ttrl", "ttrl_debate", "last_majority", "voted", "shuffled", "truth=1.0", "flipped=0.3")


def main() -> None:
    """Run what is missing, then print tables and rules, and write the figure."""
    args = arguments()
    wanted = small_arms(args.small) if args.small else check_arms() if args.check else [*arms()]
    seeds = args.seeds or (CHECK_SEEDS if args.check else SEEDS)
    plan = Plan(tuple(wanted), tuple(seeds), str(args.out), args.at_once, own_held_out=True)
    tell = partial(print, file=sys.stderr, flush=True)
    cells = cells_of(joined([run_plan(each, tell) for each in repeats(plan, args.jitter)]))
    rules, worth = judged_rules(cells), worths(cells)
    for title, rows in (
        ("arms", arm_table(cells)),
        ("what it took", cost_table(cells)),
        ("p_v, p_c and p_m by round", start_table(cells)),
        ("the longest runs", trace_table(cells)),
        ("rules", rule_table(rules)),
    ):
        print(f"\n{title}\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows))
    print("\n".join([*call_lines(rules), *worth_lines(worth)]))
    draw(cells, worth, args.out / "frontier.svg")
    (args.out / "frontier.json").write_text(json.dumps(plain(cells, rules, worth), indent=1) + "\n")
    report(
        f"frontier; {args.out}/frontier.json has all of it",
        [*figures_of(cells, args.small or "trap")],
        args.json,
    )


def repeats(plan: Plan, count: int) -> list[Plan]:
    """Return the plan this many times, from starts that differ by rounding; the first is as it is."""
    others = (replace(plan, out=f"{plan.out}/jitter_{n}", jitter=n, begins=plan.out) for n in range(1, count))
    return [plan, *others]


def arguments() -> argparse.Namespace:
    result = parser("Where votes pay: votes, majorities and labels from one start.")
    cut = result.add_mutually_exclusive_group()
    cut.add_argument(
        "--small", nargs="?", const="words", choices=("words", *PRIORS), help="three arms of a start"
    )
    cut.add_argument("--check", action="store_true", help="rule E on other priors and seeds")
    result.add_argument("--seeds", type=int, nargs="+", default=None)
    result.add_argument("--out", type=Path, help="default: runs/frontier, frontier_small or frontier_check")
    result.add_argument("--at-once", type=int, default=2, help="runs at a time")
    add_jitter(result)
    args = result.parse_args()
    which = f"_small/{args.small}" if args.small else "_check" if args.check else ""
    args.out = args.out or Path(f"runs/frontier{which}")
    return args


def prior(name: str) -> Prior:
    if name == "words":
        return Prior(name, "quickstart_words", QUIET)
    return Prior(name, "quickstart", (*(PRIORS | CHECK)[name], *QUIET))


def small_arms(name: str) -> list[Wanted]:
    return planned(prior(name), ("ttrl", "shuffled"))


def check_arms() -> list[Wanted]:
    return [one for name in CHECK for one in planned(prior(name), CHECKED)]


def arms() -> Iterator[Wanted]:
    """Yield all arms; those that the first rules need come first."""
    for name in PRIORS:
        yield from planned(prior(name), (*MAJORITIES, *DOSE))
    yield from planned(prior("trap"), (*LABELS, "routed=0.125", *CONTROLS))[1:]
    yield from planned(prior("words"), WORDS)
    for name in LONG:
        yield Wanted(prior("trap"), signal_named(name), LONG_STEPS)


def figures_of(cells: Sequence[Cell], plain_name: str) -> Iterator[Figure]:
    """Yield by prior votes minus TTRL and minus shuffled votes, and the gain of every cell.

    The differences of the prior ``plain_name`` have names without it.
    """
    for cell in cells:
        where = "_".join(word for word in (cell.prior, cell.signal, str(cell.steps)) if word)
        for name, found in (("gain", cell.gain), ("winner_gain", cell.winner_gain)):
            if found is not None:
                yield _figure(f"{where}_{name}", found)
        if cell.jitter_sd is not None:
            yield Figure(f"{where}_jitter_sd", cell.jitter_sd, "share", len(cell.seeds))
        if cell.signal != "votes":
            continue
        for other in cells:
            if other.signal in ("ttrl", "shuffled") and (other.prior, other.steps) == (
                cell.prior,
                cell.steps,
            ):
                found = less(cell, other)
                first = cell.prior == plain_name and cell.steps < LONG_STEPS
                name = f"votes_minus_{other.signal}"
                if found is not None:
                    yield _figure(name if first else f"{where}_minus_{other.signal}", found)
                    if first:
                        yield Figure(f"{name}_low", found.low, "share", found.n)


def _figure(name: str, found: Estimate) -> Figure:
    return Figure(name, found.value, "share", found.n, found.low, found.high)


if __name__ == "__main__":
    main()
