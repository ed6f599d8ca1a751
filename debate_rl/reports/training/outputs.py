"""Whether what is said about a problem changed: its first-round texts, early and late in the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from statistics import fmean

from debate_rl.reports.training.loading import Run

LEAST, MOST = 5, 200
"""Problems that must be met early and late, and at most are looked at."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Mean distance of texts of a problem, early to late and among early ones; over so many problems."""

    apart: float
    before: float
    problems: int

    @property
    def moved(self) -> bool:
        """Are late texts further from early ones than these from each other?"""
        return self.apart > self.before + 0.02

    @property
    def text(self) -> str:
        """What was found, in words."""
        return (
            f"words not shared by two first-round texts of a problem: {self.apart:.2f} between the "
            f"first and the "
            f"last third, {self.before:.2f} within the first ({self.problems} problems)"
        )


def changed_outputs(run: Run) -> Outputs | None:
    """Return how far texts moved; None with fewer than 5 problems met in the first and the last third."""
    if run.sample is None or run.stored is None:
        return None
    low, high = run.stored
    first, last = low + (high - low) / 3, high - (high - low) / 3
    apart: list[float] = []
    before: list[float] = []
    for texts in run.sample.texts.values():
        early = [_words(text) for step, text in texts if step < first][:4]
        late = [_words(text) for step, text in texts if step > last][:4]
        if len(early) > 1 and late and len(apart) < MOST:
            apart.append(_mean(product(early, late)))
            before.append(_mean(combinations(early, 2)))
    return Outputs(fmean(apart), fmean(before), len(apart)) if len(apart) >= LEAST else None


def _mean(pairs: Iterable[Sequence[frozenset[str]]]) -> float:
    return fmean(distance(one, other) for one, other in pairs)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def distance(one: frozenset[str], other: frozenset[str]) -> float:
    """Return 1 - Jaccard's index of two sets of words, 0 for two empty ones.

    >>> distance(frozenset("ab"), frozenset("bc"))
    0.6666666666666667
    """
    union = one | other
    return 1 - len(one & other) / len(union) if union else 0.0
