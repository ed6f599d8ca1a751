"""The file of answers that ``debate solve`` writes and resumes, and a summary of its answers.

The first line says how the answers were found, and each further line answers a problem (docs/solve.md):

    {"format": 2, "of": {"strategy": "majority", "samples": 16, ...}}
    {"id": "aime-3", "checksum": "5f1c...", "question": "Let N ...", "answer": "204", "samples": 16, ...}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from debate import Problem
from debate.files import plain_lines
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
COUNTS = ("samples", "comparisons", "unread", "cut_off", "tokens_read", "tokens_generated")
READ = ("id", "checksum", "answer", "right", "refused", "ended", "tokens_read", "tokens_generated")
"""The keys that are read from each line."""
Line: TypeAlias = Mapping[str, Any]
"""One problem with its answer. ``checksum``: of the whole problem. ``right``: None if it is unknown.
``refused``: why the problem could not be solved, or "". The other fields are those of ``Answered``."""


def line_of(problem: Problem, found: Answered | Refused, posed: Posed, mode: Mode) -> Line:
    """Return the line for a problem's result, graded if the problem has a gold answer."""
    line = {"id": problem.id, "checksum": question_checksum(problem), "question": problem.question}
    if isinstance(found, Refused):
        empty = {"answer": None, "right": None, "shares": [], "ended": "", **dict.fromkeys(COUNTS, 0)}
        return {**line, **empty, "seconds": 0.0, "solution": "", "refused": found.reason}
    right: bool | None = None
    if not posed.ungraded:
        turn = found.turn
        verdict = turn is not None and grade_turn(posed.environment, problem, turn, mode).verdict
        right = None if verdict is None else verdict is True
    return {
        **line,
        "answer": found.answer,
        "right": right,
        "shares": [[one.answer, round(one.share, 6)] for one in found.shares],
        "ended": found.ended,
        **{name: getattr(found, name) for name in COUNTS},
        "seconds": round(found.seconds, 3),
        "solution": found.solution,
        "refused": "",
    }


class AnswersFile:
    """A file of answers. ``lines``: the answers in the file when it was opened.

    DataError, which leaves the file unchanged, for another kind of file or for answers by another method.
    """

    def __init__(self, path: Path, of: Mapping[str, Any]) -> None:
        self.lines = _read(path, of)
        self._file = LineFile(path)
        if self._file.end == 0:
            self.write({"format": FORMAT, "of": dict(of)})

    def write(self, line: Line) -> None:
        """Append the answer to a problem."""
        self._file.write(msgspec.json.encode(line))

    def close(self) -> None:
        """Sync all lines to disk and close the file."""
        self._file.close()

    def missing(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems that have no answer yet.

        DataError if the file has an answer to another problem with the same id.
        """
        known = {line["id"]: line["checksum"] for line in self.lines}
        for problem in problems:
            if known.get(problem.id, question_checksum(problem)) != question_checksum(problem):
                what = f"has an answer to another problem with id {problem.id!r}"
                raise DataError(f"{self._file.path}: {what}; choose another --out")
        return [problem for problem in problems if problem.id not in known]


def _read(path: Path, of: Mapping[str, Any]) -> list[Line]:
    """Return the answers in a file without an incomplete last line, or [] if there is no file."""
    found: list[Line] = []
    for number, row in enumerate(plain_lines(path) if path.exists() else (), start=1):
        try:
            line = json.loads(row)
            found.append(line)
            _ = (line["format"], line["of"].items()) if number == 1 else [line[key] for key in READ]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if not row.endswith(b"\n") and (number > 1 or row.startswith(b'{"format":')):
                break  # incomplete last line
            where = str(path) if number == 1 else f"{path}, line {number}"
            what = "is not a file of answers by debate solve; choose another --out"
            raise DataError(f"{where}: {what}") from error
    if not found:
        return []
    head, *lines = found
    if head["format"] != FORMAT:
        raise DataError(f"{path}: has format {head['format']}, but this version reads {FORMAT}")
    wanted = json.loads(json.dumps(dict(of)))
    for name in sorted({*head["of"], *wanted}):
        if head["of"].get(name) != wanted.get(name):
            old, new = (shorten(str(one.get(name)), 80) for one in (head["of"], wanted))
            what = f"its answers have {name} = {old}, but this command has {name} = {new}"
            raise DataError(f"{path}: {what}; choose another --out")
    return lines


def summary(lines: Sequence[Line], *, seconds: float, solved: int) -> dict[str, Any]:
    """Return the figures of answers. The last ``solved`` answers took ``seconds`` of wall time.

    ``right`` is over the graded answers, with a 95% interval for two or more. ``per_hour`` and
    ``tokens_per_second`` are over the last ``solved`` answers, or None without any.
    """
    graded = [line for line in lines if line["right"] is not None]
    asked = [line for line in lines if not line["refused"]]
    newest = asked[len(asked) - min(solved, len(asked)) :]
    generated = sum(line["tokens_generated"] for line in newest)
    right: dict[str, float | int] | None = None
    if graded:
        found = clustered_mean([float(line["right"]) for line in graded], [line["id"] for line in graded])
        right = {"value": found.value, "n": len(graded)}
        if len(graded) > 1:
            right |= {"low": max(0.0, found.low), "high": min(1.0, found.high)}
    return {
        "problems": len(lines),
        "answered": sum(line["answer"] is not None for line in lines),
        "refused": len(lines) - len(asked),
        "right": right,
        "ended": dict(Counter(line["ended"] for line in asked)),
        "tokens_generated": sum(line["tokens_generated"] for line in lines),
        "tokens_read": sum(line["tokens_read"] for line in lines),
        "seconds": round(seconds, 3),
        "per_hour": round(len(newest) * HOUR / seconds, 3) if newest and seconds > 0 else None,
        "tokens_per_second": round(generated / seconds, 3) if generated and seconds > 0 else None,
    }


def summary_lines(figures: Mapping[str, Any]) -> list[str]:
    """Return the figures as lines of text."""
    right, refused, of = figures["right"], figures["refused"], ""
    if right is not None:
        bounds = f" ({share(right['low'])} to {share(right['high'])})" if "low" in right else ""
        of = f", {share(right['value'])} right of {right['n']} graded{bounds}"
    head = f"{counted(figures['problems'], 'problem')}: {figures['answered']} answered{of}"
    cost = f"{figures['tokens_generated']:,} tokens generated, {figures['tokens_read']:,} read"
    if figures["per_hour"]:
        cost += f"; {duration(figures['seconds'])} in this run: {figures['per_hour']:,.0f} problems per hour"
    return [head + (f", {refused} refused" if refused else ""), cost]
