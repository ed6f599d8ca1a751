"""Policy-gradient losses: pure functions from LossInputs to LossOutputs, one file each.

To add a loss, write ``my_loss(inputs, config) -> LossOutputs``. Name it in the configuration as
"package.module:my_loss", or put it in a file here and add it to ``LOSS_FILES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from debate.settings import LoadedTable, load_function, require_call
from learner.losses.types import LossConfig, LossInputs, LossOutputs, Totals, sequence_mean, token_mean
from learner.update.config import LOSS_FILES

Loss: TypeAlias = Callable[[LossInputs, LossConfig], LossOutputs]

LOSSES: Mapping[str, Loss] = LoadedTable(
    {name: f"learner.losses.{file}:{name}" for name, file in LOSS_FILES.items()}
)
"""The losses by name. Each file is loaded when its loss is first used."""

__all__ = [
    "LOSSES",
    "Loss",
    "LossConfig",
    "LossInputs",
    "LossOutputs",
    "Totals",
    "find_loss",
    "sequence_mean",
    "token_mean",
]


def find_loss(name: str) -> Loss:
    """Return a loss by its name or its path "package.module:function". ValueError if there is none.

    >>> find_loss("grpo").__name__
    'grpo'
    """
    if name in LOSSES:
        return LOSSES[name]
    if ":" not in name:
        raise ValueError(f'unknown loss {name!r}; valid: {", ".join(LOSSES)}, or "module:function"')
    loss = load_function(name, key="learner.loss")
    require_call(loss, f"learner.loss: {name!r}", None, None)
    return cast(Loss, loss)
