"""The learning rate's course over a run."""

from __future__ import annotations

import math


def lr_factor(step: int, *, warmup: int, schedule: str, total: int | None) -> float:
    """Return the share of the peak learning rate at a step (from 0), in [0, 1].

    Warm-up rises to 1 at step ``warmup - 1``; linear and cosine then fall to 0 at step ``total``.

    >>> [lr_factor(s, warmup=2, schedule="linear", total=6) for s in range(7)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    """
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant" or total is None:
        return 1.0
    progress = min((step - warmup) / max(total - warmup, 1), 1.0)
    return 1 - progress if schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
