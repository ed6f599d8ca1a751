"""``debate eval``: direct solutions, debate and self-consistency at equal tokens, with intervals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.eval_sets import (
    EvalOptions,
    EvalTask,
    Subject,
    eval_sets,
    evaluate_on,
    policy_of,
    step_learnt,
)
from debate_rl.commands.options import JsonFile, writable

if TYPE_CHECKING:
    from debate_rl.config import Config
    from debate_rl.evaluation.play import Unopened
    from debate_rl.evaluation.report import Results

WATCH_S = 10.0
"""Seconds between looks for a new checkpoint."""
MAX_SAMPLES = 10_000
BEFORE_AND_AFTER = "start,newest"
STRATEGIES = "strategies="
"""What a word begins with that names strategies, as --strategies does."""


def evaluate(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|CONFIG... [KEY=VALUE...]",
            help="Folders of runs, or recipes (their model before training). held_out.* sets the problems.",
        ),
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            show_default="start,newest",
            help="newest, best, start (before training), all, the step of a checkpoint, or several (a,b).",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Evaluate on the sets of a suite (docs/evaluation.md)."),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=FILE]",
            help="Use this data set in place of held_out's, or this set of the suite. Repeat for more.",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Hold this many debates on each problem, each with its own seed.")
    ] = 1,
    samples: Annotated[
        int, typer.Option(help="Sample at least this many direct solutions of each problem, for pass@k.")
    ] = 0,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="Hold no debates: solutions of one agent alone, --samples of each."),
    ] = False,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Also sample one direct solution at temperature 0.")
    ] = False,
    modes: Annotated[
        str, typer.Option(metavar="A,B", help="Also grade direct solutions in these modes (docs/grading.md).")
    ] = "",
    sweep: Annotated[
        str, typer.Option(metavar="KEY=A,B", help="Evaluate with each of these values, as shots.count=0,4,8.")
    ] = "",
    strategies: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Compare these strategies instead, or all (docs/solve.md).",
        ),
    ] = "",
    judge: Annotated[
        str | None,
        typer.Option(metavar="RUN|RECIPE|JUDGE", help="With --strategies: who compares solutions."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Keep replies and figures in this folder.")
    ] = None,
    json: JsonFile = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="FILE", callback=writable, help="Also write the tables to an .md or .tex file."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Evaluate checkpoints as they appear.")] = False,
) -> None:
    """Compare direct solutions, debate and self-consistency at equal tokens; run it again to continue."""
    from debate_rl.commands.eval_tables import show

    asked = next((word.partition("=")[2] for word in what if word.startswith(STRATEGIES)), strategies)
    what = [word for word in what if not word.startswith(STRATEGIES)]
    names = [word for word in what if "=" not in word]
    given = tuple(mode.strip() for mode in modes.split(",") if mode.strip())
    options = EvalOptions(tuple(on or ()), seeds, samples, greedy, given, out, direct, suite, sweep)
    _refuse(names, weights, options, table=table, watch=watch)
    overrides = tuple(word for word in what if "=" in word)
    subjects = [Subject(name, overrides) for name in names]
    if asked:
        _compare(subjects, weights, options, asked, judge=judge, json=json)
        return
    if judge is not None:
        raise ValueError(f"--judge {judge}: compares solutions with --strategies alone")
    shown = partial(show, json_file=json, table_file=table, compact=options.compact)
    if watch:
        _watch(subjects[0], options, shown)
        return
    results = _evaluate_all(subjects, weights, options)
    shown(results)
    if results.failures:
        raise typer.Exit(1)


def _compare(
    subjects: Sequence[Subject],
    weights: str | None,
    options: EvalOptions,
    names: str,
    *,
    judge: str | None,
    json: str | None,
) -> None:
    """Print the table of strategies of each subject and set, with one set of weights."""
    from debate_rl.commands.eval_strategies import evaluate_strategies, strategies_named

    known = strategies_named(names)
    tasks = [
        EvalTask(subject, one, path, _label(subject.name, run, path), options)
        for subject, run in ((subject, subject.opened()[0]) for subject in subjects)
        for path, damage in _weights(subject, run, weights or "newest").items()
        if damage is None
        for one in eval_sets(subject, options)
    ]
    evaluate_strategies(tasks, known, judge=judge, json=json)


def _evaluate_all(subjects: Sequence[Subject], weights: str | None, options: EvalOptions) -> Results:
    """Return the figures of the named weights of each run or recipe, on each data set.

    Of several evaluations one that fails does not end the others; if all do, the first error is raised.
    """
    from debate_rl.evaluation.report import Results

    runs = {subject: subject.opened()[0] for subject in subjects}
    if weights not in (None, "newest") and not any(runs.values()):
        raise ValueError(
            f"--weights {weights}: {subjects[0].name} is a recipe, the model as it is; name a run"
        )
    compared = options.out is None and all(runs.values())
    wanted = weights or (BEFORE_AND_AFTER if compared else "newest")
    results, tasks = Results(), list[EvalTask]()
    for subject, run in runs.items():
        sets = eval_sets(subject, options)
        results.roles |= {one.name: one.role for one in sets}
        for path, damage in _weights(subject, run, wanted).items():
            here = [EvalTask(subject, one, path, _label(subject.name, run, path), options) for one in sets]
            if damage is None:
                tasks += here
            else:
                results.failures |= {(task.one.name, task.label): ValueError(damage) for task in here}
    _perform(tasks, results)
    if results.failures and not results.scores:
        raise next(iter(results.failures.values()))
    return results


def _perform(tasks: Sequence[EvalTask], results: Results) -> None:
    """Put what the tasks find into the results; one policy is open at a time, for all that can use it."""
    order = list(dict.fromkeys(task.policy_key for task in tasks))
    by_policy = groupby(
        sorted(tasks, key=lambda task: order.index(task.policy_key)), key=lambda task: task.policy_key
    )
    for _, group in by_policy:
        same = list(group)
        with policy_of(same[0].opened[1], same[0].weights) as policy:
            for task in same:
                _perform_one(task, policy, results)
    results.sort([(task.one.name, task.label) for task in tasks])


def _perform_one(task: EvalTask, policy: Unopened, results: Results) -> None:
    try:
        scores, facts = evaluate_on(task, policy)
    except Exception as error:  # whatever it is, the other rows are worth having
        results.failures[task.one.name, task.label] = error
        return
    results.add(task.one.name, task.label, scores)
    results.facts[task.one.name, task.label] = facts


def _refuse(
    names: Sequence[str], weights: str | None, options: EvalOptions, *, table: str | None, watch: bool
) -> None:
    """Raise ValueError before minutes of work that could not be shown."""
    if not names:
        raise ValueError("eval: name the folder of a run, or a recipe, as in debate eval runs/debate")
    if not 0 <= options.samples <= MAX_SAMPLES:
        raise ValueError(f"--samples {options.samples}: needs 0 to {MAX_SAMPLES}")
    if options.seeds < 1:
        raise ValueError(f"--seeds {options.seeds}: needs 1 or more")
    if twice := [name for name, count in Counter([*names, *options.on]).items() if count > 1]:
        raise ValueError(f"{twice[0]}: is named twice")
    named = weights or ""
    several = len(names) > 1 or len(options.on) > 1 or named == "all" or "," in named
    several = several or bool(options.suite or options.sweep)
    if options.out is not None and (several or not options.out):
        raise ValueError("--out: is the folder of one evaluation; leave it out for several")
    if watch and (len(names) != 1 or weights is not None):
        raise ValueError("--watch: follows one run, and evaluates all its checkpoints")
    if table is not None and Path(table).suffix not in (".md", ".tex"):
        raise ValueError(f"--table {table}: write a name that ends in .md or .tex")


def _weights(subject: Subject, run: Path | None, names: str) -> dict[Path | None, str | None]:
    """Return the weights of these names by step, with what is wrong with each; None: as the model began."""
    from debate_rl.runs.checkpoint import checkpoints, damage
    from debate_rl.runs.weights import named_weights

    if run is None:
        return {None: None}
    as_it_is = _begins_as_it_is(subject.opened()[1])
    found: dict[Path | None, str | None] = {}
    for name in (name.strip() for name in names.split(",")):
        if as_it_is and name in ("start", "all"):
            found[None] = None
        if not as_it_is or name != "start":
            found |= dict.fromkeys(named_weights(run, name))
        if name == "all":
            others = (path for path in checkpoints(run / "checkpoints") if path not in found)
            found |= {path: damage(path) for path in others}
    return {path: found[path] for path in sorted(found, key=lambda p: -1 if p is None else step_learnt(p))}


def _begins_as_it_is(config: Config) -> bool:
    """Return whether a run begins with the model that its recipe names, and no warm start."""
    return config.warm_start.steps == 0 and config.warm_start.from_run is None


def _label(name: str, run: Path | None, weights: Path | None) -> str:
    return name if run is None else f"{name}@{step_learnt(weights) or 'start'}"


def _watch(subject: Subject, options: EvalOptions, shown: Callable[[Results], None]) -> None:
    """Evaluate every checkpoint of a run as it appears, until that of its last step; Ctrl-C ends it."""
    from debate_rl.evaluation.report import Results
    from debate_rl.runs.checkpoint import step_of

    run, config = subject.opened()
    if run is None:
        raise ValueError(f"--watch: {subject.name} is not the folder of a run")
    results, seen, last = Results(), set[Path](), -1
    sets = eval_sets(subject, options)
    results.roles |= {one.name: one.role for one in sets}
    if _begins_as_it_is(config):
        label = _label(subject.name, run, None)
        _perform([EvalTask(subject, one, None, label, options) for one in sets], results)
    while last < config.train.steps:
        for weights in _unseen(run, seen):
            seen.add(weights)
            label = _label(subject.name, run, weights)
            _perform([EvalTask(subject, one, weights, label, options) for one in sets], results)
            if not weights.exists():
                results.forget(label)
                continue  # the run has removed it: train.keep_last
            if results.failures:
                raise next(iter(results.failures.values()))
            shown(results)
            if weights.parent.name == "checkpoints":
                last = max(last, step_of(weights))
        if last < config.train.steps:
            time.sleep(WATCH_S)


def _unseen(run: Path, seen: set[Path]) -> list[Path]:
    """Return the weights of a run that were not there before; none while it has none."""
    from debate_rl.runs.weights import named_weights

    try:
        return [weights for weights in named_weights(run, "all") if weights not in seen]
    except ValueError:
        return []
