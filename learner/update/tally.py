"""Running means and maxima of a step's metrics over its micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from learner.losses.types import token_statistics
from learner.types import Row
from learner.update.batches import MicroBatch


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


def tally_mismatch(batch: MicroBatch, logprobs: Tensor, tally: Tally) -> None:
    """Count how far the trainer is from the sampler: |lp - sampled lp|, and k3 of KL(sampler, trainer)."""
    difference = (logprobs - batch.sampling_logprobs)[batch.mask]
    kl = (difference.expm1() - difference).mean() if difference.numel() else 0.0
    everywhere = torch.ones_like(difference)
    tally.add(
        token_statistics("mismatch", difference.abs(), everywhere) | {"mismatch_kl": kl}, len(difference)
    )


def sizes(rows: Sequence[Row], batches: Sequence[MicroBatch]) -> dict[str, float]:
    """Return how much a step learnt from, in rows and tokens."""
    return {
        "rows": float(len(rows)),
        "action_tokens": float(sum(int(row.action_mask.sum()) for row in rows)),
        "row_tokens": float(sum(len(row.input_ids) for row in rows)),
        "read_tokens": float(sum(batch.positions for batch in batches)),
    }
