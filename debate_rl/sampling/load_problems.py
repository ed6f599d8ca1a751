"""The problems of a run: training problems, held-out problems, and the examples in their prompts."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from msgspec import UNSET

from debate import Policy, Problem
from debate.prompting.fitting import PromptTooLongError
from debate.prompting.prompt import check_fits, opening_tokens
from debate.seeds import derive_seed
from debate.types import Shot
from debate_rl.config import Config, EnvConfig, HeldOutConfig
from debate_rl.config.data import HeldOutSet, MixedSet
from debate_rl.config.recipes import find_shots
from debate_rl.engines import counting_policy
from debate_rl.metrics.answers import sources_of
from debate_rl.runs.provenance import file_checksums, is_split_off, problems_checksums
from debate_rl.sampling.difficulty import bands, by_difficulty
from envs import DataError, Environment, load_environment
from envs.data.decontamination import WORDS, Overlap, overlap_line, overlaps, without_overlaps
from envs.data.shots import load_shots, same_question, with_shots
from envs.errors import DataWarning
from envs.families import FAMILIES
from envs.registry import GENERATORS, Mixture

NAMED_BY_BOTH = ("levels", "subjects", "fields")  # keys that ``env`` and ``held_out`` share
HELD_OUT = "held_out.kind"
ASSUMED = "four " * 80  # a question of 100 tokens, as in school mathematics
SHOWN = 60  # characters of a level or a source in the startup message
MOST_COUNTED = 40  # maximum number of levels or sources in the startup message


@dataclass(frozen=True, slots=True)
class HeldOutProblems:
    """A held-out set: its environment, problems and settings. The first set has the name ""."""

    name: str
    environment: Environment
    problems: tuple[Problem, ...]
    settings: HeldOutSet


class OverlapWarning(UserWarning):
    """A warning of held-out problems that overlap with training problems."""


@dataclass(frozen=True, slots=True)
class Problems:
    """The problems of a run. No question is both trained and held out, except in test-time learning.

    ``environment`` grades training problems, ``eval_environment`` held-out problems. ``checksums``: of files
    and of sets of problems. ``overlaps``: held-out problems that share runs of words with training problems.
    ``left_out``, ``too_long``, ``difficulty``: how many training problems ``env.decontaminate``,
    ``env.max_prompt_tokens`` and ``env.difficulty`` removed; None if the key is not set. ``more``: the sets
    of ``held_out.more``. ``set_of``: training problem id -> set of ``env.mix``. ``trained_on``: number of
    held-out problems that are trained on (``env.decontaminate = "never"``).
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
    set_of: Mapping[str, str] = field(default_factory=dict)
    difficulty: Mapping[str, int] | None = None
    trained_on: int = 0

    @property
    def never_trained(self) -> tuple[Problem, ...]:
        """The problems of all held-out sets."""
        return (*self.held_out, *(problem for part in self.more for problem in part.problems))

    @property
    def played(self) -> tuple[Problem, ...]:
        """All training and held-out problems."""
        return (*self.train, *self.never_trained)

    def evaluated(self, config: Config) -> tuple[HeldOutProblems, ...]:
        """Return the held-out sets with problems, starting with the set of ``held_out`` itself."""
        first = HeldOutProblems("", self.eval_environment, self.held_out, config.held_out)
        return tuple(part for part in (first, *self.more) if part.problems)

    @property
    def sources(self) -> Mapping[str, str]:
        """The sources of training problems, by their names in metrics. Empty if there is only one source."""
        return sources_of(self.train)

    def findings(self) -> dict[str, object]:
        """Return the entries of run.json about the problems, except checksums."""
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
        """Return the startup message about the problems: numbers in total, by level and by source."""
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


def counts(problems: Sequence[Problem]) -> dict[str, object]:
    """Return the number of problems in total and, in order, by level and by source."""
    found: dict[str, object] = {"problems": len(problems)}
    for head, of in (("levels", "level"), ("sources", "source")):
        numbers = Counter(str(getattr(problem, of)) for problem in problems)
        if 1 < len(numbers) <= MOST_COUNTED:
            found[head] = {key: numbers[key] for key in sorted(numbers)}
    return found


