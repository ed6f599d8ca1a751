"""RUN/likelihood.jsonl: the frozen reference's solution of each problem, and how likely it makes the answer.

A line a problem, written in the step that first drew it. A run that resumes sets aside the lines of the steps
that it does again (``metrics.step_log.rewind``), and writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import msgspec

from debate.files import plain_lines
from debate.values import Value
from transcripts.append import LineFile
from transcripts.codec import decode, in_ascii
from transcripts.errors import FieldError

NAME = "likelihood.jsonl"


class Baseline(Value, frozen=True):
    """A problem's baseline. ``step``: that first drew it. ``logprob``: None where it did not fit."""

    step: int
    problem: str
    solution: str
    logprob: float | None


class Baselines:
    """The baselines of a run."""

    def __init__(self, run: Path) -> None:
        self._path = run / NAME

    @cached_property
    def known(self) -> dict[str, float | None]:
        """The log-probabilities by problem; ValueError names a line that is none."""
        lines = plain_lines(self._path) if self._path.exists() else ()
        whole = (self._read(number, line) for number, line in enumerate(lines, 1) if line.endswith(b"\n"))
        return {one.problem: one.logprob for one in whole}

    def add(self, baselines: Iterable[Baseline]) -> None:
        """Keep further ones."""
        known = self.known
        with LineFile(self._path) as file:
            for one in baselines:
                file.write(in_ascii(msgspec.json.encode(one)))
                known[one.problem] = one.logprob

    def _read(self, number: int, line: bytes) -> Baseline:
        try:
            return decode(line, Baseline)
        except FieldError as error:
            raise ValueError(
                f"{self._path}:{number}: is not a baseline of the likelihood reward: {error}"
            ) from error
