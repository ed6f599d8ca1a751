"""Policy-gradient losses: pure functions from LossInputs to LossOutputs, one file each.

To add one: write ``my_loss(inputs, config) -> LossOutputs`` and name it "package.module:my_loss", or
put it in a file here and in ``LOSSES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias, cast

from debate.settings import load_function, require_call
from learner.losses.cispo import cispo
from learner.losses.dapo import dapo
from learner.losses.dppo import dppo_kl, dppo_tv
from learner.losses.dr_grpo import dr_grpo
from learner.losses.grpo import grpo
from learner.losses.gspo import gspo
from learner.losses.importance_sampling import importance_sampling
from learner.losses.ppo import ppo
from learner.losses.types import LossConfig, LossInputs, LossOutputs, Totals, sequence_mean, token_mean

Loss: TypeAlias = Callable[[LossInputs, LossConfig], LossOutputs]

_ALL = (grpo, dr_grpo, dapo, gspo, cispo, ppo, dppo_tv, dppo_kl, importance_sampling)
LOSSES: Mapping[str, Loss] = MappingProxyType({loss.__name__: loss for loss in _ALL})

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
    """Return a loss by its name or by its path "package.module:function"; ValueError when there is none.

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
