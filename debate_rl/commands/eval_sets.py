"""One evaluation of ``debate eval``: its data set, its folder and what it shows while it works."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import tomli_w

from debate_rl.commands.console import INTERRUPTED, Ended, one_line, plain_console, write_json

if TYPE_CHECKING:
    from debate import Policy, Problem
    from debate_rl.config import Config
    from debate_rl.evaluation.play import Unopened
    from debate_rl.evaluation.scores import Scores
    from debate_rl.evaluation.suite import EvalSet

MAX_LIVE = 128
"""Debates open at a time where ``train.max_live`` names no number."""


class EvalOptions(NamedTuple):
    """How each set of weights is evaluated; the names are those of the command line."""

    on: tuple[str, ...]
    seeds: int
    samples: int
    greedy: bool
    modes: tuple[str, ...]
    out: str | None
    direct: bool
    suite: str | None
    sweep: str

    @property
    def compact(self) -> bool:
        """Whether there are many rows, which one table shows."""
        return bool(self.suite or self.sweep)


@dataclass(frozen=True)
class Subject:
    """What is evaluated: a run or a recipe, as it is named, with the overrides of the command line."""

    name: str
    overrides: tuple[str, ...]

    def opened(self, one: EvalSet | None = None) -> tuple[Path | None, Config]:
        """Return the folder of the run, if it is one, and the configuration, as a data set changes it."""
        from debate_rl.config.recipes import ConfigError, open_run_or_recipe
        from debate_rl.problems import HELD_OUT

        if one is None:
            return open_run_or_recipe(self.name, self.overrides)
        try:
            return open_run_or_recipe(self.name, (*one.before, *self.overrides, *one.after))
        except ConfigError as error:
            if one.key == HELD_OUT:
                raise
            raise ConfigError(f"{one.key.removesuffix('.held_out.kind')}: {error}") from error

    @cached_property
    def trained_on(self) -> tuple[Problem, ...] | str:
        """The problems that it is trained on, or why they are not known."""
        from debate_rl.problems import load_trained

        if (Path(self.name) / "config.json").is_file():
            return "a model's folder names no training problems"
        try:
            return load_trained(self.opened()[1])
        except (ValueError, OSError) as error:
            return one_line(error)


@dataclass(frozen=True)
class EvalTask:
    """One evaluation. ``weights`` None: the model as the recipe names it."""

    subject: Subject
    one: EvalSet
    weights: Path | None
    label: str
    options: EvalOptions

    @cached_property
    def opened(self) -> tuple[Path | None, Config]:
        """The folder of the run, if it is one, and its configuration."""
        return self.subject.opened(self.one)

    @property
    def policy_key(self) -> str:
        """What decides the policy: tasks with the same one share a model that is loaded."""
        config = self.opened[1]
        parts = (self.subject.name, self.weights, config.debate.prompts, config.debate.thinking_tokens > 0)
        return repr((*parts, config.model))


def eval_sets(subject: Subject, options: EvalOptions) -> list[EvalSet]:
    """Return what something is evaluated on: a suite's sets, those of --on, or its own held-out problems."""
    from debate_rl.evaluation.suite import EvalSet, modes_named, read_suite, swept
    from debate_rl.problems import HELD_OUT

    names = [text.partition("=")[0] for text in options.on]
    if options.suite:
        sets = read_suite(options.suite, options.on)
    elif options.on:
        sets = [
            EvalSet(name if names.count(name) == 1 else text, "--on", after=in_place(text))
            for text, name in zip(options.on, names, strict=True)
        ]
    else:
        config = subject.opened()[1]
        sets = [EvalSet(config.held_out.kind or config.env.kind, HELD_OUT)]
    given = [
        replace(
            one,
            direct=one.direct or options.direct,
            samples=max(one.samples, options.samples),
            greedy=one.greedy or options.greedy,
            modes=modes_named(options.modes),
        )
        for one in sets
    ]
    return swept(given, options.sweep)


def in_place(text: str) -> tuple[str, ...]:
    """Return the overrides that put NAME or NAME=FILE in the place of the held-out problems' set."""
    name, _, path = text.partition("=")
    return f"held_out.kind={_word(name)}", f"held_out.path={_word(path)}" if path else "held_out.path=none"


def _word(text: str) -> str:
    """Return a text as TOML, which an override's value is."""
    return tomli_w.dumps({"value": text}).removeprefix("value = ").strip()


