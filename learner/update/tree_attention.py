"""Exact attention in a packed tree of rows: each token sees only its own row.

One call of a flash kernel handles causal attention within all segments. One more call per level lets the
tokens that continue the segments of that level see all of them. Each call returns the logarithm of its
softmax sum; weighted by these sums, the parts are merged into the softmax over all tokens. The backward pass
of each part uses the kernel's own, given the output and the softmax sum of the whole [as in ring attention,
Liu et al. 2023, arXiv 2310.01889].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import torch
from torch import Tensor

NAME = "debate_tree"
"""The name of this attention in transformers."""
At: TypeAlias = slice | Tensor
"""Positions in the packed sequence."""


States: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Queries (1, H, U, D), keys, values, the output, and the log of the softmax sums (1, H, U)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens ``start`` to ``end`` of a packed sequence.

    The tokens from ``end`` to ``stop`` continue it and see all of it.

    ``level``: the number of segments before it on the path from the root.
    """

    start: int
    end: int
    stop: int
    level: int


@dataclass(frozen=True, slots=True)
class Runs:
    """n runs of positions.

    ``at``: all positions. ``sizes``: the lengths of the runs. ``ends`` (n + 1,) int32: their cumulative sums.
    """

    at: At
    sizes: tuple[int, ...]
    ends: Tensor

    @property
    def longest(self) -> int:
        """The length of the longest run."""
        return max(self.sizes)


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel call: each run of queries attends only to its run of keys."""

    queries: Runs
    keys: Runs
    causal: bool


class Calls(list[Call]):
    """The kernel calls of a packed sequence. In a compiled graph, ``number`` () on the CPU stands for them.

    A graph that used the calls themselves would be recompiled for each packed sequence.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__(calls)
        number = next(_NUMBERS)
        self.number = torch.tensor(number, device="cpu")
        _NUMBERED[number] = self


_NUMBERS = count()
_NUMBERED: WeakValueDictionary[int, Calls] = WeakValueDictionary()


def calls_of(segments: Sequence[Segment], device: torch.device) -> Calls:
    """Return the kernel calls of a packed sequence: one within all segments, and one for each level."""
    own = _runs([(segment.start, segment.end) for segment in segments], device)
    calls = [Call(own, own, causal=True)]
    for level in range(max(segment.level for segment in segments)):
        read = [s for s in segments if s.level == level and s.stop > s.end]
        if read:
            further = _runs([(s.end, s.stop) for s in read], device)
            calls.append(Call(further, _runs([(s.start, s.end) for s in read], device), causal=False))
    return Calls(calls)


def _runs(runs: Sequence[tuple[int, int]], device: torch.device) -> Runs:
    """Return runs of positions from their starts and ends. ``at`` is a slice if the runs are contiguous."""
    sizes = tuple(end - start for start, end in runs)
    at: At = slice(runs[0][0], runs[-1][1])
    if any(a[1] != b[0] for a, b in pairwise(runs)):
        at = torch.cat([torch.arange(*run) for run in runs]).to(device)
    return Runs(at, sizes, torch.tensor([0, *sizes]).cumsum(0).to(device, torch.int32))


