"""``debate eval ladder RUN|RECIPE``: what debate adds to cheaper ways at equal cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.console import NARROW, plain_console, text_table, wide_console, write_json
from debate_rl.commands.options import JsonFile

if TYPE_CHECKING:
    from debate import Policy
    from debate_rl.config import Config
    from debate_rl.metrics.intervals import Estimate
    from debate_rl.strategies.ladder import Climbed, Ladder, Rung
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
        str, typer.Option(metavar="A,B", help="Only these rungs (docs/ladder.md); default: all.")
    ] = "",
    samples: Annotated[int, typer.Option(min=1, help="Solutions that are selected from.")] = 16,
    on: Annotated[
        str | None, typer.Option(metavar="NAME[=FILE]", help="Use this data set in place of held_out's.")
    ] = None,
    problems: Annotated[
        int | None, typer.Option(min=1, help="So many problems; default: held_out.limit.")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="Of a run: newest, best, start, or the step of a checkpoint.")
    ] = "newest",
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|RECIPE|JUDGE",
            help="Who compares solutions; JUDGE: a folder by debate export --judge; default: the same model.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is sampled.")] = 0,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Keep replies and figures in this folder.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Compare debate with cheaper methods at equal cost; run it again to continue."""
    from debate_rl.strategies.ladder import RUNGS

    found, folder = climbed(what, rungs, on, problems, samples, weights, judge, seed, out, RUNGS)
    show_tables(found)
    write_figures(found.plain(), folder, json)


def _words(what: Sequence[str]) -> list[str]:
    """Return the subject and its settings; ValueError for none, or several."""
    names = [word for word in what if "=" not in word]
    if len(names) != 1:
        raise ValueError("ladder: name one run or recipe, as in debate eval ladder runs/mine")
    return [names[0], *(word for word in what if "=" in word)]


def _held_out(on: str | None, problems: int | None) -> list[str]:
    from debate_rl.commands.eval_sets import in_place

    limit = [] if problems is None else [f"held_out.limit={problems}"]
    return [*(in_place(on) if on is not None else ()), *limit]


def rungs_named(text: str, rungs: Mapping[str, Rung]) -> list[str]:
    """Return the rungs of a list a,b, in the order of the ladder; all for "". ValueError for an unknown one.

    >>> rungs_named("swiss, greedy", dict.fromkeys(("greedy", "majority", "swiss")))
    ['greedy', 'swiss']
    """
    from debate.settings import did_you_mean

    names = [name.strip() for name in text.split(",") if name.strip()]
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
    from debate_rl.commands.eval_sets import policy_of, progress_of
    from debate_rl.commands.eval_strategies import graded_problems
    from debate_rl.commands.solve import judge_of, weights_named
    from debate_rl.config.recipes import open_run_or_recipe
    from debate_rl.evaluation.folder import KeptReplies, default_folder, identity, open_folder
    from debate_rl.problems import HELD_OUT
    from debate_rl.strategies.ladder import climb
    from debate_rl.strategies.solving import SolvePlan

    wanted = rungs_named(names, rungs)
    subject, *overrides = _words(what)
    run, config = open_run_or_recipe(subject, [*overrides, *_held_out(on, problems)])
    path = weights_named(run, weights, subject)
    environment, found = graded_problems(config, HELD_OUT)
    judges = None if judge is None else judge_of(judge)[1:]
    plan = SolvePlan.of(config, "majority", environment, samples=samples, seed=seed)  # a rung names its own
    what = identity(config, found, path, (seed,)) | {"ladder": True}
    what |= {"judge": judges and identity(judges[0], (), judges[1], ())}
    home = run / "evaluations" if run else Path("evaluations") / Path(config.run.dir).name
    folder = Path(out) if out else default_folder(home, path, what)
    with ExitStack() as stack:
        stack.enter_context(open_folder(folder, what))
        tell = stack.enter_context(progress_of(str(folder)))
        speaker = stack.enter_context(policy_of(config, path)).open()
        policy = stack.enter_context(KeptReplies(speaker, folder / "replies.jsonl", stay=True))
        asks = _judge(stack, folder, config, speaker, judges)
        plan = replace(plan, summarizer=_summarizer(stack, folder, config))
        ladder = climb(found, wanted, plan, policy, judge=asks, progress=tell, rungs=rungs)
        return ladder, folder


