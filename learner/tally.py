"""Running means and maxima of a step's metrics over its micro-batches."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


class Tally:
    """Means weighted by tokens; names that end in ``_max`` keep the largest value instead."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._weights: dict[str, float] = {}
        self._maxima: dict[str, float] = {}

    def add(self, values: Mapping[str, Tensor | float], weight: float = 1.0) -> None:
        """Take in values that stand for ``weight`` tokens."""
        for name, value in values.items():
            if name.endswith("_max"):
                self._maxima[name] = max(self._maxima.get(name, float("-inf")), float(value))
            else:
                self._sums[name] = self._sums.get(name, 0.0) + weight * float(value)
                self._weights[name] = self._weights.get(name, 0.0) + weight

    def result(self) -> dict[str, float]:
        """Return every metric by name.

        >>> tally = Tally()
        >>> tally.add({"kl": 1.0, "kl_max": 1.0}, weight=3)
        >>> tally.add({"kl": 5.0, "kl_max": 7.0}, weight=1)
        >>> tally.result()
        {'kl': 2.0, 'kl_max': 7.0}
        """
        means = {
            name: total / self._weights[name] for name, total in self._sums.items() if self._weights[name]
        }
        return means | self._maxima
