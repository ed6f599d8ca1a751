"""A fast forward pass for small Qwen3 models on a CPU, where overhead costs more than arithmetic.

It equals transformers' Qwen3ForCausalLM (tested to 1e-5). Projections of one input are one product that
includes the norm's weights, the last layer computes the last position only, the cache is allocated once for
each layer, and queries are grouped by key head. Weights are read for every batch, so training in place has
an effect at once.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard, cast

import torch
from torch.nn.functional import embedding, rms_norm, scaled_dot_product_attention, silu

if TYPE_CHECKING:
    from transformers import PreTrainedModel, Qwen3ForCausalLM
    from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer

_MAX_PARAMETERS = 20_000_000  # beyond this the products dominate and the model's own forward is as fast


def fits(model: PreTrainedModel) -> TypeGuard[Qwen3ForCausalLM]:
    """Return whether this model is a plain small Qwen3 in float32 on a CPU."""
    config = model.config
    return (
        type(model).__name__ == "Qwen3ForCausalLM"
        and model.device.type == "cpu"
        and model.dtype == torch.float32
        and model.num_parameters() <= _MAX_PARAMETERS
        and not config.attention_bias
        and config.hidden_act == "silu"
        and config.rope_parameters["rope_type"] == "default"
        and set(config.layer_types) == {"full_attention"}
        and all(
            type(module) is torch.nn.Linear
            for name, module in model.named_modules()
            if name.endswith(("_proj", "lm_head"))
        )
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """One block's weights, transposed for ``x @ w``. C hidden, H query heads, K key heads, D head size."""

    queries: torch.Tensor  # (C, H D)
    keys_values: torch.Tensor  # (C, 2 K D)
    query_norm: torch.Tensor  # (D,)
    key_norm: torch.Tensor  # (D,)
    out: torch.Tensor  # (H D, C)
    gate_up: torch.Tensor  # (C, 2 F)
    down: torch.Tensor  # (F, C)


