"""Running means and maxima of a step's metrics over its micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain, pairwise

import torch
from torch import Tensor

from learner.losses.types import token_statistics
from learner.types import Row
from learner.update.batches import MicroBatch
from learner.update.ranks import ALONE, Ranks

POSITIONS = (0, 512, 2048, 8192)
"""The positions in a row at which the parts begin whose mismatch is logged."""


class Tally:
    """Means weighted by tokens; names that end in ``_max`` keep the largest value instead.

    Tensors stay where they are until ``result`` brings them over all at once: a GPU is not waited for.
    """

    def __init__(self) -> None:
        self._added: list[tuple[str, Tensor | float, Tensor | float]] = []

    def add(self, values: Mapping[str, Tensor | float], weight: Tensor | float = 1.0) -> None:
        """Take in values that stand for ``weight`` tokens; those of no tokens say nothing."""
        self._added += [
            (name, value.detach() if isinstance(value, Tensor) else value, weight)
            for name, value in values.items()
        ]

    def result(self, ranks: Ranks = ALONE) -> dict[str, float]:
        """Return every metric by name, of what all ranks have taken in.

        >>> tally = Tally()
        >>> tally.add({"kl": 1.0, "kl_max": 1.0}, weight=3)
        >>> tally.add({"kl": 5.0, "kl_max": 7.0}, weight=1)
        >>> tally.result()
        {'kl': 2.0, 'kl_max': 7.0}
        """
        sums: dict[str, float] = {}
        weights: dict[str, float] = {}
        maxima: dict[str, float] = {}
        numbers = floats([*chain(*((value, weight) for _, value, weight in self._added))])
        own = list(zip((name for name, _, _ in self._added), numbers[::2], numbers[1::2], strict=True))
        for name, value, weight in chain(*ranks.gathered([one for one in own if one[2]])):
            if name.endswith("_max"):
                maxima[name] = max(maxima.get(name, float("-inf")), value)
            else:
                sums[name] = sums.get(name, 0.0) + weight * value
                weights[name] = weights.get(name, 0.0) + weight
        return {name: total / weights[name] for name, total in sums.items()} | maxima


def floats(values: Sequence[Tensor | float]) -> list[float]:
    """Return values as Python's numbers; those of tensors, of one element each, in one transfer.

    >>> floats([torch.tensor(0.5), 2.0, torch.tensor([4])])
    [0.5, 2.0, 4.0]
    """
    tensors = [value.reshape(()) for value in values if isinstance(value, Tensor)]
    widest = reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    moved = iter(torch.stack([tensor.to(widest) for tensor in tensors]).tolist() if tensors else ())
    return [next(moved) if isinstance(value, Tensor) else float(value) for value in values]


def tally_mismatch(batch: MicroBatch, logprobs: Tensor, tally: Tally) -> None:
    """Count how far the trainer is from the sampler: |lp - sampled lp|, and k3 of KL(sampler, trainer).

    By position too: rotary frequencies that differ show more and more along a row, rounding everywhere.
    """
    difference = logprobs - batch.sampling_logprobs
    apart, tokens = difference.abs(), len(batch.predictors)
    kl = torch.where(batch.mask, difference.expm1() - difference, 0.0).sum() / max(tokens, 1)
    tally.add(token_statistics("mismatch", apart, batch.mask) | {"mismatch_kl": kl}, tokens)
    for start, stop in pairwise((*POSITIONS, None)):
        here = batch.mask[:, start:stop]
        mean = torch.where(here, apart[:, start:stop], 0.0).sum() / here.sum()
        tally.add({f"mismatch_from_{start}": mean}, here.sum())


def sizes(rows: Sequence[Row], read: int) -> dict[str, float]:
    """Return how much a step learnt from, in rows and tokens; ``read``: the tokens that the model read."""
    return {
        "rows": float(len(rows)),
        "action_tokens": float(sum(int(row.action_mask.sum()) for row in rows)),
        "row_tokens": float(sum(len(row.input_ids) for row in rows)),
        "read_tokens": float(read),
    }
