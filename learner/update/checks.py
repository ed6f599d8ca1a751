"""What a learner refuses, and warns of, before its first step."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence

import torch
from torch import nn

from learner.update.config import LearnerConfig

log = logging.getLogger(__name__)


def check_settings(config: LearnerConfig, total_steps: int | None) -> None:
    """Refuse settings that cannot work, and warn of those known to fail; ValueError names the key."""
    if config.schedule != "constant" and total_steps is None:
        raise ValueError(
            f"learner.schedule={config.schedule!r} needs the run's number of steps (total_steps)"
        )
    if config.loss == "dr_grpo" and config.max_tokens is None:
        raise ValueError("learner.loss='dr_grpo' needs learner.max_tokens, its constant divisor; got None")
    if config.loss == "dr_grpo":
        log.info("dr_grpo: gradients are about 5 times weaker than grpo's at the same learning rate")
    if config.adam_eps < 1e-6 and config.warmup_steps == 0:
        warnings.warn(
            f"learner.adam_eps={config.adam_eps} without warm-up is known to explode; "
            "set learner.adam_eps to 1e-5 or learner.warmup_steps to 30",
            stacklevel=4,
        )
    if config.needs_reference and (config.kl, config.kl_in) == ("k1", "loss"):
        warnings.warn(
            'learner.kl="k1" as a loss holds nothing: its gradient is zero on average; '
            'choose k2 or k3, or learner.kl_in="reward"',
            stacklevel=4,
        )


def check_dtypes(parameters: Sequence[nn.Parameter]) -> None:
    """Refuse or warn of trained weights whose own rounding swallows the updates."""
    dtypes = {parameter.dtype for parameter in parameters}
    if torch.float16 in dtypes:
        raise ValueError(
            "model.dtype=float16 with full weights: small updates would be lost in rounding, and gradients "
            "cannot be scaled; set model.dtype to float32, or train an adapter (model.lora_rank)"
        )
    if torch.bfloat16 in dtypes:
        warnings.warn(
            "model.dtype=bfloat16 with full weights: updates below 1/256 of a weight are lost in rounding; "
            "set model.dtype to float32, or train an adapter (model.lora_rank)",
            stacklevel=4,
        )
