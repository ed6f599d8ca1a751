"""Problems of reasoning-gym [Stojanovski et al. 2025, arXiv 2505.24760]: over 100 procedural generators.

Its scorers evaluate answers as Python or sympy expressions, so they run in the sandbox. The generators run
there too: five of them depend on the seed of Python's hashes, which is fixed in the sandbox.
"""

from __future__ import annotations

import atexit
import json
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import count, islice
from math import isfinite
from typing import Any

from debate.concurrency import run_async
from debate.seeds import derive_seed
from debate.settings import did_you_mean
from debate.types import Problem
from envs.errors import DataError, EnvironmentSpecError, MissingPackageError
from envs.families.synthetic import SPLITS, split_of
from envs.sandbox import Limits, Sandbox
from envs.sandbox.sandbox import SandboxSession
from envs.types import Grade, GradeStatus

NAME = "reasoning_gym"
LIMITS = Limits(seconds=600.0, output_chars=1 << 24)
SCORING_S = 6
"""Seconds in which an answer must be scored."""
BLOCK = 1000
"""Problems of one seed. Some generators make all of them in advance."""
FEWEST_AT_ONCE = 8
MOST_REPEATS = 500
"""A task is exhausted after this many problems without a new one of the split."""
UNWRITTEN = "(any answer that the task's scorer accepts)"

_SETUP = """
import functools, json, os, signal
from reasoning_gym.factory import CURRICULA, DATASETS

def levels_of(task):
    return max(len(one.levels) for one in CURRICULA[task]().attributes.values()) if task in CURRICULA else 0

def levels():
    return {name: levels_of(name) for name in DATASETS if name != "composite"}

@functools.lru_cache(64)
def made(task, level, seed):
    settings = {"seed": seed, "size": BLOCK}
    kind, config = DATASETS[task]
    if level is None:
        return kind(config=config(**settings))
    curriculum = CURRICULA[task]()
    curriculum.set_global_level(level)
    return kind(config=curriculum.generate_configuration(settings))

@functools.lru_cache(4096)
def entry_of(task, level, seed, index):
    return made(task, level, seed)[index]

def entries(task, level, seed, start, stop):
    found = [entry_of(task, level, seed, index) for index in range(start, stop)]
    return [[one["question"], one["answer"]] for one in found]

def score(task, level, seed, index, question, answer):
    "Return the score of an answer, 0 if its scorer fails, or None if the question is another one."
    tasks, entry = made(task, level, seed), entry_of(task, level, seed, index)
    if entry["question"] != question:
        return None
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:  # an answer may be a program, which could change the scorer
        try:
            signal.alarm(SCORING_S)
            os.write(writing, repr(float(tasks.score_answer(answer=answer, entry=entry))).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        value = file.read(100)
    os.waitpid(child, 0)
    return float(value or 0)
""".replace("BLOCK", str(BLOCK)).replace("SCORING_S", str(SCORING_S))


class _Gym:
    """The session in which reasoning-gym runs, shared by all environments of this process."""

    def __init__(self) -> None:
        self._sandbox = Sandbox(LIMITS, warm=0, module=NAME)
        self._lock = threading.Lock()
        self._session = SandboxSession(self._sandbox)
        atexit.register(lambda: run_async(self._session.close()))

    def ask(self, function: str, *arguments: object) -> Any:
        """Return what a function of ``_SETUP`` returns; raise _Ended if it returns nothing.

        The value is marked by a random word, which an answer cannot know.
        """
        mark = secrets.token_hex(16)
        call = f"print({mark!r} + json.dumps({function}(*{arguments!r})))"
        with self._lock:
            ran = run_async(self._session.run(f"if 'score' not in globals():\n    exec({_SETUP!r})\n{call}"))
        _, found, value = ran.output.rpartition(mark)
        if ran.status != "ok" or not found:
            raise _Ended(ran.error or ran.status)
        return json.loads(value)


class _Ended(Exception):
    """A function in the session ended without a value."""


@cache
def _gym() -> _Gym:
    return _Gym()


@cache
def _known_tasks() -> dict[str, int]:
    """Return the number of levels of each task, by name."""
    if find_spec(NAME) is None:
        raise MissingPackageError('env.kind = "reasoning_gym": not installed; pip install reasoning-gym')
    try:
        return _gym().ask("levels")
    except _Ended as ended:
        raise MissingPackageError(f'env.kind = "reasoning_gym": cannot be imported: {ended}') from ended


