"""How many labels votes are worth: where their accuracy meets that of truth on more and more problems.

The runs of the curve (``labels=n``) train on n problems alone, drawn again and again, and generate as many
tokens as the others. Runs that have labels on a share of their problems (``truth=0.5``) spend the other
tokens on nothing, so that labels look worth less than they are; they are no points of the curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from debate_rl.metrics.intervals import Estimate, clustered_mean
from experiments.frontier.results import Cell, shortest
from experiments.frontier.signals import has_all_labels

Curve = Sequence[tuple[float, float]]
"""Points (labels, accuracy), by labels."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What a signal is worth on a prior. ``by_seed``: labels; ``most``: those at the end of the curve."""

    prior: str
    signal: str
    by_seed: Mapping[int, float]
    most: float
    labels: Estimate

    @property
    def text(self) -> str:
        """How many of how many labels, with the interval cut to what there is."""
        low, high = max(self.labels.low, 0), min(self.labels.high, self.most)
        return f"worth {self.labels.value:.0f} ({low:.0f} to {high:.0f}) of {self.most:.0f} labels"


def worth(curve: Curve, accuracy: float) -> float:
    """Return how many labels give this accuracy: where the line through the points first reaches it.

    Below the whole line none, above it as many as there are.

    >>> curve = [(0, 0.1), (10, 0.3), (20, 0.3), (40, 0.5)]
    >>> [round(worth(curve, accuracy), 6) for accuracy in (0.05, 0.2, 0.4, 0.6)]
    [0.0, 5.0, 30.0, 40.0]
    """
    if accuracy <= curve[0][1]:
        return float(curve[0][0])
    for (labels, low), (more, high) in pairwise(curve):
        if low < high and low <= accuracy <= high:
            return labels + (accuracy - low) / (high - low) * (more - labels)
    return float(curve[-1][0])


def cells_of_curve(cells: Sequence[Cell], prior: str) -> list[Cell]:
    """Return the cells with a label for every problem that they train on: ``labels=n`` and ``truth=1``."""
    return [one for one in cells if one.prior == prior and has_all_labels(one.signal)]


def curve_of(cells: Sequence[Cell], prior: str, seed: int) -> list[tuple[float, float]]:
    """Return the points of one seed: no labels and the start, then each number of labels."""
    ran = [one.seeds[seed] for one in cells_of_curve(cells, prior) if seed in one.seeds]
    start = [(0.0, one.first[0][1]) for one in ran[:1]]
    return start + sorted((float(one.labels), one.first[-1][1]) for one in ran)


def worths(cells: Sequence[Cell], signals: Sequence[str] = ("votes", "voted")) -> list[Worth]:
    """Return what signals without labels are worth, on each prior with two numbers of labels or more: between
    none and all of them a straight line says little.
    """
    short = shortest(cells)
    found = (_worth(one, short) for one in short if one.signal in signals)
    return [one for one in found if one is not None]


def _worth(cell: Cell, cells: Sequence[Cell]) -> Worth | None:
    curves = {seed: curve_of(cells, cell.prior, seed) for seed in cell.seeds}
    known = {seed: curve for seed, curve in curves.items() if len(curve) > 2}
    if not known:
        return None
    values = {seed: worth(curve, cell.seeds[seed].first[-1][1]) for seed, curve in known.items()}
    most = max(curve[-1][0] for curve in known.values())
    estimate = clustered_mean([*values.values()], [*values])
    return Worth(cell.prior, cell.signal, values, most, estimate)


def accuracies(cell: Cell) -> list[float]:
    """Return the accuracy of first answers at the end, by seed."""
    return [one.first[-1][1] for one in cell.seeds.values()]