def load_run_problems(config: Config) -> Problems:
    """Return the problems of a run. Hold out ``held_out.limit`` problems of a single local file.

    Raise DataError if no training problem is left, or if a question is both trained and held out. Warn of
    questions that overlap in part.
    """
    loaded = _loaded(config, file_checksums(config))
    loaded = _decontaminated(config, replace(loaded, more=further_held_out(config, loaded.environment)))
    loaded = _with_trained_on(config, loaded)
    if config.held_out.difficulty:  # refuses a file of other problems now instead of at the first evaluation
        bands(held_out_with_shots(config, loaded.held_out, shots_of(config)), config.held_out.difficulty)
    if config.env.difficulty is not None:
        train, causes = by_difficulty(loaded.train, config.env.difficulty)
        loaded = replace(loaded, train=train, difficulty=causes)
    _refuse_ungradable(config, (*loaded.train, *loaded.never_trained))
    _refuse_unfit(config, (*loaded.train, *loaded.never_trained))
    loaded = _within_context(config, _with_shots(config, loaded))
    shared = _shared(config, loaded)
    more = {part.name: part.problems for part in loaded.more}
    checksums = {**loaded.checksums, **problems_checksums(config, loaded.train, loaded.held_out, more)}
    return replace(loaded, checksums=checksums, overlaps=shared)


def load_held_out(config: Config, *, key: str = HELD_OUT) -> tuple[Environment, tuple[Problem, ...]]:
    """Return the held-out problems and their environment. Errors about the data set name ``key``."""
    if is_split_off(config):
        loaded = _loaded(config, {})
        return loaded.eval_environment, held_out_with_shots(config, loaded.held_out, shots_of(config))
    environment = _environment(config.env)
    if not config.held_out.limit:
        return environment, ()
    environment, problems = _held_out(config, environment, key)
    _refuse_ungradable(config, problems)
    return environment, held_out_with_shots(config, problems, shots_of(config))


def load_trained(config: Config) -> tuple[Problem, ...]:
    """Return the training problems of a configuration, before filters such as ``env.decontaminate``."""
    if is_split_off(config):
        return _loaded(config, {}).train
    if config.env.mix:
        return load_mixture(config)[1]
    env, environment = config.env, _environment(config.env)
    return environment.problems(split=env.split, limit=env.limit, seed=derive_seed(config.seed, "train"))


def assumed_problems(config: Config) -> Problems:
    """Return problems of typical length, for planning when the data cannot be read."""
    problem = Problem("assumed", ASSUMED, kind="number", answer="1")
    return Problems(FAMILIES["words"], (problem,), (problem,) * config.held_out.limit, {}, FAMILIES["words"])


def without_held_out(config: Config, loaded: Problems) -> Problems:
    """Apply ``env.decontaminate``. Raise DataError if a question is still both trained and held out."""
    loaded = _with_trained_on(config, _decontaminated(config, loaded))
    return replace(loaded, overlaps=_shared(config, loaded))


def is_generated_from(config: Config, evaluated: Config) -> bool:
    """Return True if one generator makes training and evaluated problems, so that they never overlap."""
    return config.env.kind in GENERATORS and evaluated.held_out.kind in (None, config.env.kind)


def load_mixture(config: Config) -> tuple[Mixture, tuple[Problem, ...]]:
    """Return the environment of ``env.mix`` and its problems. Raise DataError if sets share a problem."""
    mix = config.env.mix or ()
    sets = {one.name: _environment(one, key=f"env.mix.{index}.kind") for index, one in enumerate(mix)}
    problems: list[Problem] = []
    set_of: dict[str, str] = {}
    for one in mix:
        seed = derive_seed(config.seed, "train", one.name)
        own = sets[one.name].problems(split=one.split, limit=one.limit, seed=seed)
        if not own:
            raise DataError(f"env.mix, {one.name}: split {one.split!r} has no problems to train on")
        for problem in own:
            if (other := set_of.setdefault(problem.id, one.name)) != one.name:
                raise DataError(
                    f"env.mix: the problem {problem.id!r} is in {other} and in {one.name}; choose levels, "
                    "subjects or splits that do not overlap"
                )
        problems += own
    return Mixture(sets, set_of), tuple(problems)


