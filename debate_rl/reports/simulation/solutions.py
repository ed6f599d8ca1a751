"""Right and wrong solutions to the same problems: from a file of JSON lines, or made up from a seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from debate.files import plain_lines
from debate.parsing import parse_turn
from debate.seeds import derive_seed
from debate.types import Problem
from envs import DataError, extract
from envs.errors import row_error

NEEDED = ("question", "gold", "output")
SOLUTIONS = 6
"""Made up for each problem."""
RIGHT = (0.8, 0.5, 0.3)
"""The chance of a right solution, by level."""
LARGEST = (9, 30, 90)
ASIDES = (
    "Let me take it in two steps.",
    "First the bracket, then the product, as the order of operations wants.",
    "I check each step by doing it backwards before I go on.",
)


@dataclass(frozen=True, slots=True)
class Solved:
    """A problem and solutions of it; ``expected``: which are right by the file, None if unknown."""

    problem: Problem
    texts: tuple[str, ...]
    expected: tuple[bool | None, ...]


def read_solutions(path: Path) -> list[Solved]:
    """Return the problems of a file that have two solutions or more, in its order.

    A line has ``question``, ``gold`` (the right answer) and ``output`` (a solution); it may have
    ``expected`` (is the output right), ``level`` and ``source``. Lines of one question are one problem.
    DataError names file, line and field.
    """
    problems: dict[str, Problem] = {}
    solutions: dict[str, list[tuple[str, bool | None]]] = {}
    for where, row in _rows(path):
        question = _text(where, row, "question")
        if question not in problems:
            problems[question] = _problem(f"{path.stem}/{len(problems)}", where, row)
        elif _text(where, row, "gold") != problems[question].answer:
            raise row_error(where, "gold", "differs from that of a line before", value=row["gold"])
        solution = boxed(_text(where, row, "output")), _expected(where, row)
        solutions.setdefault(question, []).append(solution)
    several = [question for question, texts in solutions.items() if len(texts) > 1]
    if not several:
        raise DataError(f"{path}: no question has two solutions or more")
    return [
        Solved(problems[question], *map(tuple, zip(*solutions[question], strict=True)))  # type: ignore[arg-type]
        for question in several
    ]


def boxed(text: str) -> str:
    r"""Return a solution whose answer a debate can read: one that has no box gets it at its end.

    >>> boxed("She has 3 + 4 = 7 left.\nA: 7")
    'She has 3 + 4 = 7 left.\nA: 7\n\\boxed{7}'
    >>> boxed(r"So \boxed{7}.")
    'So \\boxed{7}.'
    """
    answer = extract(text).answer
    if answer is None or answer_of(text) is not None:
        return text
    return f"{text}\n\\boxed{{{answer}}}"


def answer_of(text: str) -> str | None:
    """Return the answer that a debate reads in a solution."""
    return parse_turn(f"<solution>{text}</solution>", handles=(), own=None, due=False).answer


def _rows(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    for number, line in enumerate(plain_lines(path), start=1):
        if line.strip():
            yield f"{path}, line {number}", _row(f"{path}, line {number}", line)


def _row(where: str, line: bytes) -> dict[str, object]:
    try:
        row = json.loads(line)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not a line of JSON: {error}") from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: is not a JSON object, and a line holds one with {', '.join(NEEDED)}")
    return row


def _text(where: str, row: dict[str, object], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise row_error(where, field, "must be a text", value=value, keys=row)
    return value


def _expected(where: str, row: dict[str, object]) -> bool | None:
    value = row.get("expected")
    if value is not None and not isinstance(value, bool):
        raise row_error(where, "expected", "must be true or false", value=value, keys=row)
    return value


def _problem(id: str, where: str, row: dict[str, object]) -> Problem:
    level, source = row.get("level") or "", row.get("source") or ""
    return Problem(id, _text(where, row, "question"), _text(where, row, "gold"), str(source), str(level))


def made_solutions(problems: int, *, seed: int) -> list[Solved]:
    """Return problems of three levels with six solutions each.

    >>> [item.problem.question for item in made_solutions(2, seed=0)]
    ['What is (4 + 9) * 6?', 'What is (15 + 10) * 11?']
    """
    return [_made(number, Random(derive_seed(seed, "made", number))) for number in range(problems)]


def _made(number: int, rng: Random) -> Solved:
    level = number % len(RIGHT)
    a, b, c = (rng.randint(2, LARGEST[level]) for _ in range(3))
    question, gold = f"What is ({a} + {b}) * {c}?", str((a + b) * c)
    problem = Problem(f"made/{number}", question, gold, "made/arithmetic", f"Level {level + 1}", "number")
    right = [rng.random() < RIGHT[level] for _ in range(SOLUTIONS)]
    texts = tuple(_solution(a, b, c, is_right, rng) for is_right in right)
    return Solved(problem, texts, tuple(right))


def _solution(a: int, b: int, c: int, right: bool, rng: Random) -> str:
    """Return two steps with, unless ``right``, a slip in one of them, and up to three asides."""
    slip = 0 if right else rng.choice((-10, -2, -1, 1, 2, 10))
    early = rng.random() < 0.5
    total = a + b + (slip if early else 0)
    product = total * c + (0 if early else slip)
    steps = f"{a} + {b} = {total}. {total} * {c} = {product}. So it is \\boxed{{{product}}}."
    return " ".join((*rng.sample(ASIDES, rng.randint(0, 2)), steps))
