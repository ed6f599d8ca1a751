"""From rows to problems: ids must differ; what cannot be used is refused, or left out and told."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from debate.types import Problem
from envs.data.data_set import DataSet
from envs.data.records import Record
from envs.data.rows import problem_of
from envs.data.selection import Selection
from envs.errors import DataError, DataWarning


@dataclass(slots=True)
class Reader:
    """Reads one split of a data set, once."""

    entry: DataSet
    split: str
    is_open: bool = False
    seen: dict[str, str] = field(default_factory=dict)
    """Where each id was first."""
    left_out: int = 0
    """Rows that a loose data set has and nobody can use."""
    first_left_out: DataError | None = None

    def read(self, rows: Iterable[Record], selection: Selection, *, enough: int | None) -> list[Problem]:
        """Return the selected problems; no row is read once there are ``enough``.

        DataError for a bad row, except in a loose data set: there a warning says how many were left out.
        """
        problems: list[Problem] = []
        kept = 0
        for problem in self._problems(rows):
            problems.append(problem)
            kept += selection.keeps(problem)
            if kept == enough:
                break
        self._tell_left_out(len(problems))
        if kept == enough:
            return [problem for problem in problems if selection.keeps(problem)]
        return selection.of_all(self.entry.name, problems)

    def _problems(self, rows: Iterable[Record]) -> Iterator[Problem]:
        for row in rows:
            try:
                problem = problem_of(self.entry, row, self.split, is_open=self.is_open)
            except DataError as error:
                if not self.entry.loose:
                    raise
                self.left_out += 1
                self.first_left_out = self.first_left_out or error
                continue
            if self._is_new(problem, row):
                yield problem

    def _is_new(self, problem: Problem, row: Record) -> bool:
        """Whether the id is new; in a stream the same question again is no error but another solution."""
        known = self.seen.setdefault(problem.id, row.place)
        if known is not row.place and not self.entry.streamed:
            raise row.error("id", f"is a duplicate of {known}", problem.id)
        return known is row.place

    def _tell_left_out(self, read: int) -> None:
        if not self.left_out:
            return
        told = (
            f"{self.entry.name}: {self.left_out} rows left out, {read} read; the first: {self.first_left_out}"
        )
        if not read:
            raise DataError(told)
        warnings.warn(told, DataWarning, stacklevel=4)
