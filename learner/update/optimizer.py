"""The learner's AdamW optimizer, the schedule of its learning rate, and the size of its last update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from learner.update.config import LearnerConfig
from learner.update.ranks import ALONE, Ranks, own_part

PIECE = 2**24
"""The number of elements of a parameter processed at a time, to avoid copies of large parameters."""


def adamw(parameters: Sequence[nn.Parameter], config: LearnerConfig) -> torch.optim.AdamW:
    """Return the optimizer, fused on a GPU. It never uses torch's foreach, which copies all weights once."""
    return torch.optim.AdamW(parameters, lr=config.lr, **settings_of(parameters, config))


def settings_of(parameters: Sequence[nn.Parameter], config: LearnerConfig) -> dict[str, Any]:
    """Return the settings that depend on the configuration and the device, not on a saved state."""
    how = {"weight_decay": 0.0, "fused": parameters[0].is_cuda, "foreach": False}
    return {"betas": config.betas, "eps": adam_eps(parameters, config), **how}


def adam_eps(parameters: Sequence[nn.Parameter], config: LearnerConfig) -> float:
    """Return AdamW's epsilon. The default is smaller for float32 weights with warm-up."""
    if config.adam_eps is not None:
        return config.adam_eps
    wide = all(parameter.element_size() >= 4 for parameter in parameters)
    return 1e-8 if wide and config.warmup_steps else 1e-5


def lr_factor(step: int, *, warmup: int, schedule: str, total: int | None) -> float:
    """Return the fraction of the peak learning rate at a step (from 0), in [0, 1].

    Warm-up rises to 1 at step ``warmup - 1``. Linear and cosine then fall to 0 at step ``total``.

    >>> [lr_factor(s, warmup=2, schedule="linear", total=6) for s in range(7)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    """
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant" or total is None:
        return 1.0
    progress = min((step - warmup) / max(total - warmup, 1), 1.0)
    return 1 - progress if schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2


@torch.no_grad()
def update_per_lr(optimizer: torch.optim.AdamW, ranks: Ranks = ALONE) -> Tensor:
    """Return the root mean square of the last update over all trained numbers, divided by lr.

    The update is m / (sqrt(v) + eps), with both moments bias-corrected and without weight decay.
    """
    norms: list[Tensor] = []
    numbers = 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            numbers += parameter.numel()
            if state := optimizer.state.get(parameter):
                norms += _norms(state, group["betas"], group["eps"])
    norm = torch.stack(norms).norm() if norms else torch.zeros(())
    if ranks.count > 1:  # the norm over all ranks, from the norm of each rank's part
        norm = torch.tensor(ranks.gathered(float(norm)), device=norm.device).norm()
    return norm / numbers**0.5


def _norms(state: dict[str, Any], betas: tuple[float, float], eps: float) -> list[Tensor]:
    """Return the norm of each piece of a parameter's update."""
    first, second = (1 - beta ** state["step"] for beta in betas)
    moments = (own_part(state[name]).flatten().split(PIECE) for name in ("exp_avg", "exp_avg_sq"))
    return [(m / first / ((v / second).sqrt_() + eps)).norm() for m, v in zip(*moments, strict=True)]