@contextmanager
def attending_in_trees(model: Any) -> Iterator[None]:
    """Make a transformers model use ``tree_attention``. Run forward and backward passes inside."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, tree_attention)
    config, before = model.config, model.config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = before


def tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    tree: Sequence[Call],
    tree_number: Tensor | None = None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Return the attention output (1, U, H, D) for queries (1, H, U, D).

    The number of heads of keys and values is H or a divisor of H. ``tree_number``: the number of the calls,
    used instead of ``tree`` in a compiled layer.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if torch.is_autocast_enabled(query.device.type):
        kind = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(kind), key.to(kind), value.to(kind)
    if tree_number is not None and torch.compiler.is_compiling():
        return _opaque(query, key, value, scale, tree_number)[0].transpose(1, 2), None
    out = _TreeAttention.apply(query, key, value, scale, tree)
    return out.transpose(1, 2), None  # pyright: ignore[reportOptionalMemberAccess]


class _TreeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, scale: float, calls: Sequence[Call]
    ) -> Tensor:
        out, total = _attended(query, key, value, scale, calls)
        ctx.save_for_backward(query, key, value, out, total)
        ctx.scale, ctx.calls = scale, calls
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *_gradients(grads[0], ctx.saved_tensors, ctx.scale, ctx.calls), None, None


def _attended(
    query: Tensor, key: Tensor, value: Tensor, scale: float, calls: Sequence[Call]
) -> tuple[Tensor, Tensor]:
    """Return the output (1, H, U, D) over all calls, and the log of the softmax sums (1, H, U)."""
    own, *levels = calls
    out, total = _forward(query, key, value, own, scale)
    out = out.to(torch.promote_types(out.dtype, torch.float32))
    for call in levels:
        q, k = call.queries.at, call.keys.at
        part, part_total = _forward(query[:, :, q], key[:, :, k], value[:, :, k], call, scale)
        _merge(out, total, part, part_total, q)
    return out.to(query.dtype), total


def _gradients(grad: Tensor, states: States, scale: float, calls: Sequence[Call]) -> list[Tensor]:
    """Return the gradients of queries, keys and values over all calls."""
    own, *levels = calls
    query, key, value, out, total = states
    grad = grad.contiguous()
    sums = [g.to(torch.promote_types(g.dtype, torch.float32)) for g in _backward(grad, states, own, scale)]
    for call in levels:
        q, k = call.queries.at, call.keys.at
        read = query[:, :, q], key[:, :, k], value[:, :, k], out[:, :, q], total[:, :, q]
        parts = _backward(grad[:, :, q], read, call, scale)
        for whole, part, places in zip(sums, parts, (q, k, k), strict=True):
            whole[:, :, places] += part
    return [g.to(query.dtype) for g in sums]


@torch.library.custom_op(
    "debate_rl::tree_attention",
    mutates_args=(),
    schema="(Tensor query, Tensor key, Tensor value, float scale, Tensor number) -> (Tensor, Tensor)",
)
def _opaque(query: Tensor, key: Tensor, value: Tensor, scale: float, number: Tensor) -> tuple[Tensor, Tensor]:
    """Run ``_attended`` as one operation that is opaque to a compiler."""
    out, total = _attended(query, key, value, scale, _NUMBERED[int(number)])
    return out.contiguous(), total.contiguous()


@torch.library.custom_op(
    "debate_rl::tree_attention_backward",
    mutates_args=(),
    schema="(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor out, Tensor total, float scale, "
    "Tensor number) -> Tensor[]",
)
def _opaque_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    total: Tensor,
    scale: float,
    number: Tensor,
) -> list[Tensor]:
    calls = _NUMBERED[int(number)]
    return [g.contiguous() for g in _gradients(grad, (query, key, value, out, total), scale, calls)]


@_opaque.register_fake
def _(query: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    wide = torch.promote_types(query.dtype, torch.float32)
    return query.new_empty(query.shape), query.new_empty(query.shape[:3], dtype=wide)


@_opaque_backward.register_fake
def _(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, *_: Any) -> list[Tensor]:
    return [one.new_empty(one.shape) for one in (query, key, value)]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    query, key, value, ctx.scale, number = inputs
    ctx.save_for_backward(query, key, value, *output, number)


def _backward_of_opaque(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, number = ctx.saved_tensors
    return *_opaque_backward(grad, *tensors, ctx.scale, number), None, None


_opaque.register_autograd(_backward_of_opaque, setup_context=_save)


def _merge(out: Tensor, total: Tensor, part: Tensor, part_total: Tensor, places: At) -> None:
    """Merge a part into the output (1, H, U, D) and log sums (1, H, U), at the positions of its queries."""
    before = total[:, :, places]
    after = torch.logaddexp(before, part_total)
    kept = out[:, :, places] * (before - after).exp().unsqueeze(-1)
    out[:, :, places] = kept + part * (part_total - after).exp().unsqueeze(-1)
    total[:, :, places] = after


def _forward(query: Tensor, key: Tensor, value: Tensor, call: Call, scale: float) -> tuple[Tensor, Tensor]:
    """Return the output (1, H, n, D) and the log of the softmax sums (1, H, n), float32 or wider."""
    if query.is_cuda:
        return _cuda_forward(query, key, value, call, scale)
    runs = query.split(call.queries.sizes, 2), key.split(call.keys.sizes, 2), value.split(call.keys.sizes, 2)
    parts = [
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, call.causal, scale=scale)
        for q, k, v in zip(*runs, strict=True)
    ]
    outs, totals = zip(*parts, strict=True)
    return torch.cat(outs, 2), torch.cat(totals, 2)


def _backward(grad: Tensor, states: States, call: Call, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of one call's queries, keys and values, given output and sums over all calls."""
    query, key, value, out, total = states
    if query.is_cuda:
        return _cuda_backward(grad, states, call, scale)
    by_query = (t.split(call.queries.sizes, 2) for t in (grad, query, out, total))
    by_key = (t.split(call.keys.sizes, 2) for t in (key, value))
    parts = [
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            g, q, k, v, o, t, 0.0, call.causal, scale=scale
        )
        for g, q, o, t, k, v in zip(*by_query, *by_key, strict=True)
    ]
    grad_query, grad_key, grad_value = (torch.cat(gradients, 2) for gradients in zip(*parts, strict=True))
    return grad_query, grad_key, grad_value


def _cuda_forward(
    query: Tensor, key: Tensor, value: Tensor, call: Call, scale: float
) -> tuple[Tensor, Tensor]:
    read = map(_by_token, (query, key, value))
    out, total, *_ = torch.ops.aten._flash_attention_forward(*read, *_lengths(call), False, scale=scale)
    return out.transpose(0, 1).unsqueeze(0), total.unsqueeze(0)


def _cuda_backward(grad: Tensor, states: States, call: Call, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value, out, total = states
    state = torch.zeros(2, dtype=torch.uint64, device=query.device)  # dropout state, unused without dropout
    q, k, v = torch.ops.aten._flash_attention_backward(
        *map(_by_token, (grad, query, key, value, out)),
        total[0].contiguous(),
        *_lengths(call),
        state,
        torch.empty(0, device=query.device),
        scale=scale,
    )
    return q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None]


def _lengths(call: Call) -> tuple[Any, ...]:
    """Return the arguments of a call for both GPU kernels, without dropout."""
    queries, keys = call.queries, call.keys
    return queries.ends, keys.ends, queries.longest, keys.longest, 0.0, call.causal


def _by_token(states: Tensor) -> Tensor:
    """Return states of shape (1, H, n, D) as (n, H, D)."""
    return states[0].transpose(0, 1).contiguous()
