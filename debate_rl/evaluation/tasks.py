"""Evaluations: what is evaluated, on which data set, and its figures, as ``debate eval`` compares them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeAlias

import tomli_w

from debate import Problem
from debate.files import write_text
from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError, open_run_or_recipe
from debate_rl.engines import open_summarizer
from debate_rl.evaluation.asking import MAX_LIVE, NO_PROBLEMS, kept_folder, policy_of, requests_at_once
from debate_rl.evaluation.evaluate import check_modes, evaluate
from debate_rl.evaluation.folder import FIGURES, identity, open_folder, series_of
from debate_rl.evaluation.grading import asked_line, opened_verifying
from debate_rl.evaluation.play import EvalPlan, Unopened, is_alone
from debate_rl.evaluation.report import IN_TRAINING, TEST_TIME, Results, held_out, plain_rows
from debate_rl.evaluation.scores import Scores
from debate_rl.evaluation.suite import EvalSet, modes_named, read_suite, swept
from debate_rl.formatting import one_line
from debate_rl.metrics.held_out import NAME, to_line
from debate_rl.runs.checkpoint import WARM_START, checkpoints, damage, step_of
from debate_rl.runs.folder import write_whole
from debate_rl.runs.weights import named_weights
from debate_rl.sampling.difficulty import bands
from debate_rl.sampling.problems import HELD_OUT, is_generated_from, load_held_out, load_trained
from envs import DataError
from envs.data.decontamination import overlaps

Progress: TypeAlias = Callable[[Path], AbstractContextManager[Callable[..., None]]]
Say: TypeAlias = Callable[[str], None]


class EvalOptions(NamedTuple):
    """How each set of weights is evaluated; the names are those of the command line."""

    on: tuple[str, ...] = ()
    seed: int = 0
    seeds: int = 1
    samples: int = 0
    greedy: bool = False
    modes: tuple[str, ...] = ()
    out: str | None = None
    direct: bool = False
    suite: str | None = None
    sweep: str = ""

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
        if one is None:
            return open_run_or_recipe(self.name, self.overrides)
        try:
            return open_run_or_recipe(self.name, (*one.before, *self.overrides, *one.after))
        except ConfigError as error:
            if one.key == HELD_OUT:
                raise
            raise ConfigError(f"{one.key.removesuffix('.held_out.kind')}: {error}") from error

    @cached_property
    def run(self) -> Path | None:
        """The folder of the run, None of a recipe."""
        return self.opened()[0]

    @cached_property
    def config(self) -> Config:
        """Its own configuration."""
        return self.opened()[1]

    @property
    def begins_as_it_is(self) -> bool:
        """Whether a run begins with the model that its recipe names, and no warm start."""
        return self.config.warm_start.steps == 0 and self.config.warm_start.from_run is None

    def label(self, weights: Path | None) -> str:
        """Return the name of an evaluation with these weights."""
        return self.name if self.run is None else f"{self.name}@{step_learnt(weights) or 'start'}"

    @cached_property
    def trained_on(self) -> tuple[Problem, ...] | str:
        """The problems that it is trained on, or why they are not known."""
        if (Path(self.name) / "config.json").is_file():
            return "a model's folder names no training problems"
        try:
            return load_trained(self.config)
        except (ValueError, OSError) as error:
            return one_line(str(error))

    def weights(self, names: str) -> dict[Path | None, str | None]:
        """Return the weights of these names by step, with what is wrong with each; None: the model itself."""
        if self.run is None:
            return {None: None}
        found: dict[Path | None, str | None] = {}
        for name in (name.strip() for name in names.split(",")):
            if self.begins_as_it_is and name in ("start", "all"):
                found[None] = None
            if not self.begins_as_it_is or name != "start":
                found |= dict.fromkeys(named_weights(self.run, name))
            if name == "all":
                others = (path for path in checkpoints(self.run / "checkpoints") if path not in found)
                found |= {path: damage(path) for path in others}
        return {p: found[p] for p in sorted(found, key=lambda p: -1 if p is None else step_learnt(p))}


@dataclass(frozen=True)
class EvalTask:
    """One evaluation. ``weights`` None: the model as the recipe names it."""

    subject: Subject
    one: EvalSet
    weights: Path | None
    options: EvalOptions

    @property
    def label(self) -> str:
        """What tables call the weights."""
        return self.subject.label(self.weights)

    @cached_property
    def opened(self) -> tuple[Path | None, Config]:
        """The folder of the run, if it is one, and its configuration on this data set."""
        return self.subject.opened(self.one)

    @property
    def policy_key(self) -> str:
        """What decides the policy: tasks with the same one share a model that is loaded."""
        config = self.opened[1]
        parts = (self.subject.name, self.weights, config.debate.prompts, config.debate.thinking_tokens > 0)
        return repr((*parts, config.model))

    def folder(self, what: dict[str, object]) -> Path:
        """Return the folder of the evaluation."""
        if self.options.out:
            return Path(self.options.out)
        run, config = self.opened
        return kept_folder("evaluations", run, config, self.weights, what)


def eval_sets(subject: Subject, options: EvalOptions) -> list[EvalSet]:
    """Return what something is evaluated on: a suite's sets, those of --on, or its own held-out problems."""
    names = [text.partition("=")[0] for text in options.on]
    if options.suite:
        sets = read_suite(options.suite, options.on)
    elif options.on:
        sets = [
            EvalSet(name if names.count(name) == 1 else text, "--on", after=in_place(text))
            for text, name in zip(options.on, names, strict=True)
        ]
    else:
        sets = [EvalSet(subject.config.held_out.kind or subject.config.env.kind, HELD_OUT)]
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


