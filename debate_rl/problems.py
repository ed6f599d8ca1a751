"""The problems of a run: what is trained on, and what is held out."""

from __future__ import annotations

import random
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from debate import Problem
from debate.seeds import derive_seed
from debate_rl.config import Config, EnvConfig, HeldOutConfig
from debate_rl.config.data import HeldOutSet
from debate_rl.difficulty import bands, by_difficulty
from debate_rl.metrics.answers import sources_of
from debate_rl.mixture import load_mixture
from debate_rl.problem_checks import (
    refuse_no_rubric,
    refuse_no_sandbox,
    refuse_nothing_to_score,
    refuse_unknown_levels,
)
from debate_rl.problem_limits import counts, with_short_prompts
from debate_rl.runs.provenance import file_checksums, is_split_off, problems_checksums
from debate_rl.shots import held_out_with_shots, shots_of
from envs import DataError, Environment, load_environment
from envs.data.decontamination import WORDS, Overlap, overlap_line, overlaps, without_overlaps
from envs.data.shots import with_shots
from envs.errors import DataWarning
from envs.families import FAMILIES

NAMED_BY_BOTH = ("levels", "subjects", "fields")
"""Keys of ``env`` that ``held_out`` has as well."""
HELD_OUT = "held_out.kind"
ASSUMED = "four " * 80
"""A question of 100 tokens, about as long as those of school mathematics."""
SHOWN = 60
"""Characters of a level or a source that a start shows."""


@dataclass(frozen=True, slots=True)
class HeldOutProblems:
    """A held-out set: what grades it, its problems, and how it is evaluated. ``name`` "" is the first one."""

    name: str
    environment: Environment
    problems: tuple[Problem, ...]
    settings: HeldOutSet


class OverlapWarning(UserWarning):
    """Held-out problems of which training sees the whole or a part."""


@dataclass(frozen=True, slots=True)
class Problems:
    """The run's problems, no question in both parts, and the checksums of files and of both parts.

    ``environment`` grades the trained problems and ``eval_environment`` the held-out ones; they are the same
    unless ``held_out.kind`` or ``held_out.path`` names others. ``overlaps`` are held-out problems that share
    runs of words with trained ones, ``left_out`` counts the problems that ``env.decontaminate`` took away.
    ``more``: the sets of ``held_out.more``.
    """

    environment: Environment
    train: tuple[Problem, ...]
    held_out: tuple[Problem, ...]
    checksums: dict[str, str]
    eval_environment: Environment
    overlaps: tuple[Overlap, ...] = ()
    left_out: Mapping[str, int] | None = None
    more: tuple[HeldOutProblems, ...] = ()
    too_long: int | None = None
    """How many training problems ``env.max_prompt_tokens`` took away; None where it is not set."""
    set_of: Mapping[str, str] = field(default_factory=dict)
    """The set of each training problem by its id, where ``env.mix`` has several."""
    difficulty: Mapping[str, int] | None = None
    """How many training problems ``env.difficulty`` left out, by cause; None where it is not set."""
    trained_on: int = 0
    """How many held-out problems are trained on, as ``env.test_time_learning`` allows."""

    @property
    def never_trained(self) -> tuple[Problem, ...]:
        """The problems of all held-out sets."""
        return (*self.held_out, *(problem for part in self.more for problem in part.problems))

    @property
    def played(self) -> tuple[Problem, ...]:
        """The problems whose prompts a run makes."""
        return (*self.train, *self.never_trained)

    def evaluated(self, config: Config) -> tuple[HeldOutProblems, ...]:
        """Return the held-out sets that have problems, the first one in front."""
        first = HeldOutProblems("", self.eval_environment, self.held_out, config.held_out)
        return tuple(part for part in (first, *self.more) if part.problems)

    @property
    def sources(self) -> Mapping[str, str]:
        """The sources that are trained on, by their names in metrics; nothing where there is one."""
        return sources_of(self.train)

    def findings(self) -> dict[str, object]:
        """Return what run.json says about the problems beside their checksums."""
        found: dict[str, object] = {"overlaps": [asdict(overlap) for overlap in self.overlaps]}
        held_out = {f"held_out, {part.name}": counts(part.problems) for part in self.more}
        found["problems"] = {"train": counts(self.train), "held_out": counts(self.held_out), **held_out}
        if self.left_out is not None:
            found["left_out"] = dict(self.left_out)
        if self.too_long is not None:
            found["too_long"] = {"left_out": self.too_long, "of": len(self.train) + self.too_long}
        if self.difficulty is not None:
            found["difficulty"] = {"left_out": dict(self.difficulty)}
        if self.trained_on:
            found["test_time_learning"] = {"trained_on": self.trained_on, "of": len(self.never_trained)}
        return found

    def lines(self) -> list[str]:
        """Return what a start says of the problems: how many, by level and source where there are several."""
        parts = {"to train on": counts(self.train), "held out": counts(self.held_out)}
        parts |= {f"held out ({part.name})": counts(part.problems) for part in self.more}
        numbers = [f"{part['problems']:,} {name}" for name, part in parts.items()]
        lines = [f"problems: {', '.join(numbers)}"]
        if self.difficulty is not None:
            causes = ", ".join(f"{count:,} {cause}" for cause, count in self.difficulty.items() if count)
            lines.append(f"  left out by env.difficulty: {causes or 'none'}")
        for name, part in parts.items():
            for head in ("levels", "sources"):
                by = part.get(head)
                if isinstance(by, dict):
                    listed = ", ".join(f"{key[:SHOWN] or 'none'}: {count}" for key, count in by.items())
                    lines.append(f"  {head}, {name}: {listed}")
        return lines