@dataclass(frozen=True, slots=True)
class ReasoningGym:
    """Tasks of reasoning-gym by name, each at levels of its curriculum, or with its default settings.

    A problem's id has all that makes it again: task, level, seed and index. Its split is a function of its
    question, so splits are disjoint for any seeds.
    """

    subjects: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    name: str = NAME

    @classmethod
    def of(
        cls, subjects: Sequence[str] | None = None, levels: Sequence[int | str] | None = None
    ) -> ReasoningGym:
        """Return the environment of these tasks; raise EnvironmentSpecError for unknown tasks or levels."""
        if not subjects:
            raise EnvironmentSpecError('env.subjects: name tasks of reasoning-gym, such as ["countdown"]')
        known = _known_tasks()
        for subject in subjects:
            if subject not in known:
                hint = did_you_mean(subject, known, f"valid: {', '.join(known)}")
                raise EnvironmentSpecError(f"env.subjects: reasoning-gym has no task {subject!r}; {hint}")
            for level in levels or ():
                if not (str(level).isdecimal() and int(level) < known[subject]):
                    has = f"levels 0 to {known[subject] - 1}" if known[subject] else "no levels"
                    raise EnvironmentSpecError(f"env.levels: {subject} has {has}; got {level!r}")
        return cls(tuple(dict.fromkeys(subjects)), tuple(dict.fromkeys(map(int, levels or ()))))

    def problems(
        self, *, split: str, limit: int | None = None, seed: int | None = None
    ) -> tuple[Problem, ...]:
        """Return ``limit`` distinct problems of a split, in rotation over tasks and levels."""
        if split not in SPLITS:
            raise DataError(f"split: {NAME} has {', '.join(SPLITS)}; got {split!r}")
        if limit is None or limit < 1:
            endless = "reasoning-gym generates any number of problems"
            raise DataError(f"env.limit: {endless}; set it to 1 or more (got {limit})")
        kinds = [(task, level) for task in self.subjects for level in self.levels or (None,)]
        each = -(-limit // len(kinds))
        drawn = [tuple(islice(_drawn(*kind, split, seed or 0, 2 * each), each)) for kind in kinds]
        return tuple(drawn[i % len(kinds)][i // len(kinds)] for i in range(limit))

    def grade(self, problem: Problem, answer: str | None) -> Grade:
        """Return the grade by the task's scorer; ``share`` is its score. Never raise, whatever the answer is.

        An answer that takes more than ``SCORING_S`` seconds, or makes the scorer fail, is wrong. A problem
        that another version of reasoning-gym generated is not graded.
        """
        if answer is None:
            return Grade(GradeStatus.MISSING, "none")
        started = time.perf_counter()
        try:
            score = _gym().ask("score", *_parts(problem.id), problem.question, answer)
        except _Ended:
            score = 0.0
        seconds = time.perf_counter() - started
        if score is None:
            return Grade(GradeStatus.CRASH, f"{NAME}: of another version", answer, seconds)
        status = GradeStatus.CORRECT if score >= 1 else GradeStatus.WRONG
        share = min(max(score, 0.0), 1.0) if isfinite(score) else 0.0
        return Grade(status, NAME, answer, seconds, share=share)

    def answer_key(self, problem: Problem, answer: str) -> str:
        """Return the answer's words, separated by single spaces."""
        return " ".join(answer.split())


def _drawn(task: str, level: int | None, split: str, seed: int, at_once: int) -> Iterator[Problem]:
    """Yield the distinct problems of a split. Blocks of BLOCK problems have a seed of 31 bits each."""
    shown = task if level is None else f"{task}/{level}"
    size = min(max(at_once, FEWEST_AT_ONCE), BLOCK)
    seen: set[str] = set()
    repeats = 0
    for block in count():
        own = derive_seed(seed, NAME, task, split, block) >> 32
        for start in range(0, BLOCK, size):
            try:
                entries = _gym().ask("entries", task, level, own, start, min(start + size, BLOCK))
            except _Ended as ended:
                raise DataError(f"env.subjects: reasoning-gym cannot generate {shown}: {ended}") from ended
            for index, (question, answer) in enumerate(entries, start):
                repeats += 1
                if question not in seen and split_of(question) == split:
                    repeats = 0
                    seen.add(question)
                    id = f"{NAME}/{task}/{'' if level is None else level}/{own}/{index}"
                    answer = UNWRITTEN if answer is None else answer
                    yield Problem(id, question, answer, NAME, shown, "verbatim")
            if repeats > MOST_REPEATS:
                raise DataError(f"env.limit: {shown} has only about {len(seen)} problems of split {split!r}")


def _parts(id: str) -> tuple[str, int | None, int, int]:
    """Return task, level, seed and index of a problem's id."""
    parts = id.split("/")
    if len(parts) != 5 or not all(part.isdecimal() for part in (parts[2] or "0", *parts[3:])):
        return "", None, 0, 0
    return parts[1], int(parts[2]) if parts[2] else None, int(parts[3]), int(parts[4])
