"""How a step's rows are read: what they share once, if one star has shown it right, or each of them whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from learner.types import Row
from learner.update.batches import micro_batches
from learner.update.forward import action_logprobs, train_only_checkpointed_layers, without_copies
from learner.update.ranks import ALONE, Ranks, own_part
from learner.update.tally import floats
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


def check_sharing(
    model: Any,
    star: Sequence[Row],
    *,
    max_tokens: int,
    compute: torch.dtype | None,
    ranks: Ranks = ALONE,
) -> tuple[str, dict[str, float]]:
    """Return why the rows of a star must not be read together, "" where they may, and what was measured.

    ``sharing/difference``: how far the gradient of the rows together is from that of the rows apart, as a
    share of the latter's norm; ``sharing/noise``: how far that of padded rows is from that of the rows one by
    one, which is rounding alone. The bound is 1/1000, 1/20 where products are rounded to 16 bits, or four
    times the noise. All ``ranks`` call this together and come to the same. OutOfMemoryError passes.
    """
    together, padded, single = (True, max_tokens), (False, max_tokens), (False, 1)
    try:
        size, noise = _norms(model, star, compute, ranks, padded, single)
        _, away = _norms(model, star, compute, ranks, together, padded)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        return f"does not work with this model ({type(error).__name__}: {str(error).splitlines()[0]})", {}
    half = compute is not None or any(parameter.element_size() < 4 for parameter in model.parameters())
    unlike, noise = (part / size if size else 0.0 for part in (away, noise))
    found = {"sharing/difference": unlike, "sharing/noise": noise}
    if unlike <= max(0.05 if half else 1e-3, 4 * noise):
        return "", found
    return (
        f"the first star's gradient is {unlike:.2g} of its size away from that of its rows apart, and "
        f"rounding moves it by {noise:.2g}"
    ), found


def _norms(
    model: Any,
    star: Sequence[Row],
    compute: torch.dtype | None,
    ranks: Ranks,
    first: tuple[bool, int],
    second: tuple[bool, int],
) -> tuple[float, float]:
    """Return the norm of the gradient when the rows are read in one way, and of its difference from another.

    A way: whether what rows share is read once, and the tokens of a pass. What has a gradient is the sum of
    log-probabilities, each with the sign of its advantage. The second gradient is taken off the first in
    place, so a model's gradients are held once. None is left behind.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    norms: list[float] = []
    try:
        train_only_checkpointed_layers(model)
        for sign, (share, tokens) in ((1.0, first), (-1.0, second)):
            with reading(model, share=share, compute=compute):
                for batch in micro_batches(star, tokens, device=parameters[0].device, share=share):
                    signs = torch.where(batch.advantages < 0, -sign, sign)
                    (action_logprobs(model, batch, compute=compute)[0] * signs).sum().backward()
            own = [own_part(p.grad).norm().square() for p in parameters if p.grad is not None]
            norms.append(math.sqrt(sum(ranks.gathered(sum(floats(own))))))
    finally:
        model.eval()
        for parameter in parameters:
            parameter.grad = None
    return norms[0], norms[1]
