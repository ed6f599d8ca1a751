"""Select problems by level, subject and id; a wanted one that matches nothing is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from debate.types import Problem
from envs.errors import DataError, listed

SHOWN = 12
"""How many valid keys an error lists."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Levels, subjects and ids to keep, in plain form; None keeps all."""

    levels: frozenset[str] | None = None
    subjects: frozenset[str] | None = None
    ids: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        *,
        levels: Iterable[str | int] | None = None,
        subjects: Iterable[str] | None = None,
        ids: Iterable[str] | None = None,
    ) -> Self:
        """Return the selection that a user wants.

        >>> Selection.of(levels=["Level 5"], subjects=["Number Theory"]).keeps(
        ...     Problem("1", "?", "2", source="math/number_theory", level="5"))
        True
        """
        return cls(
            None if levels is None else frozenset(map(normal_level, listed("levels", levels, int))),
            None if subjects is None else frozenset(map(plain_subject, listed("subjects", subjects))),
            None if ids is None else frozenset(listed("ids", ids)),
        )

    def keeps(self, problem: Problem) -> bool:
        """Return whether the problem has a level, a subject and an id that are wanted."""
        return all(wanted is None or key(problem) in wanted for _, wanted, key in self._keys())

    def of_all(self, name: str, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems that are kept; DataError for a wanted key that none has, and for none kept."""
        for what, wanted, key in self._keys():
            if wanted is not None:
                _refuse_unmatched(f"{name}, {what}", wanted, set(map(key, problems)))
        kept = [problem for problem in problems if self.keeps(problem)]
        if not kept:
            raise DataError(f"{name}: no problem has all of the levels, subjects and ids asked for")
        return kept

    def _keys(self) -> tuple[tuple[str, frozenset[str] | None, Callable[[Problem], str]], ...]:
        return (
            ("levels", self.levels, lambda problem: problem.level),
            ("subjects", self.subjects, lambda problem: plain_subject(problem.source.partition("/")[2])),
            ("ids", self.ids, lambda problem: problem.id),
        )


def normal_level(level: object) -> str:
    """Return a level in plain form.

    >>> normal_level("Level 5"), normal_level(5)
    ('5', '5')
    """
    return str(level).strip().removeprefix("Level ").strip()


def plain_subject(subject: str) -> str:
    """Return a subject in plain form.

    >>> plain_subject("Counting & Probability")
    'counting_and_probability'
    """
    return subject.lower().replace("&", "and").replace(" ", "_")


def _refuse_unmatched(name: str, wanted: frozenset[str], known: set[str]) -> None:
    """Raise DataError for a wanted key that no problem has: it is never skipped silently."""
    if not wanted:
        raise DataError(f"{name}: is empty; leave it out to keep everything")
    if unmatched := sorted(wanted - known):
        valid = sorted(known - {""})
        more = f", ... ({len(valid)} in all)" if len(valid) > SHOWN else ""
        shown = ", ".join(valid[:SHOWN]) + more or "none"
        raise DataError(f"{name}: {len(unmatched)} unmatched: {', '.join(unmatched[:5])}; valid: {shown}")
