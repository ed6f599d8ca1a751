"""``debate eval``: direct solutions, debate and self-consistency at equal tokens, with intervals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from debate_rl.commands.arguments import JsonFile, writable
from debate_rl.commands.console import plain_console, progress_bar, write_json
from debate_rl.commands.errors import INTERRUPTED, Ended

if TYPE_CHECKING:
    from rich.progress import TaskID

    from debate_rl.commands.eval_tables import Evaluated
    from debate_rl.config import Config
    from debate_rl.evaluation.play import Tell, Unopened
    from debate_rl.evaluation.scores import Scores

WATCH_S = 10.0
"""Seconds between looks for a new checkpoint."""
MAX_LIVE = 128
"""Debates open at a time where ``train.max_live`` names no number: those are asked again after a kill."""
MAX_SAMPLES = 10_000


class EvalOptions(NamedTuple):
    """How each set of weights is evaluated; the names are those of the command line."""

    on: Sequence[str]
    seeds: int
    samples: int
    greedy: bool
    modes: Sequence[str]
    out: str | None
    direct: bool


def evaluate(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|CONFIG... [KEY=VALUE...]",
            help="Folders of runs, or recipes (their model before training). held_out.* sets the problems.",
        ),
    ],
    weights: Annotated[
        str,
        typer.Option(
            help="newest, best, start (warm start), all, the step of a checkpoint, or several (a,b)."
        ),
    ] = "newest",
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=FILE]", help="Use this data set in place of held_out's. Repeat for more data sets."
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Hold so many debates on each problem, each with its own seed.")
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
    from debate_rl.config.recipes import open_run_or_recipe

    names = [word for word in what if "=" not in word]
    graded = tuple(mode.strip() for mode in modes.split(",") if mode.strip())
    options = EvalOptions(on or (), seeds, samples, greedy, graded, out, direct)
    _refuse(names, weights, options, table=table, watch=watch)
    opened = {name: open_run_or_recipe(name, [word for word in what if "=" in word]) for name in names}
    shown = partial(show, json_file=json, table_file=table)
    if watch:
        _watch(names[0], *opened[names[0]], options, shown)
        return
    if weights != "newest" and all(run is None for run, _ in opened.values()):
        raise ValueError(f"--weights {weights}: {names[0]} is a recipe, the model as it is; name a run")
    shown(_evaluate_all(opened, weights, options))


def _evaluate_all(
    opened: Mapping[str, tuple[Path | None, Config]], weights: str, options: EvalOptions
) -> Evaluated:
    """Return the figures of the named weights of each run or recipe, on each data set."""
    evaluated: Evaluated = {}
    for name, (run, config) in opened.items():
        for path in _weights(run, weights):
            _add(evaluated, _label(name, path), _evaluate(config, run, path, options))
    return evaluated


def _add(evaluated: Evaluated, label: str, figures: Iterable[tuple[str, Scores]]) -> None:
    """Put the figures of one set of weights, by data set, beside the others."""
    for data, scores in figures:
        evaluated.setdefault(data, {})[label] = scores


def _refuse(
    names: Sequence[str], weights: str, options: EvalOptions, *, table: str | None, watch: bool
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
    several = len(names) > 1 or len(options.on) > 1 or weights == "all" or "," in weights
    if options.out is not None and (several or not options.out):
        raise ValueError("--out: is the folder of one evaluation; leave it out for several")
    if watch and (len(names) != 1 or weights != "newest"):
        raise ValueError("--watch: follows one run, and evaluates all its checkpoints")
    if table is not None and Path(table).suffix not in (".md", ".tex"):
        raise ValueError(f"--table {table}: write a name that ends in .md or .tex")


def _weights(run: Path | None, names: str) -> list[Path | None]:
    from debate_rl.runs.kept_weights import named_weights

    if run is None:
        return [None]
    return list(dict.fromkeys(path for name in names.split(",") for path in named_weights(run, name.strip())))


def _label(name: str, weights: Path | None) -> str:
    return name if weights is None else f"{name}@{_step(weights) or 'start'}"


def _step(weights: Path) -> int:
    """Return how many steps kept weights had learnt from: none after the warm start."""
    from debate_rl.runs.checkpoint_folder import step_of
    from debate_rl.runs.kept_weights import WARM_START

    return 0 if weights.parent.name == WARM_START else step_of(weights)


def _evaluate(
    config: Config, run: Path | None, weights: Path | None, options: EvalOptions
) -> Iterator[tuple[str, Scores]]:
    """Yield the figures of one set of weights on each data set; the model is loaded once."""
    from debate_rl.engines import open_policy
    from debate_rl.evaluation.play import Unopened

    policy = Unopened(cache(partial(open_policy, config, weights)))
    for data, with_data in _data_sets(config, options.on):
        yield data, _evaluate_on(with_data, run, weights, options, policy)


def _data_sets(config: Config, on: Sequence[str]) -> Iterator[tuple[str, Config]]:
    """Yield name and configuration of each data set that is asked for as NAME or NAME=FILE."""
    names = [text.partition("=")[0] for text in on]
    for text, name in zip(on, names, strict=True):
        held = config.held_out.model_copy(update={"kind": name, "path": text.partition("=")[2] or None})
        yield name if names.count(name) == 1 else text, config.model_copy(update={"held_out": held})
    if not on:
        yield config.held_out.kind or config.env.kind, config


def _evaluate_on(
    config: Config, run: Path | None, weights: Path | None, options: EvalOptions, policy: Unopened
) -> Scores:
    """Return the figures on one data set; what was played before is read and not asked again."""
    from debate_rl.config.models import ENGINES
    from debate_rl.evaluation.folder import default_folder, identity, open_folder, series_of
    from debate_rl.evaluation.modes import modes_of, with_modes
    from debate_rl.evaluation.play import EvalPlan, is_alone, play
    from debate_rl.evaluation.report import held_out, plain_rows
    from debate_rl.evaluation.scores import scores
    from debate_rl.problems import HELD_OUT, load_held_out
    from debate_rl.runs.folder import write_whole
    from debate_rl.tracking.held_out import NAME, to_line
    from envs import DataError
    from envs.answers.keys import key_of

    environment, problems = load_held_out(config, key="--on" if options.on else HELD_OUT)
    seeds = range(options.seeds)
    if not problems:
        raise DataError(
            "held_out: there are no problems to evaluate on; set held_out.limit and held_out.kind"
        )
    modes = modes_of(options.modes, environment, problems)
    direct = options.direct or is_alone(config.debate)
    what = identity(config, problems, weights, seeds, direct=direct)
    home = run / "evaluations" if run else Path("evaluations") / Path(config.run.dir).name
    folder = Path(options.out) if options.out else default_folder(home, weights, what)
    plan = EvalPlan(
        problems,
        environment,
        config.debate,
        seeds,
        config.train.max_live or MAX_LIVE,
        options.samples,
        options.greedy,
        requests=None if config.model.policy in ENGINES else config.train.batch_size,
        direct=direct,
        mode=config.grader.final,
    )
    with open_folder(folder, what), _progress(str(folder)) as tell:
        played = play(plan, policy, folder, tell=tell)
        figures = scores(played, key_of(environment))
        if not figures.problems:
            raise DataError(f"{folder}: the grader gave no verdict on any of {len(problems)} problems")
        figures = with_modes(figures, played, environment, modes)
        write_json(folder / "figures.json", plain_rows({_label(config.run.dir, weights): figures}))
        if weights is not None:
            kept = held_out(figures, _step(weights), series=series_of(what))
            write_whole(folder / NAME, to_line(kept) + b"\n")
    return figures


@contextmanager
def _progress(folder: str) -> Iterator[Tell]:
    """Yield what shows the progress: a bar with the time left in a terminal, lines in a pipe.

    A command that is interrupted says what it leaves.
    """
    tasks: dict[str, TaskID] = {}
    counts: dict[str, str] = {}
    try:
        with progress_bar(transient=False) as bar:

            def tell(part: str, done: int, total: int) -> None:
                counts[part] = f"{part} {done}/{total}"
                if part not in tasks:
                    tasks[part] = bar.add_task(part, total=total)
                bar.update(tasks[part], completed=done)
                if bar.disable and done == total:
                    plain_console(stderr=True).print(f"{folder}: {counts[part]}")

            yield tell
    except (KeyboardInterrupt, Ended) as stop:
        kept = ", ".join(counts.values()) or "nothing yet"
        line = f"stopped; {folder} keeps {kept}; the same command goes on"
        raise Ended(line, int(stop.code or 0) if isinstance(stop, Ended) else INTERRUPTED) from stop


def _watch(
    name: str, run: Path | None, config: Config, options: EvalOptions, shown: Callable[[Evaluated], None]
) -> None:
    """Evaluate every checkpoint of a run as it appears, until that of its last step; Ctrl-C ends it."""
    from debate_rl.runs.checkpoint import CheckpointError
    from debate_rl.runs.checkpoint_folder import step_of

    if run is None:
        raise ValueError(f"--watch: {name} is not the folder of a run")
    evaluated: Evaluated = {}
    seen: set[Path] = set()
    last = -1
    while last < config.train.steps:
        for weights in _unseen(run, seen):
            seen.add(weights)
            try:
                _add(evaluated, _label(name, weights), _evaluate(config, run, weights, options))
            except (OSError, CheckpointError):
                if weights.exists():
                    raise
                continue  # the run has removed it: train.keep_last
            shown(evaluated)
            if weights.parent.name == "checkpoints":
                last = max(last, step_of(weights))
        if last < config.train.steps:
            time.sleep(WATCH_S)


def _unseen(run: Path, seen: set[Path]) -> list[Path]:
    """Return the weights of a run that were not there before; none while it has none."""
    from debate_rl.runs.kept_weights import named_weights

    try:
        return [weights for weights in named_weights(run, "all") if weights not in seen]
    except ValueError:
        return []