def evaluate_on(task: EvalTask, policy: Unopened) -> tuple[Scores, dict[str, str]]:
    """Return the figures on one data set, and what a table says beside; kept replies are used again."""
    from debate_rl.config.models import ENGINES
    from debate_rl.difficulty import bands
    from debate_rl.engines import open_summarizer
    from debate_rl.evaluation.evaluate import check_modes, evaluate
    from debate_rl.evaluation.folder import FIGURES, default_folder, identity, open_folder, series_of
    from debate_rl.evaluation.grading import asked_line, opened_verifying
    from debate_rl.evaluation.play import EvalPlan, is_alone
    from debate_rl.evaluation.report import held_out, plain_rows
    from debate_rl.evaluation.suite import modes_named
    from debate_rl.metrics.held_out import NAME, to_line
    from debate_rl.problems import HELD_OUT, load_held_out
    from debate_rl.runs.folder import write_whole
    from envs import DataError

    one, weights, (run, config) = task.one, task.weights, task.opened
    environment, problems = load_held_out(config, key=one.key)
    if not problems:
        raise DataError(
            "held_out: there are no problems to evaluate on; set held_out.limit and held_out.kind"
        )
    known = config.held_out.difficulty if one.key == HELD_OUT else None
    measured = bands(problems, known) if known else {}
    modes = modes_named((*one.modes, *config.grader.beside))
    check_modes(one.modes, problems)
    plan = EvalPlan(
        problems,
        environment,
        config.debate,
        range(task.options.seeds),
        config.train.max_live or MAX_LIVE,
        one.samples,
        one.greedy,
        requests=None if config.model.policy in ENGINES else config.train.sample_batch_size,
        direct=one.direct or is_alone(config.debate),
        mode=config.grader.final,
        summarizer=cache(partial(open_summarizer, config)),
    )
    what = identity(config, problems, weights, plan.seeds, direct=plan.direct)
    home = run / "evaluations" if run else Path("evaluations") / Path(config.run.dir).name
    out = task.options.out
    folder = Path(out) if out else default_folder(home, weights, what)
    with (
        open_folder(folder, what),
        progress_of(str(folder)) as tell,
        opened_verifying(config) as verifying,
    ):
        figures = evaluate(
            replace(plan, verifying=verifying),
            policy,
            folder,
            modes=modes,
            tell=tell,
            diagnose=config.verifier.diagnose,
        )
        if verifying is not None:
            plain_console(stderr=True).print(asked_line(config.verifier_name, figures.asked))
        figures = replace(figures, bands=measured)
        write_json(folder / FIGURES, plain_rows({task.label: figures}))
        if run is not None or weights is not None:
            series = series_of(what, plan.mode)
            kept = held_out(figures, step_learnt(weights), series=series)
            write_whole(folder / NAME, to_line(kept) + b"\n")
    facts = _facts(task, config, problems) if task.options.compact else {}
    return figures, facts | _test_time(task, config)


def _facts(task: EvalTask, config: Config, problems: tuple[Problem, ...]) -> dict[str, str]:
    """Return what decides figures and differs between the rows of a table, by head."""
    from debate_rl.evaluation.report import IN_TRAINING

    limits = {"grader": config.grader.final, "max tokens": str(config.debate.max_tokens)}
    return {IN_TRAINING: _overlap(task, problems), **limits} if task.options.suite else limits


def _test_time(task: EvalTask, config: Config) -> dict[str, str]:
    """Return that a run is declared to train on the evaluated problems, where it is."""
    from debate_rl.evaluation.report import TEST_TIME

    own = task.subject.opened()[1]
    same = own.held_out.model_copy(update={"limit": config.held_out.limit}) == config.held_out
    return {TEST_TIME: "yes"} if own.env.test_time_learning and same else {}


def _overlap(task: EvalTask, problems: tuple[Problem, ...]) -> str:
    """Return how many of the problems are, whole or in part, among those trained on."""
    from debate_rl.problems import is_generated_from
    from envs.data.decontamination import overlaps

    trained = task.subject.trained_on
    if isinstance(trained, str):
        return f"not known: {trained}"
    if is_generated_from(task.subject.opened()[1], task.opened[1]):
        return "0"  # the splits of a family are disjoint, and all its sentences are alike
    found = overlaps(trained, problems)
    same = sum(overlap.kind == "exact" for overlap in found)
    return f"{len(found)}, {same} the same" if same else str(len(found))


def step_learnt(weights: Path | None) -> int:
    """Return how many steps weights had learnt from: none before training and after the warm start."""
    from debate_rl.runs.checkpoint import WARM_START, step_of

    return 0 if weights is None or weights.parent.name == WARM_START else step_of(weights)


@contextmanager
def policy_of(config: Config, weights: Path | None) -> Iterator[Unopened]:
    """Yield a policy that is opened when something is asked of it, and whose engines end with the block."""
    from debate_rl.engines import end_engines, open_policy
    from debate_rl.evaluation.play import Unopened

    opened: list[Policy] = []

    def policy() -> Policy:
        if not opened:
            opened.append(open_policy(config, weights))
        return opened[0]

    try:
        yield Unopened(policy)
    finally:
        if opened and (config.model.policy == "vllm" or config.debate.tools != "none"):
            end_engines(opened[0])
        opened.clear()
        _free_memory()


def _free_memory() -> None:
    """Give back what a model held that nothing refers to any more: the next weights need room for theirs."""
    gc.collect()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


@contextmanager
def progress_of(folder: str) -> Iterator[Callable[..., None]]:
    """Yield what shows the progress: a bar with the time left in a terminal, lines in a pipe.

    It is called as ``Tell`` is, or without the work in what is still under way. A command that is
    interrupted says what it leaves.
    """
    from debate_rl.metrics.progress import parts_shown

    counts: dict[str, str] = {}
    try:
        with parts_shown("auto", plain_console(stderr=True), head=f"{folder}: ", keep=True) as parts:

            def tell(part: str, done: int, total: int, work: float | None = None) -> None:
                counts[part] = f"{part} {done}/{total}"
                parts.advance(part, done if work is None else work, total)

            yield tell
    except (KeyboardInterrupt, Ended) as stop:
        kept = ", ".join(counts.values()) or "nothing yet"
        line = f"stopped; {folder} keeps {kept}; the same command resumes"
        raise Ended(line, int(stop.code or 0) if isinstance(stop, Ended) else INTERRUPTED) from stop
