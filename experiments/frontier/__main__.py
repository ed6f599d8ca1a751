"""Votes, majorities and labels from one start, and what votes are worth.

python -m experiments.frontier quickstart --signals votes,ttrl,truth=0.25 --seeds 7,13 --at-once 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.console import NARROW, plain_console, text_table, wide_console, write_json
from debate_rl.commands.main import run_alone
from debate_rl.commands.options import JsonFile, Overrides
from debate_rl.formatting import counted

if TYPE_CHECKING:
    from experiments.frontier.results import Cell
    from experiments.frontier.running import Plan

SIGNALS = "votes,ttrl,voted,shuffled,labels=12,labels=48,truth=1"


def frontier(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML recipe, shipped or one's own.")],
    changes: Overrides = None,
    signals: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="What arms learn from: votes (always one), ttrl, ttrl_debate, last_majority, voted, "
            "shuffled, own_answer, random; labels= followed by a number of problems; truth=, routed=, "
            "flipped= and shared= with a share.",
        ),
    ] = SIGNALS,
    seeds: Annotated[
        str,
        typer.Option(metavar="N,M", help="The seeds of each arm. Without any the recipe's and four more."),
    ] = "",
    out: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="Where runs and tables lie; runs/frontier/RECIPE unless given."),
    ] = "",
    at_once: Annotated[
        int, typer.Option(min=1, max=256, help="Runs at a time, each a process of its own.")
    ] = 1,
    devices: Annotated[
        str, typer.Option(metavar="0,1", help="A run on each of these GPUs at a time (CUDA_VISIBLE_DEVICES).")
    ] = "",
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the arms and their settings, and start nothing.")
    ] = False,
    json: JsonFile = None,
) -> None:
    """Train arms without labels, with some and with all from one start; the same command resumes.

    p_v and p_m are measured before, and say which arm should gain: experiments/frontier/README.md.
    """
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config
    from envs.families import FAMILIES
    from experiments.frontier.results import cells_of
    from experiments.frontier.running import Plan, Prior, check_plan, planned, run_plan

    given = tuple(changes or ())
    config = load_config(Config, recipe, given)
    wanted = planned(Prior("", recipe, given), [name.strip() for name in signals.split(",") if name.strip()])
    numbers = _seeds(seeds) or tuple(range(config.seed, config.seed + 5))
    home = out or f"runs/frontier/{Path(recipe).stem}"
    fixed = any(one.startswith("held_out.seed=") for one in given)
    whole = Plan(
        tuple(wanted),
        numbers,
        home,
        at_once,
        tuple(name for name in devices.split(",") if name),
        own_held_out=config.env.kind in FAMILIES and not fixed,
    )
    check_plan(whole)
    say = plain_console().print
    say(f"{home}: {counted(len(wanted), 'arm')} x {counted(len(numbers), 'seed')} of {recipe}")
    if plan:
        say(
            *(f"  {one.name}: {one.signal.words}\n    {' '.join(one.signal.overrides)}" for one in wanted),
            sep="\n",
        )
        return
    ran = run_plan(whole, plain_console(stderr=True).print)
    failed = {f"{one.wanted.name}, seed {seed}": why for one in ran for seed, why in one.missing.items()}
    _show(whole, cells_of(ran), failed, json)
    if failed:
        raise typer.Exit(1)


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(word) for word in text.split(",") if word.strip()))
    except ValueError as error:
        raise ValueError(f"--seeds {text}: whole numbers with commas between them, as in 7,13") from error


def _show(plan: Plan, cells: Sequence[Cell], failed: Mapping[str, str], json: str | None) -> None:
    from experiments.frontier.drawing import draw
    from experiments.frontier.labels import worths
    from experiments.frontier.rules import call_lines, judged_rules
    from experiments.frontier.tables import (
        arm_table,
        cost_table,
        filled,
        plain,
        rule_table,
        start_table,
        worth_lines,
    )

    rules, worth = judged_rules(cells), worths(cells)
    tables = {
        "arms": (filled(arm_table(cells)), "lr"),
        "what it took": (filled(cost_table(cells)), "lr"),
        "p_v, p_c and p_m by round": (filled(start_table(cells)), "lr"),
        "rules": (rule_table(rules), "lllr"),
    }
    say = plain_console().print
    for name, (rows, align) in tables.items():
        if not rows[1:]:  # where no pair is decidable there is no p_v
            say(f"{name}: none")
            continue
        width = sum(max(len(row[column]) + 1 for row in rows) for column in range(len(rows[0])))
        table = text_table(rows[0], rows[1:], align=align, title=name, title_justify="left", **NARROW)
        table.columns[0].no_wrap = True
        wide_console(width + 1).print(table)
    seeds = (
        "over seeds and held-out problems"
        if len(plan.seeds) > 1
        else "not known: one seed says nothing of others"
    )
    say(*call_lines(rules), *worth_lines(worth), sep="\n")
    say("p_v and p_c of an arm: of round 0, before training; first answer: accuracy in round 0, at the end")
    say(f"95% intervals {seeds}; differences are by seed and problem. Those of labels: over the seeds alone.")
    say("A rule is not shown where an interval is too wide to tell, and fails where one tells the opposite.")
    figure = Path(plan.out) / "frontier.svg"
    draw(cells, worth, figure)
    say(f"figure: {figure}")
    for name, why in failed.items():
        say(f"failed: {name}: {why}")
    if json is not None:
        known = {"schema": 1, "out": plan.out, "seeds": plan.seeds, "failed": failed}
        write_json(json, {**known, **plain(cells, rules, worth)})


if __name__ == "__main__":
    run_alone(frontier, "python -m experiments.frontier")
