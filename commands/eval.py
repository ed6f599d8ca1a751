"""``debate eval``: direct answers, debate and self-consistency at equal tokens, with intervals."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from commands.errors import Ended
from commands.eval_tables import PLAIN, Evaluated, show, write_json
from commands.runs import open_run_or_recipe

if TYPE_CHECKING:
    from debate import Policy
    from learner.config import Config
    from learner.evaluation.play import Tell
    from learner.evaluation.scores import Scores

WATCH_S = 10.0
"""Seconds between looks for a new checkpoint."""
MAX_LIVE = 128
"""Debates open at a time where ``train.max_live`` names no number: those are asked again after a kill."""
MAX_SAMPLES = 10_000
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for beside the configurations."""

    weights: str = "newest"
    repeats: int = 1
    samples: int = 0
    greedy: bool = False
    modes: Sequence[str] = ()
    on: Sequence[str] = ()
    out: str | None = None
    json_path: str | None = None
    table_path: str | None = None
    watch: bool = False


def run_eval(names: Sequence[str], asked: Asked, overrides: Sequence[str]) -> None:
    """Evaluate runs or recipes on every data set, and print a table for each; the first is compared with."""
    _refuse(names, asked)
    console = Console()
    opened = {name: open_run_or_recipe(name, overrides) for name in names}
    if asked.watch:
        _watch(names[0], *opened[names[0]], asked, console)
        return
    if asked.weights != "newest" and all(run is None for run, _ in opened.values()):
        raise ValueError(f"--weights {asked.weights}: {names[0]} is a recipe, the model as it is; name a run")
    evaluated: Evaluated = {}
    for name, (run, config) in opened.items():
        for weights in _weights(run, asked.weights):
            for data, scores in _evaluate(config, run, weights, asked):
                evaluated.setdefault(data, {})[_label(name, weights)] = scores
    show(evaluated, console, json_path=asked.json_path, table_path=asked.table_path)


def _refuse(names: Sequence[str], asked: Asked) -> None:
    """Raise ValueError before minutes of work that could not be shown."""
    if not names:
        raise ValueError("eval: name the folder of a run, or a recipe, as in debate eval runs/debate")
    if not 0 <= asked.samples <= MAX_SAMPLES:
        raise ValueError(f"--samples {asked.samples}: needs 0 to {MAX_SAMPLES}")
    if asked.repeats < 1:
        raise ValueError(f"--seeds {asked.repeats}: needs 1 or more")
    if twice := [name for name, count in Counter([*names, *asked.on]).items() if count > 1]:
        raise ValueError(f"{twice[0]}: is named twice")
    several = len(names) > 1 or len(asked.on) > 1 or asked.weights == "all" or "," in asked.weights
    if asked.out is not None and (several or not asked.out):
        raise ValueError("--out: is the folder of one evaluation; leave it out for several")
    if asked.watch and (len(names) != 1 or asked.weights != "newest"):
        raise ValueError("--watch: follows one run, and evaluates all its checkpoints")
    if asked.table_path is not None and Path(asked.table_path).suffix not in (".md", ".tex"):
        raise ValueError(f"--table {asked.table_path}: write a name that ends in .md or .tex")
    for option, path in (("--json", asked.json_path), ("--table", asked.table_path)):
        if path is not None and not _can_be_written(path):
            raise ValueError(f"{option} {path}: cannot be written; name a file in a folder that exists")


def _can_be_written(path: str) -> bool:
    there = Path(path).is_file() or not Path(path).exists()
    return there and Path(path).parent.is_dir() and "\0" not in path


def _weights(run: Path | None, names: str) -> list[Path | None]:
    from learner.runs.kept_weights import named_weights

    if run is None:
        return [None]
    return list(dict.fromkeys(path for name in names.split(",") for path in named_weights(run, name.strip())))


def _label(name: str, weights: Path | None) -> str:
    from learner.runs.checkpoint_folder import step_of
    from learner.runs.kept_weights import WARM_START

    if weights is None:
        return name
    return f"{name}@{'start' if weights.parent.name == WARM_START else step_of(weights)}"


def _evaluate(
    config: Config, run: Path | None, weights: Path | None, asked: Asked
) -> Iterator[tuple[str, Scores]]:
    """Yield the figures of one set of weights on each data set; the model is loaded once."""
    from learner.engines import open_policy

    opened: list[Policy] = []

    def policy() -> Policy:
        if not opened:
            opened.append(open_policy(config, weights))
        return opened[0]

    for data, one in _on_each(config, asked.on):
        yield data, _evaluate_on(one, run, weights, asked, policy)