def load_run_problems(config: Config) -> Problems:
    """Return the problems of a run; with one local file and no other, ``held_out.limit`` of it are held out.

    Open problems are never held out: there is no truth to evaluate them by. DataError when nothing is left to
    train on, or when a question would be both trained on and held out; a warning names those that are so
    in part.
    """
    loaded = _loaded(config, file_checksums(config))
    loaded = _decontaminated(config, replace(loaded, more=further_held_out(config, loaded.environment)))
    loaded = _of_difficulty(config, _with_trained_on(config, loaded))
    refuse_no_rubric(config, (*loaded.train, *loaded.never_trained))
    refuse_no_sandbox((*loaded.train, *loaded.never_trained))
    refuse_unknown_levels(config, (*loaded.train, *loaded.never_trained))
    refuse_nothing_to_score(config, (*loaded.train, *loaded.never_trained))
    loaded = _within_context(config, _with_shots(config, loaded))
    shared = _shared(config, loaded)
    more = {part.name: part.problems for part in loaded.more}
    checksums = {**loaded.checksums, **problems_checksums(config, loaded.train, loaded.held_out, more)}
    return replace(loaded, checksums=checksums, overlaps=shared)


def assumed_problems(config: Config) -> Problems:
    """Return problems of a usual length in the place of those that cannot be read here, to plan with."""
    problem = Problem("assumed", ASSUMED, kind="number", answer="1")
    return Problems(FAMILIES["words"], (problem,), (problem,) * config.held_out.limit, {}, FAMILIES["words"])


def without_held_out(config: Config, loaded: Problems) -> Problems:
    """Return the problems but the trained ones that overlap with held-out ones (``env.decontaminate``).

    DataError for one that is still among both; a warning names those that are so in part.
    """
    loaded = _with_trained_on(config, _decontaminated(config, loaded))
    return replace(loaded, overlaps=_shared(config, loaded))


def _shared(config: Config, loaded: Problems) -> tuple[Overlap, ...]:
    """Return the held-out problems that are trained on in part, with a warning."""
    compared = not (_generated(config) or config.env.test_time_learning)
    shared = overlaps(loaded.train, loaded.never_trained) if compared else ()
    if shared:
        warnings.warn(overlap_line(shared, len(loaded.never_trained)), OverlapWarning, stacklevel=3)
    return shared


def load_held_out(config: Config, *, key: str = HELD_OUT) -> tuple[Environment, tuple[Problem, ...]]:
    """Return what grades the held-out problems, and them; trained ones are read only if one file has both.

    ``key``: where the data set was named, for errors.
    """
    if is_split_off(config):
        loaded = _loaded(config, {})
        return loaded.eval_environment, held_out_with_shots(config, loaded.held_out, shots_of(config))
    environment = _environment(config.env, config.env.path)
    if not config.held_out.limit:
        return environment, ()
    environment, problems = _held_out(config, environment, key)
    refuse_no_rubric(config, problems)
    refuse_no_sandbox(problems)
    return environment, held_out_with_shots(config, problems, shots_of(config))


def _with_shots(config: Config, loaded: Problems) -> Problems:
    """Return the problems with their examples."""
    pool = shots_of(config)
    train = with_shots(
        loaded.train, pool, config.shots.count, each=config.shots.draw == "each", seed=config.seed
    )
    more = tuple(
        replace(part, problems=held_out_with_shots(config, part.problems, pool)) for part in loaded.more
    )
    return replace(
        loaded, train=train, held_out=held_out_with_shots(config, loaded.held_out, pool), more=more
    )


def load_trained(config: Config) -> tuple[Problem, ...]:
    """Return the problems that a run trains on, or would."""
    if is_split_off(config):
        return _loaded(config, {}).train
    if config.env.mix:
        return load_mixture(config)[1]
    env, environment = config.env, _environment(config.env, config.env.path)
    return environment.problems(split=env.split, limit=env.limit, seed=derive_seed(config.seed, "train"))


