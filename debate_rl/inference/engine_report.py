"""What an engine says of itself after new weights: replies, and digests of the weights it computes with."""

# pyright: standard, reportMissingTypeStubs=false
# torch is only partly typed: strict rules stop at its borders.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from debate.types import Completion

if TYPE_CHECKING:
    import torch

Digest: TypeAlias = tuple[int, int]
"""Two sums modulo 2^64 over a matrix; (0, 0) of nothing but zeros."""
CHUNK = 2**24
"""Elements that are looked at at a time."""


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The answers to some requests, and what they were computed with; ``dtype`` is the engine's type.

    ``cached_tokens``: tokens of the first prompt that came from the prefix cache, 0 right after an update.
    ``rounded_head``: whether logits are rounded to 16 bits. ``digests``: of weights by their names in the
    model that learns, as far as the engine can say; an adapter's end with lora_A and lora_B.
    """

    dtype: str
    completions: tuple[Completion, ...]
    cached_tokens: int
    rounded_head: bool
    digests: dict[str, Digest] = field(default_factory=dict)


def digest(values: torch.Tensor, dtype: torch.dtype) -> Digest:
    """Return the sums of a matrix's bits in this type, each times its column, and each times its row.

    The same bits in another place give other sums, rows and columns of zeros at the end the same ones, and
    the sign of a zero does not count.

    >>> import torch
    >>> digest(torch.tensor([[1, 0], [2, 0]], dtype=torch.float16), torch.float16)  # bits 15360, 16384
    (31744, 48128)
    """
    import torch

    kind = {2: torch.int16, 4: torch.int32}[dtype.itemsize]
    matrix = values.detach().reshape(-1, values.shape[-1])
    by_column = torch.zeros(matrix.shape[1], dtype=torch.int64, device=matrix.device)
    by_row: list[torch.Tensor] = []
    for part in matrix.split(max(CHUNK // matrix.shape[1], 1)):
        bits = (part.to(dtype) + 0.0).view(kind)
        by_column += bits.sum(0, dtype=torch.int64)
        by_row.append(bits.sum(1, dtype=torch.int64))
    column, row = (_placed(sums) for sums in (by_column, torch.cat(by_row)))
    return column, row


def _placed(sums: torch.Tensor) -> int:
    """Return sum_k k * sums[k] modulo 2^64 for integers (K,), with k counted from 1."""
    places = sums.new_ones(len(sums)).cumsum(0)
    return int((sums * places).sum())
