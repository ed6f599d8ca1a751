"""The memory that learning takes on a GPU, compared once with the estimate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from debate_rl.training.estimate import learning_bytes, size
from learner.types import Row
from learner.update.learner import Learner

if TYPE_CHECKING:
    from debate_rl.training.session import Session

AWAY = 0.15
"""Share of what was measured by which the estimate may be away from it."""


def gpu_of(model: Any) -> Any:
    """Return what counts the bytes on the model's GPU; None on a CPU, which does not count them."""
    return torch.cuda if next(model.parameters()).is_cuda else None


def checked_step(session: Session, rows: Sequence[Row]) -> dict[str, float]:
    """Learn from the rows; once, when Adam's moments are there, the memory is compared with the estimate."""
    learner, gpu = session.learner, gpu_of(session.model)
    if gpu is None or session.memory_checked or not rows or not isinstance(learner, Learner):
        return learner.step(rows)
    if not learner.optimizer.state:
        return learner.step(rows)
    session.memory_checked, device = True, session.model.device
    try:
        estimated = learning_bytes(session.model, rows, learner.config)
    except Exception as error:  # it is advice: no model that cannot be counted ends a run
        why = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        warnings.warn(f"what learning takes is not compared with the estimate: {why}", stacklevel=3)
        return learner.step(rows)
    gpu.reset_peak_memory_stats(device)
    held = gpu.memory_allocated(device)
    metrics = learner.step(rows)
    measured = gpu.max_memory_allocated(device) - held
    if abs(estimated - measured) > AWAY * measured:
        warnings.warn(
            f"learning took {size(measured)} of the GPU where {size(estimated)} were estimated; what "
            "debate train --plan says of this model may be as far away",
            stacklevel=3,
        )
    return metrics | {"memory/learning": measured / 2**30, "memory/learning_estimated": estimated / 2**30}
