"""Derive seeds, one integer per purpose, by name, so that no draw depends on scheduling."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from debate.types import Problem

SERVER_SEEDS = 2**31
"""Every server and engine accepts seeds below this number."""


def derive_seed(*parts: str | int) -> int:
    """Return a seed in [0, 2**63) that depends only on the parts, and on each of them.

    >>> derive_seed(7, "problem", 3) == derive_seed(7, "problem", 3)
    True
    >>> derive_seed(7, "a", 1) == derive_seed(7, "a", 2)
    False
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1


def debate_seed(seed: int, number: int, problem: Problem) -> int:
    """Return the seed of the debate with this number, as in ``run_debates``."""
    return derive_seed(seed, "debate", number, problem.id)