class Qwen3Steps:
    """A small Qwen3 model and its cache, with the methods of ``debate_rl.inference.sampler.ModelSteps``."""

    def __init__(self, model: Qwen3ForCausalLM) -> None:
        config = model.config
        self._heads = config.num_attention_heads
        self._kv = config.num_key_value_heads or self._heads
        self._size, self._eps = config.head_dim, config.rms_norm_eps
        inner = model.model
        self._layers = [_layer(cast("Qwen3DecoderLayer", block)) for block in inner.layers]
        self._embed = inner.embed_tokens.weight
        self._head = _folded([model.lm_head], inner.norm.weight)
        self._frequencies = inner.rotary_emb.inv_freq
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._visible = self._cos = self._sin = self._position = torch.empty(0)
        self._length = 0

    def prefill(self, ids: torch.Tensor, pad: torch.Tensor, more: int) -> torch.Tensor:
        """Process prompts, as ``ModelSteps.prefill`` does."""
        rows, length = ids.shape
        shape = (rows, self._kv, length + more, self._size)
        self._keys = [torch.empty(shape) for _ in self._layers]
        self._values = [torch.empty(shape) for _ in self._layers]
        columns = torch.arange(length + more)
        self._visible = columns >= pad[:, None]
        angles = columns[:, None] * self._frequencies.repeat(2)
        self._cos, self._sin = angles.cos(), angles.sin()
        self._length, self._position = 0, length - pad
        causal = columns[:length, None] >= columns[:length]
        # A padding position sees itself alone: it needs some value, and no other position sees it.
        mask = (causal & self._visible[:, None, :length]) | torch.eye(length, dtype=torch.bool)
        return self._forward(ids, (columns[:length] - pad[:, None]).clamp(min=0), mask[:, None])

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Process one more token of each row (B,)."""
        mask = self._visible[:, None, None, : self._length + 1]
        logits = self._forward(tokens[:, None], self._position[:, None], mask)
        self._position = self._position + 1
        return logits

    def keep(self, rows: torch.Tensor) -> None:
        """Keep only these rows of the cache."""
        self._keys = [keys[rows] for keys in self._keys]
        self._values = [values[rows] for values in self._values]
        self._visible, self._position = self._visible[rows], self._position[rows]

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits (B, V) of the last of the new positions (B, L); ``mask`` (B, 1, L, seen)."""
        hidden = embedding(ids, self._embed)
        turn = self._cos[positions][:, :, None], self._sin[positions][:, :, None]
        for index, layer in enumerate(self._layers):
            normed = self._normed(hidden)
            self._remember(index, normed @ layer.keys_values, layer.key_norm, turn)
            if index == len(self._layers) - 1:  # the earlier positions of the last layer are not read
                hidden, normed, mask = hidden[:, -1:], normed[:, -1:], mask[:, :, -1:]
                turn = turn[0][:, -1:], turn[1][:, -1:]
            queries = self._heads_of(normed @ layer.queries, layer.query_norm, turn)
            hidden = hidden + self._attend(index, queries, mask) @ layer.out
            gate, up = (self._normed(hidden) @ layer.gate_up).chunk(2, dim=-1)
            hidden = hidden + (silu(gate) * up) @ layer.down
        self._length += ids.shape[1]
        return self._normed(hidden[:, -1]) @ self._head

    def _normed(self, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, x.shape[-1:], None, self._eps)

    def _heads_of(
        self, x: torch.Tensor, norm: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        """Return x (B, L, heads * D) as heads (B, heads, L, D), normalized and rotated by position."""
        split = x.view(*x.shape[:2], -1, self._size)
        return _rotated(self._normed(split) * norm, turn).transpose(1, 2)

    def _remember(
        self, index: int, new: torch.Tensor, norm: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]
    ) -> None:
        """Put the new keys and values (B, L, 2 K D) into the layer's cache."""
        keys, values = new.chunk(2, dim=-1)
        columns = slice(self._length, self._length + new.shape[1])
        self._keys[index][:, :, columns] = self._heads_of(keys, norm, turn)
        self._values[index][:, :, columns] = values.view(*values.shape[:2], -1, self._size).transpose(1, 2)

    def _attend(self, index: int, queries: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the attention's output (B, L, H D) for queries (B, H, L, D)."""
        rows, _, length, _ = queries.shape
        seen = mask.shape[-1]
        keys, values = self._keys[index][:, :, :seen], self._values[index][:, :, :seen]
        if length == 1:  # heads that share keys become the positions of one product
            grouped = queries.reshape(rows, self._kv, -1, self._size)
            return scaled_dot_product_attention(grouped, keys, values, attn_mask=mask).reshape(rows, 1, -1)
        output = scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=True)
        return output.transpose(1, 2).reshape(rows, length, -1)


def _rotated(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Return x (B, L, heads, D) rotated by its position (RoPE, arXiv 2104.09864; transformers' halves)."""
    cos, sin = turn
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _layer(block: Qwen3DecoderLayer) -> _Layer:
    attention, mlp = block.self_attn, block.mlp
    before, between = block.input_layernorm.weight, block.post_attention_layernorm.weight
    return _Layer(
        queries=_folded([attention.q_proj], before),
        keys_values=_folded([attention.k_proj, attention.v_proj], before),
        query_norm=attention.q_norm.weight,
        key_norm=attention.k_norm.weight,
        out=attention.o_proj.weight.t().contiguous(),
        gate_up=_folded([mlp.gate_proj, mlp.up_proj], between),
        down=mlp.down_proj.weight.t().contiguous(),
    )


def _folded(projections: list[torch.nn.Linear], norm: torch.Tensor) -> torch.Tensor:
    """Concatenate the projections into (C, outputs), multiplied by the weights (C,) of the norm before."""
    return (torch.cat([projection.weight for projection in projections]) * norm).t().contiguous()