def further_held_out(config: Config, environment: Environment) -> tuple[HeldOutProblems, ...]:
    """Return the held-out sets of ``held_out.more``."""
    sets: list[HeldOutProblems] = []
    for name, settings in config.held_out.more.items():
        held = HeldOutConfig(**settings.model_dump())
        key = f"held_out.more.{name}"
        try:
            there = config.model_copy(update={"held_out": held})
            _refuse_same_split(there)
            own, problems = _held_out(there, environment, f"{key}.kind")
        except DataError as error:
            raise DataError(f"{key}: {error}") from error
        if not problems:
            raise DataError(f"{key}: there are no problems to evaluate on; set {key}.limit and {key}.kind")
        sets.append(HeldOutProblems(name, own, problems, settings))
    return tuple(sets)


def shots_of(config: Config) -> tuple[Shot, ...]:
    """Return the pool of examples for prompts. Empty if ``shots.count`` is 0."""
    shots, env = config.shots, config.env
    if not shots.count:
        return ()
    path, fields = (find_shots(shots.path), shots.fields) if shots.path else (env.path, env.fields)
    return load_shots("file" if shots.path else env.kind, split=shots.split, path=path, fields=fields)


def shown_with(config: Config, problem: Problem, count: int) -> Problem:
    """Return a problem with ``count`` examples in its prompt."""
    if not count:
        return problem
    each = config.shots.draw == "each"
    return with_shots([problem], shots_of(config), count, each=each, seed=config.seed)[0]


def held_out_with_shots(
    config: Config, problems: tuple[Problem, ...], pool: tuple[Shot, ...]
) -> tuple[Problem, ...]:
    """Return held-out problems with their examples. Raise DataError if an example is a held-out problem."""
    questions = {same_question(problem.question): problem.id for problem in problems}
    shown = next((shot for shot in pool if same_question(shot.question) in questions), None)
    if shown is not None:
        source = config.shots.path or f"{config.env.kind}, split {config.shots.split!r}"
        raise DataError(
            f"shots: {source} contains the held-out problem {questions[same_question(shown.question)]} with "
            "its solution; choose another file or split"
        )
    each = config.shots.draw == "each"
    return with_shots(problems, pool, config.shots.final, each=each, seed=config.held_out.seed)


def _with_shots(config: Config, loaded: Problems) -> Problems:
    pool, each = shots_of(config), config.shots.draw == "each"
    train = with_shots(loaded.train, pool, config.shots.most, each=each, seed=config.seed)
    held_out = held_out_with_shots(config, loaded.held_out, pool)
    more = (replace(one, problems=held_out_with_shots(config, one.problems, pool)) for one in loaded.more)
    return replace(loaded, train=train, held_out=held_out, more=tuple(more))


def _loaded(config: Config, files: dict[str, str]) -> Problems:
    env = config.env
    if env.mix:
        mixture, train = load_mixture(config)
        eval_environment, held_out = _held_out(config, mixture, HELD_OUT)
        return Problems(mixture, train, held_out, files, eval_environment, set_of=mixture.set_of)
    environment = _environment(env)
    if is_split_off(config):
        train, held_out = _split_off(config, environment)
        return Problems(environment, train, held_out, files, environment)
    _refuse_same_split(config)
    train = environment.problems(split=env.split, limit=env.limit, seed=derive_seed(config.seed, "train"))
    eval_environment, held_out = _held_out(config, environment, HELD_OUT)
    if not train:
        raise DataError(f"env.kind={env.kind}: split {env.split!r} has no problems to train on")
    return Problems(environment, train, held_out, files, eval_environment)


def _environment(named: EnvConfig | MixedSet, *, key: str = "env.kind") -> Environment:
    options = {name: getattr(named, name) for name in ("path", *NAMED_BY_BOTH)}
    return load_environment(named.kind, key=key, **options)


