"""Numbers of a whole run: how a figure changed, what is early and late, how votes and texts did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import inf, isfinite, sqrt
from statistics import fmean

import numpy as np
from scipy import stats

from debate_rl.reports.cells import bounds_text
from debate_rl.reports.figures.figure import Figure
from debate_rl.reports.figures.judging import accuracy_figures
from debate_rl.reports.figures.outcomes import cascade_figures, winner_figures
from debate_rl.reports.training.curves import Numbers
from debate_rl.reports.training.loading import Run

LEAST = 12
"""Values below which a change is not judged: four in each third."""
BLOCKS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """Means of the first, middle and last third, and last less first with its 95% interval.

    With fewer than 12 values the bounds are infinite.
    """

    early: float
    middle: float
    late: float
    low: float
    high: float
    n: int

    @property
    def value(self) -> float:
        """The last third less the first."""
        return self.late - self.early

    @property
    def direction(self) -> str:
        """One of "up", "down", "flat", "too few steps"."""
        if self.n < LEAST:
            return "too few steps"
        return "up" if self.low > 0 else "down" if self.high < 0 else "flat"


def change(values: Numbers) -> Change | None:
    """Return the change over values in the order of the steps; None of nothing.

    The interval is Welch's on means of up to 6 blocks of neighbouring steps in each third.

    >>> found = change(np.array([0.0, 1.0, 0.0, 1.0, 5.0, 5.0, 5.0, 5.0, 10.0, 11.0, 10.0, 11.0]))
    >>> found.early, found.late, found.value, found.direction
    (0.5, 10.5, 10.0, 'up')
    """
    if not len(values):
        return None
    third = max(1, len(values) // 3)
    early, late = values[:third], values[-third:]
    middle = values[third:-third] if len(values) > 2 * third else values
    enough = len(values) >= LEAST
    low, high = _welch(_blocks(early), _blocks(late)) if enough else (-inf, inf)
    return Change(float(early.mean()), float(middle.mean()), float(late.mean()), low, high, len(values))


def _blocks(values: Numbers) -> Numbers:
    return np.array([part.mean() for part in np.array_split(values, min(BLOCKS, len(values)))])


def _welch(first: Numbers, last: Numbers) -> tuple[float, float]:
    """Return the 95% interval of the mean of ``last`` less that of ``first``."""
    difference = float(last.mean() - first.mean())
    if min(len(first), len(last)) < 2:
        return -inf, inf
    with np.errstate(over="ignore", invalid="ignore"):
        shares = float(first.var(ddof=1)) / len(first), float(last.var(ddof=1)) / len(last)
    total = sum(shares)
    if not isfinite(total):
        return -inf, inf
    if total <= 0:
        return difference, difference
    freedom = 1 / sum(  # of parts of the sum: squares of the shares themselves can overflow
        (share / total) ** 2 / (len(sample) - 1) for share, sample in zip(shares, (first, last), strict=True)
    )
    reach = float(stats.t.ppf(0.975, freedom)) * sqrt(total)
    return difference - reach, difference + reach


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """Right votes on decidable pairs, its interval in words; winner against right; first-listed excess."""

    accuracy: float | None = None
    bounds: str = ""
    correlation: float | None = None
    followed: float | None = None
    follows: bool = False


def judge_figures(run: Run) -> JudgeFigures:
    """Return the figures; the accuracy is that of all steps where metrics.jsonl has it."""
    figures = _figures(run)
    estimates = {name: figure.estimate for name, figure in figures.items()}
    right, first = estimates.get("judge/accuracy"), estimates.get("cascade/first_listed")
    linked = estimates.get("winner/correlation")
    accuracy = _of_steps(run)
    return JudgeFigures(
        accuracy if accuracy is not None else right.value if right else None,
        bounds_text(right.low, right.high) if right else "",
        linked.value if linked else None,
        first.value if first else None,
        first is not None and first.low > 0,
    )


def _figures(run: Run) -> dict[str, Figure]:
    if run.sample is None or not len(run.sample.study.debates):
        return {}
    study = run.sample.study
    every = chain(accuracy_figures(study), winner_figures(study), cascade_figures(study))
    return {figure.name: figure for figure in every}


def _of_steps(run: Run) -> float | None:
    share, count = run.curves.dense("judge/accuracy"), run.curves.dense("judge/decidable_votes")
    known = np.isfinite(share) & np.isfinite(count)
    total = float(count[known].sum())
    return float((share * count)[known].sum()) / total if total else None


LEAST_PROBLEMS, MOST_PROBLEMS = 5, 200
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
            f"words not shared by two texts of a problem in round 0: {self.apart:.2f} between the first and "
            f"the last third, {self.before:.2f} within the first ({self.problems} problems)"
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
        if len(early) > 1 and late and len(apart) < MOST_PROBLEMS:
            apart.append(_mean(product(early, late)))
            before.append(_mean(combinations(early, 2)))
    return Outputs(fmean(apart), fmean(before), len(apart)) if len(apart) >= LEAST_PROBLEMS else None


def _mean(pairs: Iterable[Sequence[frozenset[str]]]) -> float:
    return fmean(distance(text, another) for text, another in pairs)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def distance(words: frozenset[str], others: frozenset[str]) -> float:
    """Return 1 - Jaccard's index of two sets of words, 0 for two empty ones.

    >>> distance(frozenset("ab"), frozenset("bc"))
    0.6666666666666667
    """
    union = words | others
    return 1 - len(words & others) / len(union) if union else 0.0
