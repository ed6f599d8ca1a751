"""``debate eval``: compare direct solutions, debate and self-consistency at equal tokens."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from debate_rl.commands.console import plain_console, progress_of
from debate_rl.commands.eval_tables import show
from debate_rl.commands.judge_pairs import judge_annotated
from debate_rl.commands.options import (
    JsonFile,
    JudgeOption,
    OnOption,
    OutFolder,
    ProblemsOption,
    SeedOption,
    TableFile,
    WeightsOption,
    limited,
    listed,
    named_and_set,
    positive,
)
from debate_rl.commands.strategies import SAMPLES, compare
from debate_rl.evaluation.tasks import (
    EvalOptions,
    EvalTask,
    Evaluated,
    Subject,
    eval_sets,
    perform,
    tasks_of,
)
from debate_rl.runs.checkpoint import step_of
from debate_rl.runs.weights import named_weights

WATCH_S = 10.0
"""Seconds between checks for a new checkpoint."""
MAX_SAMPLES = 10_000


Named = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN|CONFIG... [KEY=VALUE...]",
        help="Folders of runs, or recipes (evaluates the untrained model). held_out.* sets the problems.",
    ),
]


def evaluate(
    what: Named,
    weights: Annotated[
        str | None,
        typer.Option(
            show_default="start,newest",
            help="newest, best, start (before training), all, the step of a checkpoint, or a list a,b.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Evaluate on the data sets of a suite (docs/evaluation.md)."),
    ] = None,
    on: OnOption = None,
    problems: ProblemsOption = None,
    seed: SeedOption = 0,
    seeds: Annotated[
        int,
        typer.Option(
            callback=positive, help="Number of debates per problem, with consecutive seeds from --seed."
        ),
    ] = 1,
    samples: Annotated[
        int, typer.Option(help="Minimum number of direct solutions per problem, for pass@k.")
    ] = 0,
    direct: Annotated[
        bool,
        typer.Option(
            "--direct", help="Hold no debates: sample only direct solutions, --samples per problem."
        ),
    ] = False,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Also sample one direct solution at temperature 0.")
    ] = False,
    modes: Annotated[
        str, typer.Option(metavar="A,B", help="Also grade direct solutions in these modes (docs/grading.md).")
    ] = "",
    sweep: Annotated[
        str,
        typer.Option(metavar="KEY=A,B", help="Evaluate with each of these values, e.g. shots.count=0,4,8."),
    ] = "",
    strategies: Annotated[
        str,
        typer.Option(metavar="A,B", help="Compare these strategies, or all of them (docs/solve.md)."),
    ] = "",
    judge: JudgeOption = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Instead, judge the starred and labeled pairs of this run (docs/report.md).",
        ),
    ] = None,
    out: OutFolder = None,
    json: JsonFile = None,
    table: TableFile = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Evaluate each new checkpoint of a run in training.")
    ] = False,
) -> None:
    """Compare direct solutions, debate and self-consistency at equal tokens. The same command resumes."""
    options = EvalOptions(
        *(tuple(on or ()), seed, seeds, samples, greedy, tuple(listed(modes)), out, direct, suite, sweep)
    )
    subjects = subjects_of(what, problems, weights, options, watch=watch)
    if pairs is not None:
        others = (watch, strategies, judge, table, problems)
        if options != EvalOptions(seed=seed) or any(others):
            raise ValueError(f"--pairs {pairs}: can only be given with --weights, --seed and --json")
        judge_annotated(pairs, subjects, weights, seed=seed, json=json)
        return
    if strategies:
        compare(tasks_of(subjects, weights or "newest", options), strategies, judge=judge, json=json)
        return
    if judge is not None:
        raise ValueError(f"--judge {judge}: is only used with --strategies")
    shown = partial(show, json_file=json, table_file=table, compact=options.compact)
    if watch:
        _watch(subjects[0], options, shown)
        return
    results = _evaluate_all(subjects, weights, options)
    shown(results)
    if any(one.error is not None for one in results):
        raise typer.Exit(1)


def ladder(
    what: Named,
    rungs: Annotated[
        str, typer.Option(metavar="A,B", help="Methods to compare (docs/solve.md); default: all.")
    ] = "ladder",
    samples: Annotated[int, typer.Option(min=1, help="Number of solutions to select from.")] = SAMPLES,
    on: OnOption = None,
    problems: ProblemsOption = None,
    weights: WeightsOption = "newest",
    judge: JudgeOption = None,
    seed: SeedOption = 0,
    out: OutFolder = None,
    json: JsonFile = None,
) -> None:
    """Compare debate with cheaper methods at equal cost. The same command resumes."""
    options = EvalOptions(tuple(on or ()), seed, samples=samples, out=out)
    subjects = subjects_of(what, problems, weights, options)
    compare(tasks_of(subjects, weights, options), rungs, judge=judge, json=json)


def _evaluate_all(subjects: Sequence[Subject], weights: str | None, options: EvalOptions) -> list[Evaluated]:
    """Return the figures of the named weights on each data set. If all fail, raise the first error."""
    before_and_after = options.out is None and all(subject.run for subject in subjects)
    usual = "start,newest" if before_and_after else "newest"
    results = _performed(tasks_of(subjects, weights or usual, options))
    if results[0].error is not None and all(one.error is not None for one in results):
        raise results[0].error
    return results


def _performed(tasks: Sequence[EvalTask]) -> list[Evaluated]:
    return perform(tasks, progress_of, plain_console(stderr=True).print)


def subjects_of(
    words: Sequence[str],
    problems: int | None,
    weights: str | None,
    options: EvalOptions,
    *,
    watch: bool = False,
) -> list[Subject]:
    """Return the named runs and recipes. Raise ValueError if the words and options do not fit together."""
    names, overrides = named_and_set(words)
    overrides += limited(problems)
    if not names:
        raise ValueError("eval: name a recipe or the folder of a run, as in debate eval runs/debate")
    if not 0 <= options.samples <= MAX_SAMPLES:
        raise ValueError(f"--samples {options.samples}: must be from 0 to {MAX_SAMPLES}")
    if twice := [name for name, count in Counter([*names, *options.on]).items() if count > 1]:
        raise ValueError(f"{twice[0]}: is given twice")
    named = weights or ""
    several = len(names) > 1 or len(options.on) > 1 or named == "all" or "," in named or options.compact
    if options.out is not None and (several or not options.out):
        raise ValueError("--out: only for a single evaluation; leave out --out for several evaluations")
    if watch and (len(names) != 1 or weights is not None):
        raise ValueError("--watch: evaluates all checkpoints of a single run; name one run and no --weights")
    return [Subject(name, tuple(overrides)) for name in names]


def _watch(subject: Subject, options: EvalOptions, shown: Callable[[Sequence[Evaluated]], None]) -> None:
    """Evaluate each new checkpoint of a run until its last step. Ctrl-C ends it."""
    run, steps = subject.run, subject.config.train.steps
    if run is None:
        raise ValueError(f"--watch: {subject.name} is not the folder of a run")
    sets, last, results = eval_sets(subject, options), -1, list[Evaluated]()
    seen: set[Path | None] = {None} if subject.begins_as_it_is else set()
    if subject.begins_as_it_is:
        results += _performed([EvalTask(subject, one, None, options) for one in sets])
    while last < steps:
        try:
            new = [weights for weights in named_weights(run, "all") if weights not in seen]
        except ValueError:  # there is no checkpoint yet
            new = []
        for weights in new:
            seen.add(weights)
            found = _performed([EvalTask(subject, one, weights, options) for one in sets])
            if not weights.exists():
                continue  # the run has removed it: train.keep_last
            results += found
            for one in results:
                if one.error is not None:
                    raise one.error
            shown(results)
            if weights.parent.name == "checkpoints":
                last = max(last, step_of(weights))
        if last < steps:
            time.sleep(WATCH_S)