def _held_out(config: Config, environment: Environment, key: str) -> tuple[Environment, tuple[Problem, ...]]:
    """Return the held-out problems and their environment, by default the environment of training."""
    held = config.held_out
    if not held.limit:
        return environment, ()
    own = {name: value for name in NAMED_BY_BOTH if (value := getattr(held, name)) is not None}
    if held.kind is not None:
        environment = load_environment(held.kind, key=key, path=held.path, **own)
    elif held.path is not None or own:
        options = {name: getattr(config.env, name) for name in NAMED_BY_BOTH} | own
        environment = load_environment(config.env.kind, path=held.path, **options)
    drawn = environment.problems(split=held.split, limit=held.limit, seed=derive_seed(held.seed, "held out"))
    graded = tuple(problem for problem in drawn if problem.kind != "open")
    if drawn and not graded:
        raise DataError(
            f"held_out: none of the {len(drawn)} problems has a gold answer, so nothing can be evaluated; "
            "choose other problems, or set held_out.limit = 0"
        )
    if len(graded) < len(drawn):
        line = f"held_out: {len(drawn) - len(graded)} of {len(drawn)} problems left out: no gold answer"
        warnings.warn(line, DataWarning, stacklevel=4)
    return environment, graded


def _split_off(config: Config, environment: Environment) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Split one file's problems into (train, held out), without copies of a held-out question in train."""
    held = config.held_out
    for name in NAMED_BY_BOTH:
        if getattr(held, name) is not None:
            raise DataError(
                f"held_out.{name}: the held-out problems are a part of env.path={config.env.path}, which is "
                f"read with env.{name}; set held_out.path to another file, or leave out held_out.{name}"
            )
    problems = environment.problems(split=config.env.split, limit=None, seed=None)
    order = [problem for problem in problems if problem.kind != "open"]
    random.Random(derive_seed(held.seed, "held out")).shuffle(order)
    kept_back = tuple(order[: held.limit])
    questions = set() if config.env.test_time_learning else {_plain(problem) for problem in kept_back}
    train = [problem for problem in problems if _plain(problem) not in questions]
    if not train:
        raise DataError(
            f"{config.env.path}: held_out.limit={held.limit} leaves none of {len(problems)} problems to "
            "train on; lower held_out.limit"
        )
    random.Random(derive_seed(config.seed, "train")).shuffle(train)
    return tuple(train[: config.env.limit]), kept_back


def _with_trained_on(config: Config, loaded: Problems) -> Problems:
    """Return ``loaded`` with the number of held-out problems that test-time learning trains on."""
    trained, held_out = set(map(_plain, loaded.train)), loaded.never_trained
    if not config.env.test_time_learning:
        if shared := trained & set(map(_plain, held_out)):
            raise DataError(
                f"held_out: {len(shared)} questions are also trained on, for instance "
                f"{min(shared)[0][:60]!r}; choose another split or file, or set env.decontaminate='exact' to "
                "leave them out of training"
            )
        return loaded
    count = sum(_plain(problem) in trained for problem in held_out)
    if not count:
        raise DataError(
            "env.decontaminate='never': no held-out problem is trained on; remove this setting, or train on "
            "the held-out problems (env.split, held_out.split)"
        )
    line = f"test-time learning: {count} of {len(held_out)} held-out problems are trained on"
    warnings.warn(line, OverlapWarning, stacklevel=3)
    return replace(loaded, trained_on=count)


def _plain(problem: Problem) -> tuple[str, ...]:
    """Return what identifies a question: its text and its sorted options, with whitespace collapsed."""
    options = sorted(" ".join(choice.split()) for choice in problem.choices)
    return " ".join(problem.question.split()), *options


def _decontaminated(config: Config, loaded: Problems) -> Problems:
    """Remove the training problems that ``env.decontaminate`` excludes, and warn of them."""
    kind = config.env.decontaminate
    if kind is None or kind == "never" or is_generated_from(config, config):
        return loaded
    train, left_out = without_overlaps(loaded.train, loaded.never_trained, kind)
    count, before = sum(left_out.values()), len(loaded.train)
    if not train:
        raise DataError(
            f"env.decontaminate={kind!r} leaves no training problem: all {before} overlap with held-out "
            "problems; choose another held-out split or file"
        )
    if count:
        runs = f", {left_out['ngram']} by {WORDS}-word runs" if kind == "ngram" else ""
        same = f"{left_out['exact']} equal to held-out problems"
        line = f"{count} of {before} training problems left out ({same}{runs})"
        warnings.warn(f"env.decontaminate={kind!r}: {line}", OverlapWarning, stacklevel=3)
    return replace(loaded, train=train, left_out=left_out)


