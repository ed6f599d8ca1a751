"""Solutions to the same problems, right and wrong, from a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from debate.parsing import parse_turn
from debate.types import Problem
from envs import DataError, extract
from envs.errors import row_error

NEEDED = ("question", "gold", "output")


@dataclass(frozen=True, slots=True)
class Solved:
    """A problem and texts that solve it, or fail to; ``told``: which are right by the file, None unknown."""

    problem: Problem
    texts: tuple[str, ...]
    told: tuple[bool | None, ...]


def read_solutions(path: Path) -> list[Solved]:
    """Return the problems of a file that have two solutions or more, in its order.

    A line has ``question``, ``gold`` (the right answer) and ``output`` (a solution); it may have
    ``expected`` (is the output right), ``level`` and ``source``. Lines of one question are one problem.
    DataError names file, line and field.
    """
    problems: dict[str, Problem] = {}
    found: dict[str, list[tuple[str, bool | None]]] = {}
    for place, row in _rows(path):
        question = _text(place, row, "question")
        if question not in problems:
            problems[question] = _problem(f"{path.stem}/{len(problems)}", place, row)
        elif _text(place, row, "gold") != problems[question].answer:
            raise row_error(place, "gold", "differs from that of a line before", value=row["gold"])
        solution = boxed(_text(place, row, "output")), _told(place, row)
        found.setdefault(question, []).append(solution)
    several = [question for question, solutions in found.items() if len(solutions) > 1]
    if not several:
        raise DataError(f"{path}: no question has two solutions or more")
    return [
        Solved(problems[question], *map(tuple, zip(*found[question], strict=True)))  # type: ignore[arg-type]
        for question in several
    ]


def boxed(text: str) -> str:
    r"""Return a solution whose answer a debate can read: one that has no box gets it at its end.

    >>> boxed("She has 3 + 4 = 7 left.\nA: 7")
    'She has 3 + 4 = 7 left.\nA: 7\n\\boxed{7}'
    >>> boxed(r"So \boxed{7}.")
    'So \\boxed{7}.'
    """
    found = extract(text).answer
    if found is None or answer_of(text) is not None:
        return text
    return f"{text}\n\\boxed{{{found}}}"


def answer_of(text: str) -> str | None:
    """Return the answer that a debate reads in a solution."""
    return parse_turn(f"<solution>{text}</solution>", handles=(), own=None, due=False).answer


def _rows(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}, line {number}", _row(f"{path}, line {number}", line)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error


def _row(place: str, line: str) -> dict[str, object]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not a line of JSON: {error}") from error
    if not isinstance(row, dict):
        raise DataError(f"{place}: is no JSON object, and a line holds one with {', '.join(NEEDED)}")
    return row


def _text(place: str, row: dict[str, object], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise row_error(place, field, "must be a text", value=value, keys=row)
    return value


def _told(place: str, row: dict[str, object]) -> bool | None:
    value = row.get("expected")
    if value is not None and not isinstance(value, bool):
        raise row_error(place, "expected", "must be true or false", value=value, keys=row)
    return value


def _problem(id: str, place: str, row: dict[str, object]) -> Problem:
    level, source = row.get("level") or "", row.get("source") or ""
    return Problem(id, _text(place, row, "question"), _text(place, row, "gold"), str(source), str(level))