def is_generated_from(config: Config, evaluated: Config) -> bool:
    """Return whether what is evaluated comes from the synthetic family that is trained on."""
    return config.env.kind in FAMILIES and evaluated.held_out.kind in (None, config.env.kind)


def _loaded(config: Config, files: dict[str, str]) -> Problems:
    env, held = config.env, config.held_out
    if env.mix:
        mixture, train = load_mixture(config)
        eval_environment, held_out = _held_out(config, mixture, HELD_OUT) if held.limit else (mixture, ())
        return Problems(mixture, train, held_out, files, eval_environment, set_of=mixture.set_of)
    environment = _environment(env, env.path)
    if is_split_off(config):
        _refuse_unread(config)
        everything = environment.problems(split=env.split, limit=None, seed=None)
        train, held_out = _split_off(everything, held.limit, config)
        return Problems(environment, train, held_out, files, environment)
    _refuse_same_split(config)
    train = environment.problems(split=env.split, limit=env.limit, seed=derive_seed(config.seed, "train"))
    eval_environment, held_out = _held_out(config, environment, HELD_OUT) if held.limit else (environment, ())
    if not train:
        raise DataError(f"env.kind={env.kind}: split {env.split!r} holds no problems to train on")
    return Problems(environment, train, held_out, files, eval_environment)


def _with_trained_on(config: Config, loaded: Problems) -> Problems:
    """Return the problems, with how many held-out ones are trained on; DataError if that is not declared."""
    if not config.env.test_time_learning:
        _refuse_overlap(loaded.train, loaded.never_trained)
        return loaded
    trained = set(map(_plain, loaded.train))
    shared = sum(_plain(problem) in trained for problem in loaded.never_trained)
    if not shared:
        raise DataError(
            "env.test_time_learning=true: no held-out problem is trained on; leave it out, or train on the "
            "held-out problems (env.split, held_out.split)"
        )
    line = f"test-time learning: {shared} of {len(loaded.never_trained)} held-out problems are trained on"
    warnings.warn(line, OverlapWarning, stacklevel=3)
    return replace(loaded, trained_on=shared)


def _of_difficulty(config: Config, loaded: Problems) -> Problems:
    """Return the problems but the trained ones that ``env.difficulty`` leaves out.

    A file of the held-out ones is refused here and not in an evaluation, where it is of others.
    """
    if config.held_out.difficulty:
        bands(held_out_with_shots(config, loaded.held_out, shots_of(config)), config.held_out.difficulty)
    if config.env.difficulty is None:
        return loaded
    train, left_out = by_difficulty(loaded.train, config.env.difficulty)
    return replace(loaded, train=train, difficulty=left_out)


def _within_context(config: Config, loaded: Problems) -> Problems:
    """Return the problems but the trained ones that ``env.max_prompt_tokens`` takes away, with a warning."""
    most = config.env.max_prompt_tokens
    if most is None:
        return loaded
    train = with_short_prompts(loaded.train, config, most)
    before, count = len(loaded.train), len(loaded.train) - len(train)
    if not train:
        raise DataError(
            f"env.max_prompt_tokens={most} leaves nothing to train on: the first prompts of all {before} "
            "training problems are longer, or do not fit the context; raise it"
        )
    line = f"{count} of {before} training problems left out ({count / before:.1%}), whose prompts are longer"
    warnings.warn(f"env.max_prompt_tokens={most}: {line}", DataWarning, stacklevel=3)
    return replace(loaded, train=train, too_long=count)


def _decontaminated(config: Config, loaded: Problems) -> Problems:
    """Return the problems but the trained ones that ``env.decontaminate`` takes away, with a warning."""
    kind = config.env.decontaminate
    if kind is None or _generated(config):
        return loaded
    train, left_out = without_overlaps(loaded.train, loaded.never_trained, kind)
    count, before = sum(left_out.values()), len(loaded.train)
    if not train:
        raise DataError(
            f"env.decontaminate={kind!r} leaves nothing to train on: all {before} training problems overlap "
            "with held-out ones; choose another held-out split or file"
        )
    if count:
        runs = f", {left_out['ngram']} by {WORDS}-word runs" if kind == "ngram" else ""
        line = (
            f"{count} of {before} training problems left out ({left_out['exact']} the same as held-out ones"
        )
        warnings.warn(f"env.decontaminate={kind!r}: {line}{runs})", OverlapWarning, stacklevel=3)
    return replace(loaded, train=train, left_out=left_out)


