"""The file of answers that ``debate solve`` writes as it works, and continues; and what they were worth.

The first line says how the answers were come by, each further line is a problem:

    {"format": 2, "of": {"strategy": "majority", "samples": 16, ...}}
    {"id": "aime-3", "checksum": "5f1c...", "question": "Let N ...", "answer": "204", "samples": 16, ...}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from debate import Problem
from debate.files import plain_lines
from debate.values import Value
from debate_rl.evaluation.grading import grade_turn
from debate_rl.formatting import counted, duration, share, shorten
from debate_rl.metrics.intervals import clustered_mean
from debate_rl.sampling.difficulty import question_checksum
from debate_rl.strategies.posing import Posed
from debate_rl.strategies.solving import Refused
from debate_rl.strategies.work import Answered
from envs import DataError
from envs.types import Mode
from transcripts.append import LineFile

FORMAT = 2
HOUR = 3600.0
SAME = ("answer", "ended", "solution", "samples", "comparisons", "unread", "cut_off")
SAME += ("tokens_read", "tokens_generated")
"""What a line takes over from what a strategy answered."""


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


def line_of(problem: Problem, found: Answered | Refused, posed: Posed, mode: Mode) -> Line:
    """Return the line of what came of a problem, graded where there is a gold answer."""
    line = Line(problem.id, question_checksum(problem), problem.question)
    if isinstance(found, Refused):
        return replace(line, refused=found.reason)
    right: bool | None = None
    if not posed.ungraded:
        turn = found.turn
        verdict = turn is not None and grade_turn(posed.environment, problem, turn, mode).verdict
        right = None if verdict is None else verdict is True
    return replace(
        line,
        right=right,
        shares=tuple((one.answer, round(one.share, 6)) for one in found.shares),
        seconds=round(found.seconds, 3),
        **{name: getattr(found, name) for name in SAME},
    )


class AnswersFile:
    """Answers on the disk, each there as a whole or not at all; ``lines``: those that were there before.

    DataError, and no change, for a file that holds something else, or answers that were come by otherwise.
    """

    def __init__(self, path: Path, of: Mapping[str, Any]) -> None:
        self.lines = _read(path, of)
        self._file = LineFile(path)
        if self._file.end == 0:
            self.write(Head(FORMAT, dict(of)))

    def write(self, line: Head | Line) -> None:
        """Add the answer to a problem."""
        self._file.write(msgspec.json.encode(line))

    def close(self) -> None:
        """Bring all lines to the disk."""
        self._file.close()

    def missing(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems that have no answer yet.

        DataError where the file has an answer to another problem of the same id.
        """
        known = {line.id: line.checksum for line in self.lines}
        for problem in problems:
            if known.get(problem.id, question_checksum(problem)) != question_checksum(problem):
                path = self._file.path
                raise DataError(
                    f"{path}: has an answer to another problem {problem.id!r}; choose another --out"
                )
        return [problem for problem in problems if problem.id not in known]


def _read(path: Path, of: Mapping[str, Any]) -> list[Line]:
    """Return the answers that a file holds, a torn last line left out; [] where there is none."""
    if not path.exists() or not path.stat().st_size:
        return []
    first, *rows = plain_lines(path)
    try:
        head = msgspec.json.decode(first, type=Head)
    except msgspec.DecodeError as error:
        if not first.endswith(b"\n") and first.startswith(b'{"format":'):
            return []  # torn as it was written
        what = "holds something else than answers of debate solve"
        raise DataError(f"{path}: {what}; choose another --out") from error
    if head.format != FORMAT:
        raise DataError(f"{path}: has format {head.format}, and this version reads {FORMAT}")
    wanted = msgspec.json.decode(msgspec.json.encode(dict(of)))
    for name in sorted({*head.of, *wanted}):
        if head.of.get(name) != wanted.get(name):
            old, new = (shorten(str(one.get(name)), 80) for one in (head.of, wanted))
            what = f"its answers are of {name} = {old}, and these would be of {new}"
            raise DataError(f"{path}: {what}; choose another --out")
    lines: list[Line] = []
    for number, row in enumerate(rows, start=2):
        try:
            lines.append(msgspec.json.decode(row, type=Line))
        except msgspec.DecodeError as error:
            if row.endswith(b"\n"):
                raise DataError(
                    f"{path}, line {number}: is not an answer of debate solve ({error})"
                ) from error
    return lines


def summary(lines: Sequence[Line], *, seconds: float, solved: int) -> dict[str, Any]:
    """Return the figures of answers, of which ``solved`` were found in these wall ``seconds``.

    ``right`` is over the graded ones, with a 95% interval where there are two or more; ``per_hour`` and
    ``tokens_per_second`` are of this command alone, and None where it found nothing.
    """
    graded = [line for line in lines if line.right is not None]
    asked = [line for line in lines if not line.refused]
    newest = asked[len(asked) - min(solved, len(asked)) :]
    generated = sum(line.tokens_generated for line in newest)
    right: dict[str, float | int] | None = None
    if graded:
        found = clustered_mean([float(line.right is True) for line in graded], [line.id for line in graded])
        right = {"value": found.value, "n": len(graded)}
        if len(graded) > 1:
            right |= {"low": max(0.0, found.low), "high": min(1.0, found.high)}
    return {
        "problems": len(lines),
        "answered": sum(line.answer is not None for line in lines),
        "refused": len(lines) - len(asked),
        "right": right,
        "ended": dict(Counter(line.ended for line in asked)),
        "tokens_generated": sum(line.tokens_generated for line in lines),
        "tokens_read": sum(line.tokens_read for line in lines),
        "seconds": round(seconds, 3),
        "per_hour": round(len(newest) * HOUR / seconds, 3) if newest and seconds > 0 else None,
        "tokens_per_second": round(generated / seconds, 3) if generated and seconds > 0 else None,
    }


def summary_lines(figures: Mapping[str, Any]) -> list[str]:
    """Return the figures in words.

    >>> lines = [Line("p", "", "", "4", True, tokens_generated=30), Line("q", "", "", None, False)]
    >>> summary_lines(summary(lines, seconds=2.0, solved=2))[0]
    '2 problems: 1 answered, .50 right of 2 graded (.00 to 1.00)'
    """
    right, refused = figures["right"], figures["refused"]
    of = ""
    if right is not None:
        bounds = f" ({share(right['low'])} to {share(right['high'])})" if "low" in right else ""
        of = f", {share(right['value'])} right of {right['n']} graded{bounds}"
    head = f"{counted(figures['problems'], 'problem')}: {figures['answered']} answered{of}"
    cost = f"{figures['tokens_generated']:,} tokens generated, {figures['tokens_read']:,} read"
    if figures["per_hour"]:
        cost += f"; {duration(figures['seconds'])} here: {figures['per_hour']:,.0f} problems an hour"
    return [head + (f", {refused} refused" if refused else ""), cost]
