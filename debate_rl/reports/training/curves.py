"""Figures by step: what metrics.jsonl, the index and a sample of debates say of a run, on one axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from debate_rl.metrics.intervals import Numbers, thirds

Steps = NDArray[np.int64]
SOLVED = 0.9
"""The share of right answers above which solutions may well be alike."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Columns (n,) over rising ``steps`` (n,); nan where there is no value.

    ``broken`` names the steps at which a figure was there and no finite number. ``group`` is K N, the
    answers to a problem in round 0 of a step, where it is known.

    >>> curves = Curves(np.array([0, 1, 2]), {"loss": np.array([1.0, np.nan, 3.0])})
    >>> curves.of("loss")
    (array([0, 2]), array([1., 3.]))
    >>> curves.of("kl_mean")
    (array([], dtype=int64), array([], dtype=float64))
    """

    steps: Steps
    values: Mapping[str, Numbers]
    broken: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    group: int | None = None

    def of(self, name: str) -> tuple[Steps, Numbers]:
        """Return the steps that have a value of this figure, and the values."""
        if name not in self.values:
            return self.steps[:0], np.zeros(0)
        column = self.values[name]
        known = np.isfinite(column)
        return self.steps[known], column[known]

    def points(self, name: str) -> list[tuple[int, float]]:
        """Return the steps that have a value of this figure, each with its value."""
        steps, values = self.of(name)
        return list(zip(steps.tolist(), values.tolist(), strict=True))

    def dense(self, name: str) -> Numbers:
        """Return a column (n,), nan where there is no value."""
        return self.values[name] if name in self.values else np.full(len(self.steps), np.nan)

    def bounds(self, name: str) -> tuple[Numbers, Numbers]:
        """Return the interval of each value of a held-out figure, nan where it has none."""
        known = np.isfinite(self.dense(name))
        return self.dense(f"{name}/low")[known], self.dense(f"{name}/high")[known]

    def beginning(self, name: str) -> float | None:
        """Return the mean of the first 5 values of a figure; None where it has none."""
        return _reduced(np.mean, self.of(name)[1][:5])

    def late(self, name: str) -> float | None:
        """Return the mean of the last third of the values of a figure."""
        return _reduced(np.mean, thirds(self.of(name)[1])[-1])

    def total(self, name: str) -> float | None:
        """Return the sum of a figure over all steps."""
        return _reduced(np.sum, self.of(name)[1])

    def median(self, name: str) -> float | None:
        """Return the median of a figure over all steps."""
        return _reduced(np.median, self.of(name)[1])

    @property
    def solved(self) -> bool:
        """Are over .9 of the late answers right? Then solutions may well be alike."""
        return (self.late("accuracy") or 0.0) > SOLVED

    def until(self, step: int) -> Curves:
        """Return what was known when a step had ended."""
        count = int(np.searchsorted(self.steps, step, side="right"))
        values = {name: column[:count] for name, column in self.values.items()}
        broken = {name: tuple(at for at in where if at <= step) for name, where in self.broken.items()}
        return Curves(self.steps[:count], values, broken, self.group)


def _reduced(reduce: Callable[[Numbers], Any], values: Numbers) -> float | None:
    return float(reduce(values)) if len(values) else None


def no_curves() -> Curves:
    """Return the curves of a run of which no figure is known."""
    return Curves(np.zeros(0, np.int64), {})


def joined(parts: Sequence[Curves], group: int | None = None) -> Curves:
    """Return the curves of all parts on the union of their steps; of a name in two parts the first counts."""
    if not parts:
        return Curves(np.zeros(0, np.int64), {}, {}, group)
    steps = np.unique(np.concatenate([part.steps for part in parts])).astype(np.int64)
    values: dict[str, Numbers] = {}
    broken: dict[str, tuple[int, ...]] = {}
    for part in reversed(parts):
        at = np.searchsorted(steps, part.steps)
        for name, column in part.values.items():
            values[name] = np.full(len(steps), np.nan)
            values[name][at] = column
        broken.update(part.broken)
    return Curves(steps, values, broken, group)


def windows(values: Numbers, width: int) -> NDArray[np.float64]:
    """Return each ``width`` values in a row, (n - width + 1, width); none where there are fewer."""
    return sliding_window_view(values, width) if len(values) >= width else np.zeros((0, width))


def trailing_median(values: Numbers, width: int) -> Numbers:
    """Return the medians of the windows, (n - width + 1,).

    >>> trailing_median(np.array([1.0, 9.0, 2.0, 3.0]), 3)
    array([2., 3.])
    """
    return np.median(windows(values, width), axis=1)


def trailing_mean(values: Numbers, width: int) -> Numbers:
    """Return the means of the windows, (n - width + 1,)."""
    return windows(values, width).mean(axis=1)


def thinned(steps: Steps, values: Numbers, most: int = 500) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return at most ``most`` points: the curve itself, or the means of equal shares of its values.

    >>> thinned(np.arange(4), np.array([0.0, 2.0, 4.0, 6.0]), 2)
    ((0.5, 2.5), (1.0, 5.0))
    """
    if len(values) > most:
        edges = np.linspace(0, len(values), most + 1).astype(int)[:-1]
        sizes = np.diff([*edges, len(values)])
        at = np.add.reduceat(steps.astype(float), edges) / sizes
        values = np.add.reduceat(values, edges) / sizes
    else:
        at = steps.astype(float)
    return tuple(float(x) for x in at), tuple(float(y) for y in values)