def _judge(
    stack: ExitStack,
    folder: Path,
    config: Config,
    speaker: Policy,
    named: tuple[Config, Path | None] | None,
) -> Judge | None:
    """Return who compares solutions, its replies kept; None where it is the model itself.

    No programs run in what a judge writes.
    """
    from debate_rl.commands.eval_sets import policy_of
    from debate_rl.evaluation.folder import KeptReplies
    from debate_rl.inference.tools import engine_of
    from debate_rl.strategies.work import Judge

    if named is None and config.debate.tools == "none":
        return None
    judge = engine_of(speaker) if named is None else stack.enter_context(policy_of(*named)).open()
    kept = KeptReplies(judge, folder / "replies_judge.jsonl", stay=True)
    return Judge(stack.enter_context(kept), (config if named is None else named[0]).debate)


def _summarizer(stack: ExitStack, folder: Path, config: Config) -> Callable[[], Policy | None]:
    """Return what opens a recipe's summariser, once, its replies kept."""
    from debate_rl.engines import open_summarizer
    from debate_rl.evaluation.folder import KeptReplies

    @cache
    def opened() -> Policy | None:
        policy = open_summarizer(config)
        if policy is None:
            return None
        kept = KeptReplies(policy, folder / "replies_summarizer.jsonl", stay=True)
        return stack.enter_context(kept)

    return opened


def show_tables(found: Ladder) -> None:
    """Print two tables, and what to know of them."""
    rungs = found.climbed.values()
    print_table(COSTS, [_cost_cells(one) for one in rungs], "what it costs")
    equal = [_equal_cells(one) for one in rungs]
    print_table(EQUAL, equal, "compared with self-consistency")
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
    from debate_rl.evaluation.folder import FIGURES

    write_json(folder / FIGURES, figures)
    if json is not None:
        write_json(json, figures)


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], title: str, *, align: str = "lr", wrap: bool = False
) -> None:
    """Print a table that a pipe takes at any width; ``wrap``: its first column may be wrapped."""
    if not rows:
        return
    width = sum(max(len(line[at]) for line in (heads, *rows)) + 3 for at in range(len(heads)))
    table = text_table(heads, rows, align=align, title=title, title_justify="left", **NARROW)
    table.columns[0].no_wrap = not wrap
    wide_console(width + 1).print(table)


def _cost_cells(one: Climbed) -> tuple[str, ...]:
    from debate_rl.formatting import percent

    return (
        one.name,
        share_of(one.accuracy),
        signed(one.oracle_gap),
        percent(one.missing, 0),
        f"{one.cost['generated']:,.0f}",
        f"{one.read:,.0f}",
    )


def _equal_cells(one: Climbed) -> tuple[str, ...]:
    from debate_rl.formatting import share

    cells = [one.name]
    for budget in one.equal:
        samples, worth, less = one.compared(budget)
        cells += [f"{share(worth.value)} of {samples:,.1f}", signed(less)]
    return tuple(cells)


def share_of(estimate: Estimate) -> str:
    """Return a share with its interval."""
    from debate_rl.formatting import interval, share

    bounds = interval(max(0.0, estimate.low), min(1.0, estimate.high), share)
    return f"{share(estimate.value)} ({bounds})" if bounds else share(estimate.value)


def signed(estimate: Estimate) -> str:
    """Return a difference with its interval."""
    from debate_rl.formatting import interval, signed_share

    bounds = interval(max(-1.0, estimate.low), min(1.0, estimate.high), signed_share)
    return f"{signed_share(estimate.value)} ({bounds})" if bounds else signed_share(estimate.value)
