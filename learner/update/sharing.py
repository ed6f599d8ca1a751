"""How a step's rows are read: what they share once, if one star has shown it right, or each of them whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from learner.types import Row
from learner.update.batches import micro_batches
from learner.update.forward import action_logprobs, train_only_checkpointed_layers, without_copies
from learner.update.ranks import ALONE, Ranks, own_part
from learner.update.tree_attention import attending_in_trees


@contextmanager
def reading(*models: Any, share: bool, compute: torch.dtype | None) -> Iterator[None]:
    """Let models read packed rows, and products be taken in a type; forward and backward passes go inside."""
    with ExitStack() as stack:
        for model in models:
            if model is not None:
                stack.enter_context(without_copies(model, compute))
            if model is not None and share:
                stack.enter_context(attending_in_trees(model))
        yield


def wrong_sharing(
    model: Any,
    star: Sequence[Row],
    *,
    max_tokens: int,
    compute: torch.dtype | None,
    ranks: Ranks = ALONE,
) -> str:
    """Return how the gradient of a star differs from that of its rows apart; "" where it does not.

    The bound is 1/1000 of its size, and 1/20 where products are rounded to 16 bits. All ``ranks`` call this
    together and come to the same.
    """
    try:
        shared, plain = (_gradient(model, star, max_tokens, compute, share=share) for share in (True, False))
    except (RuntimeError, TypeError, ValueError) as error:
        return f"does not work with this model ({type(error).__name__}: {str(error).splitlines()[0]})"
    away = sum(ranks.gathered(sum(float((a - b).square().sum()) for a, b in zip(shared, plain, strict=True))))
    whole = sum(ranks.gathered(sum(float(b.square().sum()) for b in plain)))
    half = compute is not None or any(parameter.element_size() < 4 for parameter in model.parameters())
    unlike = math.sqrt(away / whole) if whole else 0.0
    if unlike <= (0.05 if half else 1e-3):
        return ""
    return f"the first star's gradient is {unlike:.2g} of its size away from that of its rows apart"


def _gradient(
    model: Any, star: Sequence[Row], max_tokens: int, compute: torch.dtype | None, *, share: bool
) -> list[Tensor]:
    """Return the gradient of the rows' summed log-probabilities, one tensor for each trained parameter."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    train_only_checkpointed_layers(model)
    with reading(model, share=share, compute=compute):
        for batch in micro_batches(star, max_tokens, device=parameters[0].device, share=share):
            action_logprobs(model, batch, compute=compute)[0].sum().backward()
    model.eval()
    gradients = [own_part(p.grad if p.grad is not None else torch.zeros_like(p)) for p in parameters]
    for parameter in parameters:
        parameter.grad = None
    return gradients
