"""The processes that learn together, "ranks" in torch's terms, and their parts of the work."""

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
    """The number of processes that learn together, and the index of this one.

    A single process needs no process group.
    """

    index: int = 0
    count: int = 1

    @classmethod
    def launched(cls) -> Ranks:
        """Return the ranks that torchrun set for this process; without torchrun, a single process.

        RANK and WORLD_SIZE are not enough, because other launchers set them too.
        """
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return cls()
        return cls(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))

    def gathered(self, value: T) -> list[T]:
        """Return the values of all ranks, in order. All ranks must call this together."""
        if self.count == 1:
            return [value]
        import torch.distributed as dist

        values = [value] * self.count
        dist.all_gather_object(values, value)
        return values


ALONE = Ranks()


def trained(model: Any) -> dict[str, Any]:
    """Return the trained parameters of a model, by name."""
    return {name: value for name, value in model.named_parameters() if value.requires_grad}


def own_part(tensor: Tensor) -> Tensor:
    """Return this rank's part of a tensor: its shard, or all of a tensor that is not sharded."""
    cut: Any = tensor
    return cut.to_local() if hasattr(cut, "to_local") else tensor


def whole(tensor: Tensor) -> Tensor:
    """Return the complete tensor from the shards of all ranks. All ranks must call this together."""
    cut: Any = tensor
    return cut.full_tensor() if hasattr(cut, "full_tensor") else tensor


def deal(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Return the indices of the items for each of ``count`` ranks.

    Items are distributed largest first, each to the rank with the smallest total.

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