def _on_each(config: Config, on: Sequence[str]) -> Iterator[tuple[str, Config]]:
    """Yield name and configuration of each data set that is asked for as NAME or NAME=FILE."""
    names = [text.partition("=")[0] for text in on]
    for text, name in zip(on, names, strict=True):
        held = config.held_out.model_copy(update={"kind": name, "path": text.partition("=")[2] or None})
        yield name if names.count(name) == 1 else text, config.model_copy(update={"held_out": held})
    if not on:
        yield config.held_out.kind or config.env.kind, config


def _evaluate_on(
    config: Config, run: Path | None, weights: Path | None, asked: Asked, policy: Callable[[], Policy]
) -> Scores:
    """Return the figures on one data set; what was played before is read and not asked again."""
    from envs import DataError
    from envs.answers.keys import key_of
    from learner.evaluation.folder import default_folder, identity, open_folder
    from learner.evaluation.modes import modes_of, with_modes
    from learner.evaluation.play import Examination, play
    from learner.evaluation.report import plain_rows
    from learner.evaluation.scores import scores
    from learner.problems import load_held_out

    (examiner, problems), seeds = load_held_out(config), range(asked.repeats)
    if not problems:
        raise DataError(
            "held_out: there are no problems to evaluate on; set held_out.limit and held_out.kind"
        )
    modes = modes_of(asked.modes, examiner, problems)
    what = identity(config, problems, weights, seeds)
    home = run / "evaluations" if run else Path("evaluations") / Path(config.run.dir).name
    folder = Path(asked.out) if asked.out else default_folder(home, weights, what)
    live = config.train.max_live or MAX_LIVE
    exam = Examination(problems, examiner, config.debate, seeds, live, asked.samples, asked.greedy)
    with open_folder(folder, what), _progress(str(folder)) as tell:
        played = play(exam, policy(), folder, tell=tell)
        found = scores(played, key_of(examiner))
        if not found.problems:
            raise DataError(f"{folder}: the grader gave no verdict on any of {len(problems)} problems")
        found = with_modes(found, played, examiner, modes)
        write_json(folder / "figures.json", plain_rows({_label(config.run.dir, weights): found}))
    return found


@contextmanager
def _progress(folder: str) -> Iterator[Tell]:
    """Yield what shows the progress: a bar with the time left in a terminal, lines in a pipe.

    A command that is told to stop says what it leaves.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    kept: dict[str, str] = {}
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:

            def tell(part: str, done: int, total: int) -> None:
                kept[part] = f"{part} {done}/{total}"
                if part not in tasks:
                    tasks[part] = bar.add_task(part, total=total)
                bar.update(tasks[part], completed=done)
                if not console.is_terminal and done == total:
                    console.print(f"{folder}: {part} {done}/{total}", **PLAIN)

            yield tell
    except (KeyboardInterrupt, Ended) as stop:
        line = (
            f"stopped; {folder} keeps {', '.join(kept.values()) or 'nothing yet'}; the same command goes on"
        )
        raise Ended(line, int(stop.code or 0) if isinstance(stop, Ended) else INTERRUPTED) from stop


def _watch(name: str, run: Path | None, config: Config, asked: Asked, console: Console) -> None:
    """Evaluate every checkpoint of a run as it appears, until that of its last step; Ctrl-C ends it."""
    from learner.runs.checkpoint import CheckpointError
    from learner.runs.checkpoint_folder import step_of
    from learner.runs.kept_weights import named_weights

    if run is None:
        raise ValueError(f"--watch: {name} is not the folder of a run")
    evaluated: Evaluated = {}
    seen: set[Path | None] = set()
    last = -1
    while last < config.train.steps:
        try:
            found = named_weights(run, "all")
        except ValueError:
            found = []
        for weights in (path for path in found if path not in seen):
            seen.add(weights)
            try:
                for data, scores in _evaluate(config, run, weights, asked):
                    evaluated.setdefault(data, {})[_label(name, weights)] = scores
            except (OSError, CheckpointError):
                if weights.exists():
                    raise
                continue  # the run has tidied it away: train.keep_last
            show(evaluated, console, json_path=asked.json_path, table_path=asked.table_path)
            if weights.parent.name == "checkpoints":
                last = max(last, step_of(weights))
        if last < config.train.steps:
            time.sleep(WATCH_S)
