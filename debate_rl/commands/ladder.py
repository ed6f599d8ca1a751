"""``debate eval ladder RUN|RECIPE``: what debate adds to cheaper ways at equal cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from debate import Policy
from debate.settings import did_you_mean
from debate_rl.commands.console import plain_console, print_table, progress_of, with_interval, write_json
from debate_rl.commands.options import (
    JsonFile,
    JudgeOption,
    OutFolder,
    ProblemsOption,
    SeedOption,
    WeightsOption,
    limited,
    listed,
    named_and_set,
)
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.engines import open_summarizer
from debate_rl.evaluation.asking import (
    KeptPolicies,
    graded_problems,
    judge_of,
    kept_folder,
    policy_of,
    weights_named,
)
from debate_rl.evaluation.folder import FIGURES, identity, open_folder
from debate_rl.evaluation.tasks import in_place
from debate_rl.formatting import percent, share
from debate_rl.inference.tools import engine_of
from debate_rl.sampling.problems import HELD_OUT
from debate_rl.strategies.ladder import RUNGS, Climbed, Ladder, Rung, climb
from debate_rl.strategies.solving import SolvePlan
from debate_rl.strategies.work import Judge

COSTS = ("rung", "accuracy", "oracle gap", "no answer", "generated", "read")
EQUAL = ("rung", "equal generated", "less it", "equal total", "less it")


def ladder(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|RECIPE [KEY=VALUE...]",
            help="A run, or a recipe with its model as it is, a served one too.",
        ),
    ],
    rungs: Annotated[
        str, typer.Option(metavar="A,B", help="Only these rungs (docs/solve.md); default: all.")
    ] = "",
    samples: Annotated[int, typer.Option(min=1, help="Solutions that are selected from.")] = 16,
    on: Annotated[
        str | None, typer.Option(metavar="NAME[=FILE]", help="Use this data set in place of held_out's.")
    ] = None,
    problems: ProblemsOption = None,
    weights: WeightsOption = "newest",
    judge: JudgeOption = None,
    seed: SeedOption = 0,
    out: OutFolder = None,
    json: JsonFile = None,
) -> None:
    """Compare debate with cheaper methods at equal cost; run it again to continue."""
    found, folder = climbed(what, rungs, on, problems, samples, weights, judge, seed, out, RUNGS)
    show_tables(found)
    write_figures(found.plain(), folder, json)


def rungs_named(text: str, rungs: Mapping[str, Rung]) -> list[str]:
    """Return the rungs of a list a,b, in the order of the ladder; all for "". ValueError for an unknown one.

    >>> rungs_named("swiss, greedy", dict.fromkeys(("greedy", "majority", "swiss")))
    ['greedy', 'swiss']
    """
    names = listed(text)
    for name in names:
        if name not in rungs:
            valid = f"valid: {', '.join(rungs)}"
            raise ValueError(f"--rungs {name}: is not known; {did_you_mean(name, rungs, valid)}")
    return [name for name in rungs if name in names or not names]


def climbed(
    what: Sequence[str],
    names: str,
    on: str | None,
    problems: int | None,
    samples: int,
    weights: str,
    judge: str | None,
    seed: int,
    out: str | None,
    rungs: Mapping[str, Rung],
) -> tuple[Ladder, Path]:
    """Return the ladder of a run or recipe, and the folder that keeps its replies."""
    wanted = rungs_named(names, rungs)
    subjects, overrides = named_and_set(what)
    if len(subjects) != 1:
        raise ValueError("ladder: name one run or recipe, as in debate eval ladder runs/mine")
    overrides += [*(in_place(on) if on is not None else ()), *limited(problems)]
    run, config = open_run_or_recipe(subjects[0], overrides)
    path = weights_named(run, weights, subjects[0])
    environment, found = graded_problems(config, HELD_OUT)
    judges = None if judge is None else judge_of(judge)
    plan = SolvePlan.of(config, "majority", environment, samples=samples, seed=seed)  # a rung names its own
    kept_of = identity(config, found, path, (seed,)) | {"ladder": True}
    kept_of |= {"judge": judges and identity(judges[0], (), judges[1], ())}
    folder = Path(out) if out else kept_folder("evaluations", run, config, path, kept_of)
    with ExitStack() as stack:
        stack.enter_context(open_folder(folder, kept_of))
        tell = stack.enter_context(progress_of(str(folder)))
        kept, speaker = KeptPolicies(stack, folder), stack.enter_context(policy_of(config, path)).open()
        policy, asks = kept.of("replies", speaker), None
        if judges is not None:
            compares = stack.enter_context(policy_of(*judges)).open()
            asks = Judge(kept.of("replies_judge", compares), judges[0].debate)
        elif config.debate.tools != "none":  # no programs run in what a judge writes
            asks = Judge(kept.of("replies_judge", engine_of(speaker)), config.debate)

        @cache
        def summarizer() -> Policy | None:
            opened = open_summarizer(config)
            return None if opened is None else kept.of("replies_summarizer", opened)

        plan = replace(plan, summarizer=summarizer)
        return climb(found, wanted, plan, policy, judge=asks, progress=tell, rungs=rungs), folder


def show_tables(found: Ladder) -> None:
    """Print two tables, and what to know of them."""
    rungs = found.climbed.values()
    print_table([COSTS, *map(_cost_cells, rungs)], "what it costs")
    print_table([EQUAL, *map(_equal_cells, rungs)], "compared with self-consistency")
    say = plain_console().print
    say(f"{len(found.problems)} problems, seed {found.seed}, {found.samples} solutions to select from.")
    say("95% intervals are clustered by problem, differences paired by problem.")
    say("equal: self-consistency with as many solutions as cost the same; less it: the rung less that.")
    for name, one in found.climbed.items():
        if left := len(found.problems) - len(one.right):
            say(f"{name}: no verdict of the grader on {left} of the problems, which are left out.")
    for name, why in found.refused.items():
        say(f"{name}: not climbed: {why}")


def write_figures(figures: Mapping[str, object], folder: Path, json: str | None) -> None:
    """Write the figures into the folder, and as the option says."""
    write_json(folder / FIGURES, figures)
    if json is not None:
        write_json(json, figures)


def _cost_cells(one: Climbed) -> tuple[str, ...]:
    accuracy, gap = with_interval(one.accuracy), with_interval(one.oracle_gap, signed=True)
    spent = (f"{one.cost['generated']:,.0f}", f"{one.read:,.0f}")
    return (one.name, accuracy, gap, percent(one.missing, 0), *spent)


def _equal_cells(one: Climbed) -> tuple[str, ...]:
    cells = [one.name]
    for budget in one.equal:
        samples, worth, less = one.compared(budget)
        cells += [f"{share(worth.value)} of {samples:,.1f}", with_interval(less, signed=True)]
    return tuple(cells)
