"""Solved examples to show before a problem, sampled with a seed from the rows of a data set or a file."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike

from debate.seeds import derive_seed
from debate.types import Problem, Shot
from envs.data.loading import checked_fields, entry_of, problem_of, rows_of
from envs.data.records import Record
from envs.errors import DataError
from envs.families import FAMILIES

POOL = 1024  # rows of a stream from which examples are sampled
_SOLUTIONS = ("solution", "generated_solution", "rationale", "Rationale", "answer")
_CALCULATOR = re.compile(r"<<[^<>\n]{0,200}>>")
_HASHES = re.compile(r"\s*####[^\n]*\s*$")


def load_shots(
    name: str,
    *,
    split: str = "train",
    path: str | PathLike[str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> tuple[Shot, ...]:
    """Return the solved problems of a data set or a file; of a stream, the first ``POOL`` rows.

    The solution is the row's worked solution, else the answer alone. DataError for a row without an answer.
    """
    if name in FAMILIES and path is None:
        raise DataError(f"shots: {name} has no written solutions; name a file of examples in shots.path")
    entry = entry_of("file" if path is not None and name in FAMILIES else name, path)
    rows = rows_of(entry, split, path, checked_fields(fields), None)
    rows = islice(rows, POOL) if entry.streamed else rows
    return tuple(_shot(row, problem_of(entry, row, split, is_open=False)) for row in rows)


def _shot(row: Record, problem: Problem) -> Shot:
    if not problem.answer:
        raise row.error("answer", "is required in an example")
    written = row.find("solution", *_SOLUTIONS)
    solution = plain_solution(written[1]) if written and isinstance(written[1], str) else ""
    return Shot(problem.question, solution or problem.answer, problem.answer, problem.choices)


def plain_solution(text: str) -> str:
    """Return a written solution without GSM8K's calculator annotations and last line.

    >>> plain_solution("He has 3 * 2 = <<3*2=6>>6 cats." + chr(10) + "#### 6")
    'He has 3 * 2 = 6 cats.'
    """
    return _HASHES.sub("", _CALCULATOR.sub("", text)).strip()


def with_shots(
    problems: Sequence[Problem], pool: Sequence[Shot], count: int, *, each: bool, seed: int
) -> tuple[Problem, ...]:
    """Return the problems, each with ``count`` examples from a pool; a problem is never its own example.

    With ``each``, the examples are sampled anew for each problem, seeded by its id. Otherwise all problems
    have the same examples. Raise DataError if the pool is too small.

    >>> pool = [Shot(f"{n} + 1?", "It is easy.", str(n + 1)) for n in range(4)]
    >>> [problem] = with_shots([Problem("p", "2 + 1?", "3")], pool, 3, each=False, seed=0)
    >>> sorted(shot.question for shot in problem.shots)
    ['0 + 1?', '1 + 1?', '3 + 1?']
    """
    if not count:
        return tuple(problems)
    order = list(dict.fromkeys(pool))
    random.Random(derive_seed(seed, "shots")).shuffle(order)
    return tuple(_with_shots(problem, order, count, each, seed) for problem in problems)


def _with_shots(problem: Problem, order: Sequence[Shot], count: int, each: bool, seed: int) -> Problem:
    own = same_question(problem.question)
    if each:
        rng = random.Random(derive_seed(seed, "shots", problem.id))
        order = [order[index] for index in rng.sample(range(len(order)), min(count + 1, len(order)))]
    shots = tuple(islice((shot for shot in order if same_question(shot.question) != own), count))
    if len(shots) < count:
        raise DataError(f"shots.count = {count}: there are {len(shots)} examples for {problem.id}; use fewer")
    return replace(problem, shots=shots)


def same_question(question: str) -> str:
    """Return a normal form of a question that ignores white space and case."""
    return " ".join(question.split()).casefold()
