"""What was gained on problems by how often they were solved at first, without regression to the mean.

A problem that was lucky in its first samples is less so in its next ones, whatever was learnt: strata by the
same samples that a gain is measured from would show gains where the pass rate was low and losses where it was
high. So one half of a problem's first samples says which stratum it is in, and the other half what it was
worth at first. As samples of a problem are exchangeable, how many of a half are right is hypergeometric, and
every split counts with its chance: nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from debate_rl.metrics.held_out import DIRECT, HeldOut
from debate_rl.metrics.intervals import Estimate, ratio
from debate_rl.sampling.difficulty import BANDS

MOST_SAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """What a split puts into a stratum: its chance, the problem, its rate at first (other half) and later."""

    stratum: int
    problem: int
    weight: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Stratum:
    """Problems of one pass rate: how many are expected in it, their rates at first and later, the gain."""

    name: str
    problems: float
    before: float
    after: float
    gain: Estimate


def strata(first: HeldOut, last: HeldOut, figure: str = DIRECT) -> list[Stratum]:
    """Return the strata that have problems; none where no problem of both has two or more first samples."""
    parts = list(_parts(first, last, figure))
    return [
        stratum
        for index, (_, name) in enumerate(BANDS)
        if (stratum := _stratum(name, [part for part in parts if part.stratum == index])) is not None
    ]


def _parts(first: HeldOut, last: HeldOut, figure: str) -> Iterator[Part]:
    before, after = first.figures.get(figure, {}), last.means(figure)
    for problem, (id, (right, count)) in enumerate(before.items()):
        same = id in after and first.problems.get(id) == last.problems.get(id)
        if same and 2 <= count <= MOST_SAMPLES and right == round(right) and 0 <= right <= count:
            for weight, rate, other in splits(round(right), count):
                yield Part(_stratum_of(rate), problem, weight, other, after[id])


def splits(right: int, count: int) -> list[tuple[float, float, float]]:
    """Return each split of a problem's samples in halves: its chance, the rate of one half, of the other.

    >>> splits(1, 2)
    [(0.5, 0.0, 1.0), (0.5, 1.0, 0.0)]
    """
    half = count // 2
    rest = count - half
    return [
        (comb(right, n) * comb(count - right, half - n) / comb(count, half), n / half, (right - n) / rest)
        for n in range(max(0, right - rest), min(right, half) + 1)
    ]


def _stratum_of(rate: float) -> int:
    return next(index for index, (most, _) in enumerate(BANDS) if rate <= most)


def _stratum(name: str, parts: Sequence[Part]) -> Stratum | None:
    """Return the weighted means of a stratum, the gain with an interval clustered by problem."""
    if not parts:
        return None
    weights = np.array([part.weight for part in parts])
    before, after = (np.array([getattr(part, side) for part in parts]) for side in ("before", "after"))
    gain = ratio(weights * (after - before), weights, np.array([p.problem for p in parts]), signed=True)
    total = float(weights.sum())
    if gain is None:
        return None
    return Stratum(name, total, float(weights @ before) / total, float(weights @ after) / total, gain)
