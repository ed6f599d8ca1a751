"""The processes that learn together, "ranks" as torch numbers them, and what each gets of the work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ranks:
    """How many processes learn together, and which of them this is; one alone needs no process group."""

    index: int = 0
    count: int = 1

    @classmethod
    def launched(cls) -> Ranks:
        """Return what torchrun set for this process; without torchrun it is alone.

        Others set RANK and WORLD_SIZE too, for programs of their own.
        """
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return cls()
        return cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    def gathered(self, value: T) -> list[T]:
        """Return the value of every rank, in their order; all of them call this together."""
        if self.count == 1:
            return [value]
        import torch.distributed as dist

        values = [value] * self.count
        dist.all_gather_object(values, value)
        return values


ALONE = Ranks()


def trained(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that are trained, by name."""
    return {name: value for name, value in model.named_parameters() if value.requires_grad}


def own_part(tensor: Tensor) -> Tensor:
    """Return what this rank holds of a tensor: its share of one that is cut (``learner.update.shards``)."""
    cut: Any = tensor
    return cut.to_local() if hasattr(cut, "to_local") else tensor


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor with the shares of all ranks, which call this together."""
    cut: Any = tensor
    return cut.full_tensor() if hasattr(cut, "full_tensor") else tensor


def deal(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Return the places that each of ``count`` ranks gets: the largest first, each to the one with least.

    >>> deal([5, 9, 4, 1], 2)
    [[1, 3], [0, 2]]
    """
    dealt: list[list[int]] = [[] for _ in range(count)]
    held = [0] * count
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        rank = held.index(min(held))
        dealt[rank].append(place)
        held[rank] += sizes[place]
    return [sorted(places) for places in dealt]
