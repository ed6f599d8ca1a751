"""Log-probabilities and entropies of tokens from the head's input, without storing all logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Head: TypeAlias = Callable[[Tensor], Tensor]

TILE = {"cpu": 2**22, "cuda": 2**26}
"""Logits stored at a time: 16 MiB in float32 fit into a CPU's cache, 256 MiB keep a GPU busy."""


def head_logprobs(
    head: Head, features: Tensor, targets: Tensor, temperature: Tensor, *, entropy_gradient: bool = False
) -> tuple[Tensor, Tensor]:
    """Return log softmax(head(features) / temperature) at the targets (n,), and the entropy (n,), in nats.

    ``features`` (n, H), ``temperature`` (n,). The logits of a large head are computed tile by tile, and
    recomputed in the backward pass.
    """
    width = getattr(head, "out_features", features.shape[-1])
    size = max(TILE.get(features.device.type, 2**24) // width, 1)
    if isinstance(head, nn.Linear) and head.bias is None:
        product = _product_type(features, head.weight)
        if len(features) > size or _widens(features, product):
            columns = targets[:, None], temperature[:, None]
            size = max(min(size, len(features)), 1)
            with torch.autocast(features.device.type, enabled=False):
                return _TiledHead.apply(features, head.weight, *columns, product, size, entropy_gradient)  # pyright: ignore[reportReturnType]
    if len(features) <= size:
        return token_logprobs(head, features, targets, temperature, entropy_gradient)
    parts = [
        checkpoint(token_logprobs, head, *part, entropy_gradient, use_reentrant=False)
        for part in zip(features.split(size), targets.split(size), temperature.split(size), strict=True)
    ]
    logprobs, entropies = zip(*parts, strict=True)
    return torch.cat(logprobs), torch.cat(entropies)


def token_logprobs(
    head: Head, features: Tensor, targets: Tensor, temperature: Tensor, entropy_gradient: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the result of ``head_logprobs``, from all logits at once."""
    logits = wide_logits(head, features) / temperature[:, None]
    table = logits.log_softmax(dim=-1)
    entropy = entropy_of(table if entropy_gradient else table.detach())
    return table.gather(1, targets[:, None]).squeeze(1), entropy


def wide_logits(head: Head, features: Tensor) -> Tensor:
    """Return the head's output (n, V) in float32 or wider, never rounded to the type of its products.

    With 150,000 words, rounding a logit to bfloat16 changes a log-probability by .005 on average.
    """
    if not isinstance(head, nn.Linear) or head.bias is not None:
        logits = head(features)
        return logits.to(torch.promote_types(logits.dtype, torch.float32))
    product = _product_type(features, head.weight)
    wide = torch.promote_types(product, torch.float32)
    with torch.autocast(features.device.type, enabled=False):
        return features.to(product).to(wide) @ head.weight.to(product).to(wide).t()


def _product_type(features: Tensor, weight: Tensor) -> torch.dtype:
    kind = features.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def _widens(matrix: Tensor, product: torch.dtype) -> bool:
    """Return whether 16-bit products can have float32 results without copies, as on a GPU.

    Torch 2.13 has no derivative for such a product (``out_dtype``), so autograd must never record one.
    """
    return matrix.is_cuda and product.itemsize < 4


def _operand(matrix: Tensor, product: torch.dtype) -> Tensor:
    """Return a matrix rounded to the type of products.

    On a CPU it is widened again, because its kernels keep the type.
    """
    rounded = matrix.to(product)
    return rounded if product.itemsize >= 4 or _widens(matrix, product) else rounded.float()


def _add_product(total: Tensor, a: Tensor, b: Tensor, *, beta: int = 1) -> Tensor:
    """Replace the total by beta * total + a @ b, and return it."""
    wide: dict[str, Any] = {"out_dtype": torch.float32} if a.element_size() < 4 else {}
    return torch.addmm(total, a, b, beta=beta, out=total, **wide)


class _TiledHead(torch.autograd.Function):
    """Computes logits tile by tile, and again in the backward pass. Only softmax sums are kept.

    With p = softmax(z / t), the gradient of log p_i with respect to z_j is ([i = j] - p_j) / t, and that of
    the entropy h is -p_j (log p_j + h) / t.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        targets: Tensor,
        temperature: Tensor,
        product: torch.dtype,
        size: int,
        entropy_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        tiles = _Tiles(features, weight, temperature, product, size)
        logprobs, entropy, log_sums = (tiles.buffer.new_empty(len(features), 1) for _ in range(3))
        scratch = torch.empty_like(tiles.buffer)
        for at in tiles.places:
            logits = tiles.logits(at)
            top = logits.amax(1, keepdim=True)
            powers = torch.exp(logits.sub_(top), out=scratch[: len(logits)])
            total = powers.sum(1, keepdim=True)
            logprobs[at] = logits.gather(1, targets[at]) - total.log()
            entropy[at] = total.log() - torch.linalg.vecdot(powers, logits)[:, None] / total
            log_sums[at] = top + total.log()
        ctx.save_for_backward(features, weight, targets, temperature, entropy, log_sums)
        ctx.product, ctx.size, ctx.entropy_gradient = product, size, entropy_gradient
        result = logprobs.squeeze(1), entropy.squeeze(1)
        if not entropy_gradient:
            ctx.mark_non_differentiable(result[1])
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, targets, temperature, entropy, log_sums = ctx.saved_tensors
        by_logprob, by_entropy = (grad[:, None] / temperature for grad in grads)
        tiles = _Tiles(features, weight, temperature, ctx.product, ctx.size)
        grad_features = tiles.buffer.new_empty(features.shape)
        grad_weight = tiles.buffer.new_zeros(weight.shape) if ctx.needs_input_grad[1] else None
        for at in tiles.places:
            table = tiles.logits(at).sub_(log_sums[at])
            factor = by_logprob[at]
            if ctx.entropy_gradient:
                factor = factor + by_entropy[at] * (table + entropy[at])
            grad = table.exp_().mul_(-factor).scatter_add_(1, targets[at], by_logprob[at])
            grad = _operand(grad, ctx.product)
            _add_product(grad_features[at], grad, tiles.weight, beta=0)
            if grad_weight is not None:
                _add_product(grad_weight, grad.t(), tiles.read[at])
        grad_weight = None if grad_weight is None else grad_weight.to(weight.dtype)
        return grad_features.to(features.dtype), grad_weight, *(None,) * 5


class _Tiles:
    """The logits of n tokens, ``size`` tokens at a time, all in one buffer."""

    def __init__(
        self, features: Tensor, weight: Tensor, temperature: Tensor, product: torch.dtype, size: int
    ) -> None:
        self.read, self.weight = _operand(features, product), _operand(weight, product)
        self.temperature = temperature
        wide = torch.promote_types(product, torch.float32)
        self.buffer = features.new_empty(size, len(weight), dtype=wide)
        self.places = [slice(start, start + size) for start in range(0, len(features), size)]

    def logits(self, at: slice) -> Tensor:
        """Return the logits of some tokens, divided by their temperature. The next call overwrites them."""
        read = self.read[at]
        return _add_product(self.buffer[: len(read)], read, self.weight.t(), beta=0).div_(
            self.temperature[at]
        )


def entropy_of(table: Tensor) -> Tensor:
    """Return -sum p log p (n,) in nats from log-probabilities (n, V). Terms with p = 0 are 0 with gradient 0.

    >>> round(entropy_of(torch.tensor([[0.5, 0.5, 0.0]]).log()).item(), 4)
    0.6931
    """
    probabilities = table.exp()
    return -(probabilities * table.masked_fill(probabilities == 0, 0.0)).sum(dim=-1)