def _shared(config: Config, loaded: Problems) -> tuple[Overlap, ...]:
    """Return the held-out problems that overlap in part with training problems, and warn of them."""
    compared = not (is_generated_from(config, config) or config.env.test_time_learning)
    shared = overlaps(loaded.train, loaded.never_trained) if compared else ()
    if shared:
        warnings.warn(overlap_line(shared, len(loaded.never_trained)), OverlapWarning, stacklevel=3)
    return shared


def _within_context(config: Config, loaded: Problems) -> Problems:
    """Remove the training problems that exceed ``env.max_prompt_tokens``, and warn of them."""
    most = config.env.max_prompt_tokens
    if most is None:
        return loaded
    policy = counting_policy(config)
    train = tuple(problem for problem in loaded.train if _fits(problem, policy, config, most))
    before, count = len(loaded.train), len(loaded.train) - len(train)
    if not train:
        raise DataError(
            f"env.max_prompt_tokens={most} leaves no training problem: the first prompts of all {before} "
            "training problems are longer or do not fit the context; raise the limit"
        )
    line = f"{count} of {before} training problems left out ({count / before:.1%}): prompts too long"
    warnings.warn(f"env.max_prompt_tokens={most}: {line}", DataWarning, stacklevel=3)
    return replace(loaded, train=train, too_long=count)


def _fits(problem: Problem, policy: Policy, config: Config, most: int) -> bool:
    if opening_tokens(problem, policy, config.debate) > most:
        return False
    try:
        check_fits(problem, policy, config.debate)
    except PromptTooLongError:
        return False
    return True


def _refuse_same_split(config: Config) -> None:
    """Raise DataError if training and held-out problems use the same split of a generator."""
    env, held = config.env, config.held_out
    same = held.kind in (None, env.kind) and env.kind in GENERATORS
    if same and held.limit and held.split == env.split and not env.test_time_learning:
        raise DataError(
            f"held_out.split={held.split!r} is also the training split; choose another, for instance 'test'"
        )


def _refuse_ungradable(config: Config, problems: Sequence[Problem]) -> None:
    verifier = config.verifier
    for problem in problems:
        if problem.kind == "rubric" and verifier.endpoint is None:
            raise DataError(
                f"verifier.endpoint: problem {problem.id} is of kind 'rubric', which a verifier model "
                "scores; set verifier.endpoint, or give the problem another kind"
            )
        if problem.kind == "rubric" and problem.rubric is UNSET and verifier.own_rubric() is None:
            raise DataError(
                f"verifier.rubric: neither problem {problem.id} nor the recipe has a rubric; set one"
            )
    if any(problem.kind == "code" for problem in problems):
        from envs.programs.harness import shared_sandbox

        shared_sandbox()


def _refuse_unfit(config: Config, problems: Sequence[Problem]) -> None:
    """Raise DataError for a ``debate.by_level`` level without problems, or an unused verifier."""
    known = sorted({problem.level for problem in problems})
    for index, one in enumerate(config.debate.by_level):
        if one.level not in known:
            there = ", ".join(map(repr, known[:12]))
            raise DataError(
                f"debate.by_level.{index}.level = {one.level!r}: no problem has this level; the levels are "
                f"{there}"
            )
    verifier = config.verifier
    idle = verifier.endpoint is not None and not (verifier.beside_truth or verifier.diagnose)
    if idle and all(problem.kind != "rubric" for problem in problems):
        raise DataError(
            "verifier.endpoint: no problem is of kind 'rubric', so the verifier scores nothing; set "
            "verifier.beside_truth = true to compare it with truth, or remove verifier"
        )
