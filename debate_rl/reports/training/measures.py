"""Numbers of a whole run: how a figure changed, what is early and late, how votes and texts did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import inf
from statistics import fmean

import numpy as np

from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Estimate, Numbers, thirds
from debate_rl.reports.cells import bounds_text
from debate_rl.reports.figures.figure import Figure
from debate_rl.reports.figures.judging import accuracy_figures
from debate_rl.reports.figures.outcomes import cascade_figures, winner_figures
from debate_rl.reports.findings import LEVEL, chance
from debate_rl.reports.kinds import KINDS
from debate_rl.reports.training.loading import Run

LEAST = 12
"""Values below which a change is not judged: four in each third."""
BLOCKS = 6


@dataclass(frozen=True, slots=True)
class Change:
    """Means of the first, middle and last third, and last less first with its 95% interval.

    With fewer than 12 values the bounds are infinite; ``p``: that nothing changed.
    """

    early: float
    middle: float
    late: float
    low: float
    high: float
    n: int
    p: float = 1.0

    @property
    def value(self) -> float:
        """The last third less the first."""
        return self.late - self.early

    @property
    def direction(self) -> str:
        """One of "up", "down", "flat", "too few steps": up and down as sure as a finding has to be."""
        if self.n < LEAST:
            return "too few steps"
        return "flat" if self.p > LEVEL else "up" if self.value > 0 else "down"


@np.errstate(over="ignore", invalid="ignore")  # figures of a foreign file may be of any size
def change(values: Numbers) -> Change | None:
    """Return the change over values in the order of the steps; None of nothing.

    The interval is Welch's on means of up to 6 blocks of neighbouring steps in each third.

    >>> found = change(np.array([0.0, 1.0, 0.0, 1.0, 5.0, 5.0, 5.0, 5.0, 10.0, 11.0, 10.0, 11.0]))
    >>> found.early, found.late, found.value, found.direction
    (0.5, 10.5, 10.0, 'up')
    """
    if not len(values):
        return None
    early, middle, late = thirds(values)
    found = None
    if len(values) >= LEAST:
        blocks, before = np.concatenate([_blocks(late), _blocks(early)]), len(_blocks(early))
        order = np.arange(len(blocks))
        found = intervals.difference(blocks, order < len(blocks) - before, order)
    low, high, p = (found.low, found.high, chance(found)) if found else (-inf, inf, 1.0)
    return Change(float(early.mean()), float(middle.mean()), float(late.mean()), low, high, len(values), p)


def _blocks(values: Numbers) -> Numbers:
    return np.array([part.mean() for part in np.array_split(values, min(BLOCKS, len(values)))])


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
        first is not None and _follows(first),
    )


def _follows(first: Estimate) -> bool:
    """Is what agents take over from the first shown, over chance, of a size and a number that matter?"""
    least = KINDS["cascade/first_listed"]
    return first.n >= least.cases and first.value >= least.size and first.low > 0


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
    first, _, last = thirds(range(run.stored[0], run.stored[1] + 1))
    apart: list[float] = []
    before: list[float] = []
    for texts in run.sample.texts.values():
        early = [_words(text) for step, text in texts if step in first][:4]
        late = [_words(text) for step, text in texts if step in last][:4]
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
