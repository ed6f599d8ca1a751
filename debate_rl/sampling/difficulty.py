"""Measured pass rates of problems: files of them, and the filter that uses them.

A file has one JSON object per line. The first line describes the measurement, each further line a problem:

    {"format": 1, "of": {"model": "Qwen/Qwen3-8B", "weights": "model", "samples": 8, ...}}
    {"id": "gsm8k-train-17", "question": "5f1c...", "right": 3, "samples": 8, "missing": 1}
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from debate import Problem
from debate.files import plain_lines
from debate.ramps import values_of
from debate.values import Value
from debate_rl.config.data import DifficultyConfig
from debate_rl.runs.folder import write_whole
from debate_rl.runs.provenance import problems_checksum
from envs import DataError
from envs.errors import DataWarning

FORMAT = 1
KEY = "env.difficulty.path"
HELD_OUT_KEY = "held_out.difficulty"
BANDS = ((0.0, "0"), (0.25, "to .25"), (0.5, "to .5"), (0.75, "to .75"), (0.999999, "below 1"), (1.0, "1"))
"""The upper bound of the pass rate and the name of each stratum of problems."""


class Head(Value, frozen=True):
    """The first line of a file: the format version, and a description of the measurement."""

    format: int
    of: dict[str, str | int | float]


class Difficulty(Value, frozen=True):
    """The pass rate of a problem. ``question``: its checksum. ``missing``: samples without an answer."""

    id: str
    question: str
    right: int
    samples: int
    missing: int = 0

    @property
    def pass_rate(self) -> float:
        """The fraction of samples that are right."""
        return self.right / self.samples

    @property
    def missing_share(self) -> float:
        """The fraction of samples without an answer."""
        return self.missing / self.samples


@dataclass(frozen=True, slots=True)
class Measured:
    """A difficulty file: a description of the measurement, and the rows by problem id."""

    of: Mapping[str, str | int | float]
    rows: Mapping[str, Difficulty]


def question_checksum(problem: Problem) -> str:
    """Return the checksum that identifies a problem in a difficulty file."""
    return problems_checksum([problem])[:16]


def write_difficulty(path: Path, of: Mapping[str, str | int | float], rows: Iterable[Difficulty]) -> None:
    """Write a difficulty file atomically, in the order of the rows."""
    lines = [msgspec.json.encode(Head(FORMAT, dict(of))), *map(msgspec.json.encode, rows)]
    write_whole(path, b"".join(line + b"\n" for line in lines))


def read_difficulty(path: str, *, key: str = KEY) -> Measured:
    """Read a difficulty file. Raise DataError with file, line and field of a malformed entry."""
    try:
        lines = list(plain_lines(Path(path)))
    except (OSError, ValueError) as error:
        raise DataError(f"{key}={path}: {getattr(error, 'strerror', None) or error}") from error
    if not lines:
        raise DataError(f"{key}={path}: is empty; debate eval passrate writes difficulty files")
    try:
        head = msgspec.json.decode(lines[0], type=Head, strict=True)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}:1: {key}: not the header of a difficulty file: {error}") from error
    if head.format != FORMAT:
        raise DataError(f"{path}:1: {key}: has format {head.format}, but this version reads {FORMAT}")
    rows: dict[str, Difficulty] = {}
    for number, line in enumerate(lines[1:], start=2):
        row = _row(line, f"{path}:{number}: {key}")
        if row.id in rows:
            raise DataError(f"{path}:{number}: {key}: the problem {row.id!r} occurs twice")
        rows[row.id] = row
    if not rows:
        raise DataError(f"{key}={path}: has no problems")
    return Measured(head.of, rows)


def _row(line: bytes, where: str) -> Difficulty:
    try:
        row = msgspec.json.decode(line, type=Difficulty, strict=True)
    except msgspec.DecodeError as error:
        raise DataError(f"{where}: not the difficulty of a problem: {error}") from error
    if row.samples < 1 or min(row.right, row.missing) < 0 or row.right + row.missing > row.samples:
        counts = f"right {row.right} and missing {row.missing} of {row.samples} samples"
        raise DataError(f"{where}: {counts} are impossible")
    return row


def band(pass_rate: float) -> str:
    """Return the name of the stratum of a pass rate in [0, 1].

    >>> [band(rate) for rate in (0.0, 0.25, 0.3, 1.0)]
    ['0', 'to .25', 'to .5', '1']
    """
    return next(name for most, name in BANDS if pass_rate <= most)


def bands(problems: Sequence[Problem], path: str) -> dict[str, str]:
    """Return the strata of the problems in a difficulty file, by id. Errors as in ``by_difficulty``."""
    rows = read_difficulty(path, key=HELD_OUT_KEY).rows
    if not problems:
        raise DataError(f"{HELD_OUT_KEY}={path}: there are no held-out problems (held_out.limit = 0)")
    _refuse_strangers(problems, rows, f"{HELD_OUT_KEY}={path}", "held-out")
    return {problem.id: band(rows[problem.id].pass_rate) for problem in problems if problem.id in rows}


CAUSES = ("below at_least", "above at_most", "not measured")


def by_difficulty(
    problems: Sequence[Problem], settings: DifficultyConfig
) -> tuple[tuple[Problem, ...], dict[str, int]]:
    """Return the problems to keep, and the numbers of problems left out, by cause.

    Raise DataError if the file contains none of the problems, has different questions under their ids, lacks
    problems although ``unmeasured`` is "refuse", or leaves no problem. Warn of rows that match no problem.
    """
    rows, name = read_difficulty(settings.path).rows, f"{KEY}={settings.path}"
    _refuse_strangers(problems, rows, name, "training")
    lacking = [problem.id for problem in problems if problem.id not in rows]
    if lacking and settings.unmeasured == "refuse":
        raise DataError(
            f"{name}: lacks {len(lacking)} of {len(problems)} training problems, such as {lacking[0]!r}; "
            f"measure "
            'them too, or set env.difficulty.unmeasured to "keep" or "leave_out"'
        )
    causes = {problem.id: _cause(rows.get(problem.id), settings) for problem in problems}
    kept = tuple(problem for problem in problems if causes[problem.id] is None)
    left_out = {cause: sum(own == cause for own in causes.values()) for cause in CAUSES}
    if not kept:
        shown = ", ".join(f"{count} {cause}" for cause, count in left_out.items() if count)
        raise DataError(f"{name}: leaves no training problems; of {len(problems)} problems: {shown}")
    return kept, left_out


def _cause(row: Difficulty | None, settings: DifficultyConfig) -> str | None:
    if row is None:
        return "not measured" if settings.unmeasured == "leave_out" else None
    if row.pass_rate < min(values_of(settings.at_least)):
        return "below at_least"
    return "above at_most" if row.pass_rate > max(values_of(settings.at_most)) else None


def _refuse_strangers(
    problems: Sequence[Problem], rows: Mapping[str, Difficulty], name: str, kind: str
) -> None:
    """Raise DataError if no row matches a problem, or if a question differs. Warn of unknown rows."""
    known = {problem.id: problem for problem in problems}
    shared = [known[id] for id in rows if id in known]
    strangers = [id for id in rows if id not in known]
    if not shared:
        raise DataError(
            f"{name}: none of its {len(rows)} ids, such as {strangers[0]!r}, belongs to a {kind} problem "
            f"(the first {kind} problem is {problems[0].id!r})"
        )
    for problem in shared:
        if rows[problem.id].question != question_checksum(problem):
            raise DataError(f"{name}: {problem.id!r} was measured with a different question or answer")
    if strangers:
        line = f"{len(strangers)} of {len(rows)} ids match no {kind} problem, such as {strangers[0]!r}"
        warnings.warn(f"{name}: {line}", DataWarning, stacklevel=4)
