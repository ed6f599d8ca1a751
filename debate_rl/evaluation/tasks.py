"""The evaluations of ``debate eval``: which weights on which data set, and their figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple

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
from debate_rl.evaluation.report import held_out, plain_rows
from debate_rl.evaluation.scores import Scores
from debate_rl.evaluation.suite import EvalSet, modes_named, read_suite, swept
from debate_rl.formatting import one_line
from debate_rl.metrics.held_out import NAME, to_line
from debate_rl.runs.checkpoint import WARM_START, checkpoints, damage, step_of
from debate_rl.runs.folder import write_whole
from debate_rl.runs.weights import named_weights
from debate_rl.sampling.difficulty import bands
from debate_rl.sampling.load_problems import HELD_OUT, is_generated_from, load_held_out, load_trained
from envs import DataError
from envs.data.decontamination import overlaps

IN_TRAINING = "in training"
"""Column head for the overlap between a data set and the training problems."""
TEST_TIME = "test-time learning"
"""Column head that marks runs declared to train on the problems of a data set."""


class EvalOptions(NamedTuple):
    """How each set of weights is evaluated. The fields have the names of the command-line options."""

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
        """True for a suite or a sweep, whose evaluations are shown in a single table."""
        return bool(self.suite or self.sweep)


@dataclass(frozen=True)
class Subject:
    """A run or recipe to evaluate, by name, with the overrides of the command line."""

    name: str
    overrides: tuple[str, ...]

    def opened(self, one: EvalSet | None = None) -> tuple[Path | None, Config]:
        """Return the folder of the run (None for a recipe) and the configuration for a data set."""
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
        """The folder of the run; None for a recipe."""
        return self.opened()[0]

    @cached_property
    def config(self) -> Config:
        """The configuration of the run or recipe, without changes for a data set."""
        return self.opened()[1]

    @property
    def begins_as_it_is(self) -> bool:
        """True if the run starts from the model that its recipe names, without a warm start."""
        return self.config.warm_start.steps == 0 and self.config.warm_start.from_run is None

    def label(self, weights: Path | None) -> str:
        """Return the name of an evaluation with these weights."""
        return self.name if self.run is None else f"{self.name}@{step_learnt(weights) or 'start'}"

    @cached_property
    def trained_on(self) -> tuple[Problem, ...] | str:
        """The training problems, or the reason why they are unknown."""
        if (Path(self.name) / "config.json").is_file():
            return "a model's folder names no training problems"
        try:
            return load_trained(self.config)
        except (ValueError, OSError) as error:
            return one_line(str(error))

    def weights(self, names: str) -> dict[Path | None, str | None]:
        """Return the weights of these names by step with its error or None. Key None: the model."""
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
    """One evaluation. ``weights``: None for the recipe's model. ``damage``: why the weights are unusable."""

    subject: Subject
    one: EvalSet
    weights: Path | None
    options: EvalOptions
    damage: str | None = None

    @property
    def label(self) -> str:
        """The name of the weights in tables."""
        return self.subject.label(self.weights)

    @cached_property
    def opened(self) -> tuple[Path | None, Config]:
        """The folder of the run (None for a recipe) and the configuration for this data set."""
        return self.subject.opened(self.one)

    @property
    def policy_key(self) -> str:
        """Key of the policy: tasks with equal keys share a loaded model."""
        config = self.opened[1]
        parts = (self.subject.name, self.weights, config.debate.prompts, config.debate.thinking_tokens > 0)
        return repr((*parts, config.model))

    def folder(self, what: dict[str, object]) -> Path:
        """Return the folder of the evaluation."""
        if self.options.out:
            return Path(self.options.out)
        run, config = self.opened
        return kept_folder("evaluations", run, config, self.weights, what)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The result of an evaluation: its figures, or an error instead.

    ``role``: the role of the data set. ``facts``: further table cells of the evaluation, by column head.
    """

    data: str
    name: str
    role: str = ""
    scores: Scores | None = None
    facts: dict[str, str] = field(default_factory=dict[str, str])
    error: Exception | None = None


def tasks_of(subjects: Sequence[Subject], weights: str, options: EvalOptions) -> list[EvalTask]:
    """Return the evaluations of the named weights on each data set."""
    if weights != "newest" and not any(subject.run for subject in subjects):
        what = subjects[0].name
        raise ValueError(f"--weights {weights}: {what} is a recipe without checkpoints; name a run")
    return [
        EvalTask(subject, one, path, options, wrong)
        for subject in subjects
        for sets in [eval_sets(subject, options)]
        for path, wrong in subject.weights(weights).items()
        for one in sets
    ]


def eval_sets(subject: Subject, options: EvalOptions) -> list[EvalSet]:
    """Return the data sets of an evaluation: a suite's sets, the sets of --on, or its held-out problems."""
    names = [text.partition("=")[0] for text in options.on]
    if options.suite:
        sets = read_suite(options.suite, options.on)
    elif options.on:
        sets = [
            EvalSet(name if names.count(name) == 1 else text, "--on", after=_in_place(text))
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


def _in_place(text: str) -> tuple[str, ...]:
    """Return the overrides that replace the held-out problems by NAME or NAME=FILE."""

    def word(text: str) -> str:  # the value of an override is TOML
        return tomli_w.dumps({"value": text}).removeprefix("value = ").strip()

    name, _, path = text.partition("=")
    return f"held_out.kind={word(name)}", f"held_out.path={word(path)}" if path else "held_out.path=none"


def perform(
    tasks: Sequence[EvalTask],
    progress_of: Callable[[Path], AbstractContextManager[Callable[..., None]]],
    say: Callable[[str], None],
) -> list[Evaluated]:
    """Perform the tasks and return their results in the same order.

    One policy is open at a time, and is used for all tasks that can share it. If one of several evaluations
    fails, the others still run. ``progress_of`` shows the progress of the evaluation in a folder, and ``say``
    prints a line.
    """
    found: dict[int, Evaluated] = {}
    groups: dict[str, list[tuple[int, EvalTask]]] = {}
    for number, task in enumerate(tasks):
        found[number] = Evaluated(task.one.name, task.label, task.one.role)
        if task.damage is None:
            groups.setdefault(task.policy_key, []).append((number, task))
        else:
            found[number] = replace(found[number], error=ValueError(task.damage))
    for same in groups.values():
        first = same[0][1]
        with policy_of(first.opened[1], first.weights) as policy:
            for number, task in same:
                try:
                    scores, facts = evaluate_on(task, policy, progress_of, say)
                    found[number] = replace(found[number], scores=scores, facts=facts)
                except Exception as error:  # any error: the other evaluations still run
                    found[number] = replace(found[number], error=error)
    return [found[number] for number in range(len(tasks))]


def evaluate_on(
    task: EvalTask,
    policy: Unopened,
    progress_of: Callable[[Path], AbstractContextManager[Callable[..., None]]],
    say: Callable[[str], None],
) -> tuple[Scores, dict[str, str]]:
    """Return the figures on one data set and further table cells. Stored replies are reused."""
    one, weights, options, (run, config) = task.one, task.weights, task.options, task.opened
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
        range(options.seed, options.seed + options.seeds),
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
    """Return further table cells by column head: settings, and the overlap with training problems."""
    facts, own = dict[str, str](), task.subject.config
    if task.options.suite:
        trained = task.subject.trained_on
        if isinstance(trained, str):
            facts[IN_TRAINING] = f"unknown: {trained}"
        elif is_generated_from(own, config):
            facts[IN_TRAINING] = "0"  # the splits of a family are disjoint, but all its texts are similar
        else:
            found = overlaps(trained, problems)
            same = sum(overlap.kind == "exact" for overlap in found)
            facts[IN_TRAINING] = f"{len(found)}, {same} the same" if same else str(len(found))
    if task.options.compact:
        facts |= {"grader": config.grader.final, "max tokens": str(config.debate.max_tokens)}
    same_set = own.held_out.model_copy(update={"limit": config.held_out.limit}) == config.held_out
    return facts | ({TEST_TIME: "yes"} if own.env.test_time_learning and same_set else {})


def step_learnt(weights: Path | None) -> int:
    """Return the number of training steps of weights: 0 before training and after the warm start."""
    return 0 if weights is None or weights.parent.name == WARM_START else step_of(weights)