def further_held_out(config: Config, environment: Environment) -> tuple[HeldOutProblems, ...]:
    """Return the further held-out sets."""
    sets: list[HeldOutProblems] = []
    for name, settings in config.held_out.more.items():
        held = HeldOutConfig(**settings.model_dump())
        key = f"held_out.more.{name}"
        try:
            there = config.model_copy(update={"held_out": held})
            _refuse_same_split(there)
            own, problems = _held_out(there, environment, f"{key}.kind") if held.limit else (environment, ())
        except DataError as error:
            raise DataError(f"{key}: {error}") from error
        if not problems:
            raise DataError(f"{key}: there are no problems to evaluate on; set {key}.limit and {key}.kind")
        sets.append(HeldOutProblems(name, own, problems, settings))
    return tuple(sets)


def _held_out(config: Config, environment: Environment, key: str) -> tuple[Environment, tuple[Problem, ...]]:
    """Return the held-out problems and what grades them."""
    held, environment = config.held_out, _eval_environment(config, environment, key)
    drawn = environment.problems(split=held.split, limit=held.limit, seed=derive_seed(held.seed, "held out"))
    graded = tuple(problem for problem in drawn if problem.kind != "open")
    if drawn and not graded:
        raise DataError(f"held_out: all {len(drawn)} problems are open: there is no truth to evaluate by")
    if len(graded) < len(drawn):
        line = f"held_out: {len(drawn) - len(graded)} of {len(drawn)} problems are open, and left out"
        warnings.warn(line, DataWarning, stacklevel=4)
    return environment, graded


def _eval_environment(config: Config, environment: Environment, key: str) -> Environment:
    """Return what the held-out problems come from: the trained environment where nothing else is named."""
    env, held = config.env, config.held_out
    own = {name: value for name in NAMED_BY_BOTH if (value := getattr(held, name)) is not None}
    if held.kind is not None:
        return load_environment(held.kind, key=key, path=held.path, **own)
    if held.path is None and not own:
        return environment
    return load_environment(
        env.kind, path=held.path, **{name: getattr(env, name) for name in NAMED_BY_BOTH} | own
    )


def _refuse_unread(config: Config) -> None:
    """A part of the one file is read as the whole is: what the held-out part names has no meaning."""
    for name in NAMED_BY_BOTH:
        if getattr(config.held_out, name) is not None:
            raise DataError(
                f"held_out.{name}: the held-out problems are a part of env.path={config.env.path}, which is "
                f"read by env.{name}; set held_out.path to another file, or leave out held_out.{name}"
            )


def _generated(config: Config) -> bool:
    """Whether both parts come from one family: all its sentences are alike, and its splits are disjoint."""
    return is_generated_from(config, config)


def _environment(env: EnvConfig, path: str | None) -> Environment:
    return load_environment(env.kind, path=path, levels=env.levels, subjects=env.subjects, fields=env.fields)


def _split_off(
    problems: tuple[Problem, ...], held_out: int, config: Config
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return (train, held out) of one file: the held-out ones are drawn by ``held_out.seed`` alone.

    A question that the file has twice is not trained on if it is held out.
    """
    order = [problem for problem in problems if problem.kind != "open"]
    random.Random(derive_seed(config.held_out.seed, "held out")).shuffle(order)
    kept_back = tuple(order[:held_out])
    questions = set() if config.env.test_time_learning else {_plain(problem) for problem in kept_back}
    train = [problem for problem in problems if _plain(problem) not in questions]
    if not train:
        raise DataError(
            f"{config.env.path}: {len(problems)} problems, of which held_out.limit={held_out} are held out; "
            "nothing is left to train on: lower held_out.limit"
        )
    random.Random(derive_seed(config.seed, "train")).shuffle(train)
    return tuple(train[: config.env.limit]), kept_back


def _refuse_same_split(config: Config) -> None:
    """A family has the same problem in many spellings, which only its splits keep apart."""
    env, held = config.env, config.held_out
    same = held.kind in (None, env.kind) and env.kind in FAMILIES
    if same and held.limit and held.split == env.split and not env.test_time_learning:
        raise DataError(
            f"held_out.split={held.split!r} is the split trained on; choose another, for instance 'test'"
        )


def _plain(problem: Problem) -> tuple[str, ...]:
    """Return question and options with single blanks: line breaks and another order make no other one."""
    options = sorted(" ".join(choice.split()) for choice in problem.choices)
    return " ".join(problem.question.split()), *options


def _refuse_overlap(train: tuple[Problem, ...], held_out: tuple[Problem, ...]) -> None:
    shared = set(map(_plain, train)) & set(map(_plain, held_out))
    if shared:
        raise DataError(
            f"held_out: {len(shared)} questions are also trained on, for instance {min(shared)[0][:60]!r}; "
            "choose another split or file, or set env.decontaminate='exact' to leave them out of training"
        )
