"""A fast forward pass with a cache for Llama, Qwen2 and Qwen3 models in float32 on a CPU.

It equals the model's own forward in transformers (tested to 1e-5). The cache is allocated once per layer.
Queries are grouped by key head, so keys and values are not copied for each query head. Prompts with common
prefixes can be read as a packed tree. In small models overhead costs more than arithmetic: there, projections
of one input are one product that includes the norm's weights. Weights are read for every batch, so training
in place has an effect at once.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

from learner.update.batches import Packed
from learner.update.tree_attention import Calls, calls_of, tree_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

KINDS = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
ROPES = ("default", "linear", "llama3")
"""Types of rotary embeddings whose frequencies do not depend on the length."""
SMALL = 20_000_000
"""Up to this number of parameters, overhead costs more than arithmetic."""


def fits(model: PreTrainedModel) -> bool:
    """Return whether ``CpuSteps`` can run this model: a plain model of ``KINDS`` in float32 on a CPU."""
    config = model.config
    return (
        type(model).__name__ in KINDS
        and model.device.type == "cpu"
        and model.dtype == torch.float32
        and config.hidden_act == "silu"
        and config.rope_parameters["rope_type"] in ROPES
        and set(getattr(config, "layer_types", None) or ("full_attention",)) == {"full_attention"}
        and all(
            type(module) is torch.nn.Linear
            for name, module in model.named_modules()
            if name.endswith(("_proj", "lm_head"))
        )
    )


class _Projection(NamedTuple):
    """Projections of one input: a matrix (outputs, C) and a bias for each, or one matrix for all."""

    matrices: tuple[tuple[torch.Tensor, torch.Tensor | None], ...]
    sizes: tuple[int, ...]

    def __call__(self, x: torch.Tensor) -> Sequence[torch.Tensor]:
        if len(self.matrices) == len(self.sizes):
            return [linear(x, *matrix) for matrix in self.matrices]
        return linear(x, *self.matrices[0]).split(self.sizes, dim=-1)


class _Layer(NamedTuple):
    """One block's weights. A norm's weight is None if the projections contain it, or if there is no norm."""

    before: torch.Tensor | None
    queries: _Projection
    keys_values: _Projection
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    out: _Projection
    between: torch.Tensor | None
    gate_up: _Projection
    down: _Projection


class CpuSteps:
    """A model and its cache, with the methods of ``debate_rl.inference.sampler.ModelSteps``."""

    def __init__(self, model: PreTrainedModel) -> None:
        config: Any = model.config
        inner: Any = model.base_model
        self._heads = config.num_attention_heads
        self._kv = config.num_key_value_heads or self._heads
        self._size = getattr(config, "head_dim", None) or config.hidden_size // self._heads
        self._eps = config.rms_norm_eps
        biased = any(module.bias is not None for module in model.modules() if type(module) is torch.nn.Linear)
        self.is_small = model.num_parameters() <= SMALL and not biased
        self._layers = [_layer(block, fold=self.is_small) for block in inner.layers]
        self._embed = inner.embed_tokens.weight
        self._head, self._norm = _after(inner.norm, [model.get_output_embeddings()], fold=self.is_small)
        self._frequencies = inner.rotary_emb.inv_freq
        self._scale = inner.rotary_emb.attention_scaling
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._visible = self._cos = self._sin = self._position = torch.empty(0)
        self._length = 0

    def prefill(self, ids: torch.Tensor, pad: torch.Tensor, more: int) -> torch.Tensor:
        """Process prompts, as ``ModelSteps.prefill`` does."""
        rows, length = ids.shape
        self._begin(rows, length + more, length + more)
        columns = torch.arange(length + more)
        self._visible, self._position = columns >= pad[:, None], length - pad
        causal = columns[:length, None] >= columns[:length]
        # A padding position sees itself alone: it needs some value, and no other position sees it.
        mask = (causal & self._visible[:, None, :length]) | torch.eye(length, dtype=torch.bool)
        hidden = self._forward(ids, (columns[:length] - pad[:, None]).clamp(min=0), mask=mask[:, None])
        return self._logits(hidden[:, -1])

    def prefill_packed(self, packed: Packed, more: int) -> torch.Tensor:
        """Process the packed rows, and return the logits (B, V) after each. ``more`` tokens may follow."""
        lengths = torch.tensor([len(path) for path in packed.paths])
        longest = int(lengths.max())
        self._begin(1, len(packed.tokens), longest + more)
        positions = torch.from_numpy(packed.positions)[None]
        calls = calls_of(packed.segments, torch.device("cpu"))
        hidden = self._forward(torch.from_numpy(packed.tokens)[None], positions, calls=calls)
        places = torch.zeros(len(lengths), longest, dtype=torch.long)
        for row, path in zip(places, packed.paths, strict=True):
            row[longest - len(path) :] = torch.from_numpy(path)
        for cache in (self._keys, self._values):
            for index, read in enumerate(cache):
                whole = read.new_empty(len(lengths), self._kv, longest + more, self._size)
                whole[:, :, :longest] = read[0].transpose(0, 1)[places].transpose(1, 2)
                cache[index] = whole
        self._visible = torch.arange(longest + more) >= (longest - lengths)[:, None]
        self._length, self._position = longest, lengths
        return self._logits(hidden[0, places[:, -1]])

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Process one more token of each row (B,)."""
        mask = self._visible[:, None, None, : self._length + 1]
        hidden = self._forward(tokens[:, None], self._position[:, None], mask=mask)
        self._position = self._position + 1
        return self._logits(hidden[:, -1])

    def keep(self, rows: torch.Tensor) -> None:
        """Keep only these rows of the cache."""
        self._keys = [keys[rows] for keys in self._keys]
        self._values = [values[rows] for values in self._values]
        self._visible, self._position = self._visible[rows], self._position[rows]

    def _begin(self, rows: int, room: int, positions: int) -> None:
        """Allocate a cache of ``room`` tokens for each row, and the rotations of ``positions`` positions."""
        shape = (rows, self._kv, room, self._size)
        self._keys = [torch.empty(shape) for _ in self._layers]
        self._values = [torch.empty(shape) for _ in self._layers]
        angles = torch.arange(positions)[:, None] * self._frequencies.repeat(2)
        self._cos, self._sin = angles.cos() * self._scale, angles.sin() * self._scale
        self._length = 0

    def _forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        *,
        mask: torch.Tensor | None = None,
        calls: Calls | None = None,
    ) -> torch.Tensor:
        """Return the last norm's output for new tokens (B, L): (B, 1, C) of the last position.

        With ``calls``, those of a packed sequence, (1, L, C) of all positions. ``mask`` (B, 1, L, seen).
        """
        hidden = embedding(ids, self._embed)
        turn = self._cos[positions][:, :, None], self._sin[positions][:, :, None]
        for index, layer in enumerate(self._layers):
            normed = self._normed(hidden, layer.before)
            self._remember(index, layer.keys_values(normed), layer.key_norm, turn)
            if mask is not None and index == len(self._layers) - 1:
                # the earlier positions of the last layer are not read
                hidden, normed, mask = hidden[:, -1:], normed[:, -1:], mask[:, :, -1:]
                turn = turn[0][:, -1:], turn[1][:, -1:]
            queries = self._heads_of(layer.queries(normed)[0], layer.query_norm, turn)
            hidden = hidden + layer.out(self._attend(index, queries, mask, calls))[0]
            gate, up = layer.gate_up(self._normed(hidden, layer.between))
            hidden = hidden + layer.down(silu(gate) * up)[0]
        self._length += ids.shape[1]
        return self._normed(hidden, self._norm)

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self._head(hidden)[0]

    def _normed(self, x: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
        return rms_norm(x, x.shape[-1:], weight, self._eps)

    def _heads_of(
        self, x: torch.Tensor, norm: torch.Tensor | None, turn: tuple[torch.Tensor, torch.Tensor]
    ) -> torch.Tensor:
        """Return x (B, L, heads * D) as heads (B, heads, L, D), normalized if asked, rotated by position."""
        split = x.view(*x.shape[:2], -1, self._size)
        if norm is not None:
            split = self._normed(split) * norm
        return _rotated(split, turn).transpose(1, 2)

    def _remember(
        self,
        index: int,
        new: Sequence[torch.Tensor],
        norm: torch.Tensor | None,
        turn: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        """Put the new keys and values, each (B, L, K D), into the layer's cache."""
        keys, values = new
        columns = slice(self._length, self._length + keys.shape[1])
        self._keys[index][:, :, columns] = self._heads_of(keys, norm, turn)
        self._values[index][:, :, columns] = values.view(*values.shape[:2], -1, self._size).transpose(1, 2)

    def _attend(
        self, index: int, queries: torch.Tensor, mask: torch.Tensor | None, calls: Calls | None
    ) -> torch.Tensor:
        """Return the attention's output (B, L, H D) for queries (B, H, L, D)."""
        rows, _, length, _ = queries.shape
        if mask is None:
            output, _ = tree_attention(
                None, queries, self._keys[index], self._values[index], None, tree=calls or ()
            )
            return output.reshape(rows, length, -1)
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


def _layer(block: Any, *, fold: bool) -> _Layer:
    attention, mlp = block.self_attn, block.mlp
    queries, before = _after(block.input_layernorm, [attention.q_proj], fold=fold)
    keys_values, _ = _after(block.input_layernorm, [attention.k_proj, attention.v_proj], fold=fold)
    gate_up, between = _after(block.post_attention_layernorm, [mlp.gate_proj, mlp.up_proj], fold=fold)
    norms = (getattr(getattr(attention, name, None), "weight", None) for name in ("q_norm", "k_norm"))
    query_norm, key_norm = norms
    return _Layer(
        before=before,
        queries=queries,
        keys_values=keys_values,
        query_norm=query_norm,
        key_norm=key_norm,
        out=_plain([attention.o_proj], transpose=fold),
        between=between,
        gate_up=gate_up,
        down=_plain([mlp.down_proj], transpose=fold),
    )


def _after(norm: Any, modules: Sequence[Any], *, fold: bool) -> tuple[_Projection, torch.Tensor | None]:
    """Return the projections after a norm, and the norm's weights (C,) if they are not folded into them."""
    if not fold:
        return _plain(modules), norm.weight
    joined = torch.cat([module.weight for module in modules]) * norm.weight
    return _Projection(((_by_input(joined), None),), tuple(len(module.weight) for module in modules)), None


def _plain(modules: Sequence[Any], *, transpose: bool = False) -> _Projection:
    matrices = [(module.weight, module.bias) for module in modules]
    if transpose:
        matrices = [(_by_input(weight), bias) for weight, bias in matrices]
    return _Projection(tuple(matrices), tuple(len(weight) for weight, _ in matrices))


def _by_input(matrix: torch.Tensor) -> torch.Tensor:
    """Return a matrix (outputs, C) stored by its columns, which makes products with few rows faster."""
    return matrix.t().contiguous().t()
