"""The file of answers that ``debate solve`` writes as it works, and goes on with.

The first line says how the answers were come by, each further line is a problem:

    {"format": 2, "of": {"strategy": "majority", "samples": 16, ...}}
    {"id": "aime-3", "checksum": "5f1c...", "question": "Let N ...", "answer": "204", "samples": 16, ...}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from debate import Problem
from debate.files import plain_lines
from debate.values import Value
from debate_rl.sampling.difficulty import question_checksum
from debate_rl.strategies.types import Answered
from envs import DataError
from transcripts.append import LineFile

FORMAT = 2


class Head(Value, frozen=True):
    """The first line: the version of the format, and what decides the answers."""

    format: int
    of: dict[str, Any]


class Line(Value, frozen=True):
    """One problem with its answer. ``checksum``: of the whole problem; ``right``: None where nobody knows.

    ``refused``: why it could not be asked, "" where it was. The other fields are those of ``Answered``.
    """

    id: str
    checksum: str
    question: str
    answer: str | None = None
    right: bool | None = None
    shares: tuple[tuple[str, float], ...] = ()
    ended: str = ""
    samples: int = 0
    comparisons: int = 0
    unread: int = 0
    cut_off: int = 0
    tokens_read: int = 0
    tokens_generated: int = 0
    seconds: float = 0.0
    solution: str = ""
    refused: str = ""

    @classmethod
    def of(cls, problem: Problem, answered: Answered, right: bool | None) -> Line:
        """Return the line of an answer."""
        return cls(
            id=problem.id,
            checksum=question_checksum(problem),
            question=problem.question,
            answer=answered.answer,
            right=right,
            shares=tuple((one.answer, round(one.share, 6)) for one in answered.shares),
            ended=answered.ended,
            samples=answered.samples,
            comparisons=answered.comparisons,
            unread=answered.unread,
            cut_off=answered.cut_off,
            tokens_read=answered.tokens_read,
            tokens_generated=answered.tokens_generated,
            seconds=round(answered.seconds, 3),
            solution=answered.solution,
        )

    def text(self) -> str:
        """Return the line as JSON."""
        return msgspec.json.encode(self).decode()


class AnswersFile:
    """Answers on the disk, each there as a whole or not at all; ``lines``: those that were there before.

    DataError for a file that holds something else, or answers that were come by in another way; nothing
    in it is changed then.
    """

    def __init__(self, path: Path, of: Mapping[str, Any]) -> None:
        self.lines = read_answers(path, of)
        self._file = LineFile(path)
        if self._file.end == 0:
            self._file.write(msgspec.json.encode(Head(FORMAT, dict(of))))

    def write(self, line: Line) -> None:
        """Add the answer to a problem."""
        self._file.write(msgspec.json.encode(line))

    def close(self) -> None:
        """Bring all lines to the disk."""
        self._file.close()

    def missing(self, problems: Sequence[Problem]) -> list[int]:
        """Return the indices of the problems that have no answer yet.

        DataError where the file has an answer to another problem of the same id.
        """
        known = {line.id: line.checksum for line in self.lines}
        for problem in problems:
            if known.get(problem.id, question_checksum(problem)) != question_checksum(problem):
                raise DataError(
                    f"{self._file.path}: has an answer to another problem {problem.id!r}; "
                    "choose another --out"
                )
        return [index for index, problem in enumerate(problems) if problem.id not in known]


def read_answers(path: Path, of: Mapping[str, Any] | None = None) -> list[Line]:
    """Return the answers that a file holds, a torn last line left out; [] where there is none.

    ``of``: what they must be of, if it matters.
    """
    if not path.exists() or not path.stat().st_size:
        return []
    head, *rows = list(plain_lines(path))
    before = _head(path, head)
    if before is None:
        return []
    if of is not None and (others := sorted(k for k in {*before, *of} if before.get(k) != _plain(of).get(k))):
        named = others[0]
        raise DataError(
            f"{path}: its answers are of {named} = {_short(before.get(named))}, and these would be of "
            f"{_short(_plain(of).get(named))}; choose another --out"
        )
    return [
        line for number, row in enumerate(rows, start=2) if (line := _line(path, number, row)) is not None
    ]


def head_of(path: Path) -> dict[str, Any]:
    """Return how the answers of a file were come by; DataError where it holds none."""
    found = _head(path, next(iter(plain_lines(path)), b""))
    if found is None:
        raise DataError(f"{path}: holds no answers of debate solve")
    return found


def _head(path: Path, line: bytes) -> dict[str, Any] | None:
    """Return what the first line says; None for one that was torn as it was written."""
    try:
        head = msgspec.json.decode(line, type=Head)
    except msgspec.DecodeError as error:
        if not line.endswith(b"\n") and line.startswith(b'{"format":'):
            return None
        raise DataError(
            f"{path}: holds something else than answers of debate solve; choose another --out"
        ) from error
    if head.format != FORMAT:
        raise DataError(f"{path}: has format {head.format}, and this version reads {FORMAT}")
    return head.of


def _line(path: Path, number: int, row: bytes) -> Line | None:
    try:
        return msgspec.json.decode(row, type=Line)
    except msgspec.DecodeError as error:
        if row.endswith(b"\n"):
            raise DataError(f"{path}, line {number}: is not an answer of debate solve ({error})") from error
        return None


def _plain(of: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a head says as it is read again."""
    return msgspec.json.decode(msgspec.json.encode(dict(of)))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) < 80 else f"{text[:77]}..."
