"""A step's metrics over its micro-batches: means, maxima, and the tokens with the largest differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, pairwise
from math import isnan
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from debate.types import TurnId
from learner.losses.types import token_statistics
from learner.types import Row
from learner.update.batches import MicroBatch
from learner.update.ranks import ALONE, Ranks

POSITIONS = (0, 512, 2048, 8192)
"""The start positions, within a row, of the parts whose mismatch is logged separately."""


class Tally:
    """Token-weighted means; metrics whose names end in ``_max`` keep the largest value instead.

    Tensors stay on their device until ``result`` transfers them all at once, so there is no wait for a GPU.
    """

    def __init__(self) -> None:
        self._added: list[tuple[str, Tensor | float, Tensor | float]] = []

    def add(self, values: Mapping[str, Tensor | float], weight: Tensor | float = 1.0) -> None:
        """Add values that are means over ``weight`` tokens. Values with weight 0 are ignored."""
        self._added += [
            (name, value.detach() if isinstance(value, Tensor) else value, weight)
            for name, value in values.items()
        ]

    def result(self, ranks: Ranks = ALONE) -> dict[str, float]:
        """Return every metric by name, over the values of all ranks.

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
    """Return values as Python numbers. All tensors, of one element each, are moved in one transfer.

    >>> floats([torch.tensor(0.5), 2.0, torch.tensor([4])])
    [0.5, 2.0, 4.0]
    """
    tensors = [value.reshape(()) for value in values if isinstance(value, Tensor)]
    widest = reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    moved = iter(torch.stack([tensor.to(widest) for tensor in tensors]).tolist() if tensors else ())
    return [next(moved) if isinstance(value, Tensor) else float(value) for value in values]


def tally_mismatch(batch: MicroBatch, logprobs: Tensor, tally: Tally) -> None:
    """Record the mismatch between trainer and sampler: |lp - sampled lp|, and k3 of KL(sampler, trainer).

    The mismatch is also recorded by position: different rotary frequencies cause a growing mismatch along a
    row, while rounding affects all positions.
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
    """Return the number of rows and tokens in a step. ``read``: the number of tokens that the model read."""
    return {
        "rows": float(len(rows)),
        "action_tokens": float(sum(int(row.action_mask.sum()) for row in rows)),
        "row_tokens": float(sum(len(row.input_ids) for row in rows)),
        "read_tokens": float(read),
    }


MOST, BEFORE = 5, 12
"""The number of worst tokens reported per step, and the number of tokens kept before each."""

Against: TypeAlias = Literal["reference", "sampler", "sampler_before"]


@dataclass(frozen=True, slots=True)
class FarToken:
    """A sampled token and its log-probabilities, in nats, under the trainer and another model.

    ``debate`` is the index of the debate in the step. ``before``: the ids of up to 12 tokens before it.
    """

    debate: int
    turn: TurnId
    token: int
    before: tuple[int, ...]
    trainer: float
    other: float


_Top: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Sequence[tuple[int, TurnId]]]
"""The worst tokens of a micro-batch.

Scores, rows, positions, ids (n, BEFORE + 1) that end with the token, log-probabilities under the trainer and
under the other model, (n,) each, and the debate and turn of each row.
"""


class WorstTokens:
    """Collects the tokens with the largest scores of a step's micro-batches. Only ``of`` waits for a GPU.

    Against the reference the score is k3, whose largest value is ``kl_max``. Against the sampler it is
    |trainer - sampler|, at every update. For "sampler_before" the score is the same, but only before the
    first update of the step, because changes by updates are not mismatch; its largest value is
    ``mismatch_max``.
    """

    def __init__(self) -> None:
        self._kept: dict[Against, list[_Top]] = {"reference": [], "sampler": [], "sampler_before": []}

    def look(self, batch: MicroBatch, logprobs: Tensor) -> None:
        """Add a micro-batch at an update. ``logprobs`` (B, T) are the trainer's."""
        if batch.ref is not None:
            apart = logprobs - batch.ref
            self._keep("reference", (-apart).expm1() + apart, batch, logprobs, batch.ref)
        self.look_at_sampler(batch, logprobs, "sampler")

    def look_at_sampler(self, batch: MicroBatch, logprobs: Tensor, against: Against) -> None:
        """Add a micro-batch against the sampler. For "sampler_before", call this before the first update."""
        sampled = batch.sampling_logprobs
        self._keep(against, (logprobs - sampled).abs(), batch, logprobs, sampled)

    def _keep(
        self, against: Against, scores: Tensor, batch: MicroBatch, trainer: Tensor, other: Tensor
    ) -> None:
        flat = torch.where(batch.mask, scores, -torch.inf).flatten()
        top = flat.topk(min(MOST, flat.numel()))
        width = batch.input_ids.shape[1]
        rows, at = top.indices // width, top.indices % width
        window = at[:, None] + torch.arange(-BEFORE, 1, device=at.device)
        ids = batch.input_ids[rows[:, None], window.clamp(min=0)]
        own, others = trainer.flatten()[top.indices], other.flatten()[top.indices]
        self._kept[against].append((top.values, rows, at, ids, own, others, batch.turns))

    def of(self, against: Against) -> list[FarToken]:
        """Return this rank's worst tokens of the step so far, worst first."""
        found: dict[tuple[int, TurnId, int], FarToken] = {}  # later epochs may find the same token again
        scored = [one for top in self._kept[against] for one in _named(top)]
        for _, at, token in sorted(scored, key=lambda one: -one[0]):
            found.setdefault((token.debate, token.turn, at), token)
        return list(found.values())[:MOST]


def _named(top: _Top) -> list[tuple[float, int, FarToken]]:
    """Return score, position and token for each worst token of a micro-batch.

    A nan score counts as the worst.
    """
    *columns, turns = top
    scores, rows, places, ids, own, other = (column.tolist() for column in columns)
    named: list[tuple[float, int, FarToken]] = []
    for index, score in enumerate(scores):
        if score == -torch.inf:  # the micro-batch has fewer than MOST tokens
            continue
        debate, turn = turns[rows[index]]
        before = tuple(ids[index][max(0, BEFORE - places[index]) : -1])
        far = FarToken(debate, turn, ids[index][-1], before, trainer=own[index], other=other[index])
        named.append((torch.inf if isnan(score) else score, places[index], far))
    return named
