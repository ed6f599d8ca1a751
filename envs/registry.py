"""Load environments by name or dotted path, and check before training that they fit the protocol."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from debate.settings import did_you_mean, load_factory
from debate.types import Problem
from envs.answers.keys import key_of, key_of_kind
from envs.data.catalog import DATA_SETS, find_data_set
from envs.data.loading import OWN_FILE_NAMES, load_problems
from envs.errors import EnvironmentSpecError, shorten
from envs.families import FAMILIES
from envs.grading.extraction import extract
from envs.grading.grader import Grader, default_grader, find_answer
from envs.types import GRADE_KINDS, Grade, GradeKind, GradeStatus, Mode

REASONING_GYM, VERIFIERS = "reasoning_gym", "verifiers:"
GENERATORS = (*FAMILIES, REASONING_GYM)
"""Environments that generate problems, with splits that share none."""


class Environment(Protocol):
    """Problems and their grading: everything that training and evaluation need from a task.

    An environment may also have ``answer_key(problem, answer) -> str``, which returns equal texts for equal
    answers (default: ``envs.answers.keys.plain_key``). Evaluations grade in a separate thread, one answer at
    a time, unless the environment has ``main_thread_only = True``.
    """

    @property
    def name(self) -> str:
        """The name of the task in metrics and transcripts."""
        ...

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return problems of a split; the same seed gives the same problems in the same order."""
        ...

    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return the grade of an extracted answer (None if none was found). Never raise, whatever it is."""
        ...


@dataclass(frozen=True, slots=True)
class DataSetEnvironment:
    """A named data set or a file, graded by ``same_answer``."""

    name: str
    path: str | None = None
    levels: tuple[str, ...] | None = None
    subjects: tuple[str, ...] | None = None
    fields: dict[str, str] | None = None
    grader: Grader = field(default_factory=default_grader)

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return the data set's problems."""
        options: Any = {name: getattr(self, name) for name in ("path", "levels", "subjects", "fields")}
        return load_problems(self.name, split=split, limit=limit, seed=seed, **options)

    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return the grade of an extracted answer against the problem's gold answer."""
        gold, kind = _truth(problem)
        if answer is None:
            return Grade(GradeStatus.MISSING, "none")
        return self.grader.same_answer(answer, gold, kind=kind, choices=problem.choices)

    def grade_reply(self, problem: Problem, text: str, *, mode: Mode) -> Grade:
        """Return the grade of a solution or a reply; ``mode`` says how its answer is found and compared."""
        gold, kind = _truth(problem)
        return self.grader.grade(text, gold, kind=kind, mode=mode, choices=problem.choices)

    def find_answer(self, problem: Problem, text: str, *, mode: Mode) -> str | None:
        """Return the answer that ``grade_reply`` compares; None if there is none."""
        return find_answer(text, _grade_kind(problem), mode, problem.choices).answer

    def answer_key(self, problem: Problem, answer: str) -> str:
        """Return the key that distinguishes wrong answers."""
        return key_of_kind(problem, answer)


def environment_of(problem: Problem) -> Environment:
    """Return an environment that can grade a stored problem: its generator, or one for data sets."""
    if problem.source == REASONING_GYM:
        from envs.reasoning_gym import ReasoningGym

        return ReasoningGym()
    if problem.source.startswith(VERIFIERS):
        from envs.verifiers_tasks import VerifiersTasks

        return VerifiersTasks(problem.source)
    return FAMILIES.get(problem.source) or DataSetEnvironment("stored")


def key_by_itself(problem: Problem, answer: str) -> str:
    """Return an answer's key from the problem alone: the family's key, or the key for the kind. Never raise.

    >>> pair, other = (Problem("p", "?", "3 9", source=source) for source in ("pair_sum", "mine"))
    >>> [key_by_itself(problem, "9 3") for problem in (pair, other)]
    ['3 9', '9 3']
    """
    family = FAMILIES.get(problem.source)
    return key_of_kind(problem, answer) if family is None else key_of(family)(problem, answer)


def grade_by_itself(problem: Problem, text: str, *, mode: Mode) -> Grade:
    """Return the grade of a text under a mode, from the problem alone."""
    environment = environment_of(problem)
    if isinstance(environment, DataSetEnvironment):
        return environment.grade_reply(problem, text, mode=mode)
    return environment.grade(problem, extract(text, mode=mode).answer)


def _truth(problem: Problem) -> tuple[str, GradeKind]:
    if problem.answer is None:
        raise EnvironmentSpecError(f"{problem.id}: an open problem has no truth to grade against")
    return problem.answer, _grade_kind(problem)