def perform(tasks: Sequence[EvalTask], results: Results, progress_of: Progress, say: Say) -> None:
    """Put what the tasks find into the results; one policy is open at a time, for all that can use it.

    Of several evaluations one that fails does not end the others. ``progress_of`` shows the progress of what
    is kept in a folder; ``say`` prints a line.
    """
    order = list(dict.fromkeys(task.policy_key for task in tasks))
    by_policy = sorted(tasks, key=lambda task: order.index(task.policy_key))
    for _, group in groupby(by_policy, key=lambda task: task.policy_key):
        same = list(group)
        with policy_of(same[0].opened[1], same[0].weights) as policy:
            for task in same:
                try:
                    scores, facts = evaluate_on(task, policy, progress_of, say)
                except Exception as error:  # whatever it is, the other rows are worth having
                    results.failures[task.one.name, task.label] = error
                    continue
                results.add(task.one.name, task.label, scores)
                results.facts[task.one.name, task.label] = facts
    results.sort([(task.one.name, task.label) for task in tasks])


def evaluate_on(
    task: EvalTask, policy: Unopened, progress_of: Progress, say: Say
) -> tuple[Scores, dict[str, str]]:
    """Return the figures on one data set, and what a table says beside; kept replies are used again."""
    one, weights, (run, config) = task.one, task.weights, task.opened
    environment, problems = load_held_out(config, key=one.key)
    if not problems:
        raise DataError(NO_PROBLEMS)
    known = config.held_out.difficulty if one.key == HELD_OUT else None
    measured = bands(problems, known) if known else {}
    check_modes(one.modes, problems)
    plan = EvalPlan(
        problems,
        environment,
        config.debate,
        range(task.options.seed, task.options.seed + task.options.seeds),
        config.train.max_live or MAX_LIVE,
        one.samples,
        one.greedy,
        requests=requests_at_once(config),
        direct=one.direct or is_alone(config.debate),
        mode=config.grader.final,
        summarizer=cache(partial(open_summarizer, config)),
    )
    what = identity(config, problems, weights, plan.seeds, direct=plan.direct)
    folder = task.folder(what)
    with open_folder(folder, what), progress_of(folder) as tell, opened_verifying(config) as verifying:
        figures = evaluate(
            replace(plan, verifying=verifying),
            policy,
            folder,
            modes=modes_named((*one.modes, *config.grader.beside)),
            tell=tell,
            diagnose=config.verifier.diagnose,
        )
        if verifying is not None:
            say(asked_line(config.verifier_name, figures.asked))
        figures = replace(figures, bands=measured)
        rows = plain_rows({task.label: figures})
        write_text(folder / FIGURES, json.dumps(rows, indent=1, allow_nan=False) + "\n")
        if run is not None or weights is not None:
            kept = held_out(figures, step_learnt(weights), series=series_of(what, plan.mode))
            write_whole(folder / NAME, to_line(kept) + b"\n")
    return figures, _facts(task, config, problems)


def _facts(task: EvalTask, config: Config, problems: tuple[Problem, ...]) -> dict[str, str]:
    """Return what a table says of a row, by head: what decides its figures, and what it was trained on."""
    facts: dict[str, str] = {}
    if task.options.suite:
        facts[IN_TRAINING] = _overlap(task, problems)
    if task.options.compact:
        facts |= {"grader": config.grader.final, "max tokens": str(config.debate.max_tokens)}
    own = task.subject.config
    same = own.held_out.model_copy(update={"limit": config.held_out.limit}) == config.held_out
    return facts | ({TEST_TIME: "yes"} if own.env.test_time_learning and same else {})


def _overlap(task: EvalTask, problems: tuple[Problem, ...]) -> str:
    """Return how many of the problems are, whole or in part, among those trained on."""
    trained = task.subject.trained_on
    if isinstance(trained, str):
        return f"not known: {trained}"
    if is_generated_from(task.subject.config, task.opened[1]):
        return "0"  # the splits of a family are disjoint, and all its sentences are alike
    found = overlaps(trained, problems)
    same = sum(overlap.kind == "exact" for overlap in found)
    return f"{len(found)}, {same} the same" if same else str(len(found))


def step_learnt(weights: Path | None) -> int:
    """Return how many steps weights had learnt from: none before training and after the warm start."""
    return 0 if weights is None or weights.parent.name == WARM_START else step_of(weights)
