"""What an engine reports after it got new weights: replies, and digests of the weights it computes with.

``debate_rl.training.check_engine_weights`` compares the report with the model that learns.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch is only partly typed: strict rules stop at its borders.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from debate.types import Completion

if TYPE_CHECKING:
    import torch

Digest: TypeAlias = tuple[int, int]
"""Two sums modulo 2^64 over a matrix. A matrix of zeros has (0, 0)."""
CHUNK = 2**24
"""Number of elements summed at a time."""


@dataclass(frozen=True, slots=True)
class EngineReport:
    """An engine's replies to some requests, and what they were computed with. ``dtype``: the engine's type.

    ``cached_tokens``: tokens of the first prompt that came from the prefix cache; it must be 0 right after an
    update. ``rounded_head``: whether logits are rounded to 16 bits. ``digests``: those of the weights that
    the engine can report, by their names in the model that learns. Names of an adapter's weights end with
    lora_A and lora_B.
    """

    dtype: str
    completions: tuple[Completion, ...]
    cached_tokens: int
    rounded_head: bool
    digests: dict[str, Digest] = field(default_factory=dict)


def digest(values: torch.Tensor, dtype: torch.dtype) -> Digest:
    """Return two sums over a matrix's bits in type ``dtype``, weighted by column number and by row number.

    The sums depend on where the bits are, but not on trailing rows and columns of zeros, nor on the sign of
    a zero.

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
    column, row = (
        int((sums * sums.new_ones(len(sums)).cumsum(0)).sum()) for sums in (by_column, torch.cat(by_row))
    )
    return column, row