def _grade_kind(problem: Problem) -> GradeKind:
    return cast(GradeKind, problem.kind if problem.kind in GRADE_KINDS else "auto")


def load_environment(kind: str, *, key: str = "env.kind", **options: object) -> Environment:
    """Return the environment with this name or dotted path, such as "my_package.my_env:MyEnv".

    Options other than None are passed to its constructor (``levels``; for data sets also ``path``,
    ``subjects``, ``fields``). Errors name ``key``, the setting that holds the name.

    >>> load_environment("pair_sum", levels=[1]).problems(split="train", limit=1, seed=0)[0].level
    '1'
    """
    given = {name: value for name, value in options.items() if value is not None}
    if kind == REASONING_GYM:
        from envs.reasoning_gym import ReasoningGym

        return cast(Environment, _build(kind, ReasoningGym.of, given, key))
    if kind.startswith(VERIFIERS):
        from envs.verifiers_tasks import VerifiersTasks

        return cast(Environment, _build(kind, VerifiersTasks, {"kind": kind, **given}, key))
    if ":" in kind:
        try:
            factory = load_factory(kind, key=key, methods=("problems", "grade"))
        except ValueError as error:
            raise EnvironmentSpecError(str(error)) from error
        return _checked(kind, _build(kind, factory, given, key), key)
    if kind in FAMILIES:
        levels: Any = given.pop("levels", None)
        if given:
            raise EnvironmentSpecError(f"{key}: {kind} takes 'levels' and no {', '.join(map(repr, given))}")
        if not isinstance(levels, list | tuple | None):
            raise EnvironmentSpecError(f"levels: needs a list, got {shorten(levels)}")
        return FAMILIES[kind].of_levels(levels)
    entry = find_data_set(kind)
    if entry is not None or kind in OWN_FILE_NAMES:
        name = entry.name if entry and not entry.own else kind
        return cast(Environment, _build(kind, DataSetEnvironment, {"name": name, **given}, key))
    known = [*GENERATORS, *DATA_SETS, *OWN_FILE_NAMES]
    hint = did_you_mean(kind, known, f"valid: {', '.join(known)}")
    raise EnvironmentSpecError(f"{key}: {kind!r} is not known; {hint} (your own: 'package.module:Class')")


def _build(kind: str, factory: Any, given: dict[str, object], key: str) -> object:
    try:
        inspect.signature(factory).bind(**given)
    except TypeError as error:
        raise EnvironmentSpecError(f"{key}: {kind} does not take these options: {error}") from error
    return factory(**given)


def _checked(kind: str, environment: object, key: str) -> Environment:
    """Return the object as an Environment; raise EnvironmentSpecError if it lacks a part of the protocol."""
    if not isinstance(getattr(environment, "name", None), str):
        raise EnvironmentSpecError(f"{key}: {kind!r} has no text attribute 'name'")
    problem, options = Problem(id="", question=""), {"split": "train", "limit": 1, "seed": 0}
    for method, args, keywords in (("problems", (), options), ("grade", (problem, ""), {})):
        function = getattr(environment, method, None)
        if not callable(function):
            raise EnvironmentSpecError(f"{key}: {kind!r} has no method {method!r}; see envs.Environment")
        try:
            inspect.signature(function).bind(*args, **keywords)
        except TypeError as error:
            raise EnvironmentSpecError(f"{key}: {kind!r}: {method} has another signature: {error}") from error
    return cast(Environment, environment)


@dataclass(frozen=True)
class Mixture:
    """The environment of each set by name, and each problem's set by id; other problems grade themselves."""

    sets: Mapping[str, Environment]
    set_of: Mapping[str, str]
    name: str = "mixture"

    @property
    def main_thread_only(self) -> bool:
        """Whether an environment of the mixture can grade only in the main thread."""
        return any(getattr(one, "main_thread_only", False) for one in self.sets.values())

    def of(self, problem: Problem) -> Environment:
        """Return the environment from which a problem came."""
        name = self.set_of.get(problem.id)
        return self.sets[name] if name is not None else environment_of(problem)

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return the problems of all sets, at most ``limit`` from each."""
        return tuple(
            problem
            for environment in self.sets.values()
            for problem in environment.problems(split=split, limit=limit, seed=seed)
        )

    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return the grade from the problem's own environment."""
        return self.of(problem).grade(problem, answer)

    def answer_key(self, problem: Problem, answer: str) -> str:
        """Return the answer's key from the problem's own environment."""
        return key_of(self.of(problem))(problem, answer)
