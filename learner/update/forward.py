"""Log-probabilities of the tokens that were sampled, under a causal language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from learner.update.batches import MicroBatch

HEAD_ELEMENTS = 2**26
"""Logits held at a time (256 MiB in float32): a vocabulary of 150,000 would not fit otherwise."""

RESHAPED_LOGITS = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""Configuration fields of models that change the logits after the head; those take the plain path."""


def action_logprobs(
    model: Any, batch: MicroBatch, *, entropy_gradient: bool = False
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities (B, T), 0 outside the mask, and the n masked tokens' entropies (n,), in nats.

    Both at each row's temperature; the entropies carry a gradient only when asked for. Token t is read off
    position t - 1; the head runs on those positions only. Rows are padded on the right, so causal attention
    alone keeps padding out of every real position and no attention mask is passed: that keeps the fast
    attention kernels.
    """
    base = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's wrapper
    where = batch.predictors
    targets = batch.input_ids[:, 1:].flatten()[where]
    temperature = batch.temperature.expand_as(batch.mask)[:, 1:].flatten()[where]
    features, head = _features_and_head(base, batch.input_ids[:, :-1])
    chosen = features.flatten(0, 1).index_select(0, where)
    logprobs, entropy = _in_chunks(head, chosen, targets, temperature, entropy_gradient)
    flat = logprobs.new_zeros(batch.mask[:, 1:].numel()).scatter(0, where, logprobs)
    return nn.functional.pad(flat.view(len(batch.mask), -1), (1, 0)), entropy


def _features_and_head(base: Any, input_ids: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return what the head reads, (B, T, H), and the head; whole logits and identity for unusual heads."""
    if any(getattr(base.config, name, None) for name in RESHAPED_LOGITS):
        return base(input_ids=input_ids, use_cache=False).logits, nn.Identity()
    hidden = base.base_model(input_ids=input_ids, use_cache=False).last_hidden_state
    return hidden, base.get_output_embeddings()


def _in_chunks(
    head: Callable[[Tensor], Tensor],
    features: Tensor,
    targets: Tensor,
    temperature: Tensor,
    entropy_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """Return log-probability and entropy of each token; large heads are recomputed in the backward pass."""
    width = getattr(head, "out_features", features.shape[-1])
    size = max(HEAD_ELEMENTS // width, 1)
    if len(features) <= size:
        return token_logprobs(head, features, targets, temperature, entropy_gradient)
    parts = [
        checkpoint(token_logprobs, head, *part, entropy_gradient, use_reentrant=False)
        for part in zip(features.split(size), targets.split(size), temperature.split(size), strict=True)
    ]
    logprobs, entropies = zip(*parts, strict=True)
    return torch.cat(logprobs), torch.cat(entropies)


def token_logprobs(
    head: Callable[[Tensor], Tensor],
    features: Tensor,
    targets: Tensor,
    temperature: Tensor,
    entropy_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return log softmax(head(features) / temperature) at the targets (n,) and the entropy (n,)."""
    logits = head(features)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature[:, None]
    table = logits.log_softmax(dim=-1)
    entropy = entropy_of(table if entropy_gradient else table.detach())
    return table.gather(1, targets[:, None]).squeeze(1), entropy


def entropy_of(table: Tensor) -> Tensor:
    """Return -sum p log p (n,) in nats from log-probabilities (n, V); where p is 0, 0 with gradient 0.

    >>> round(entropy_of(torch.tensor([[0.5, 0.5, 0.0]]).log()).item(), 4)
    0.6931
    """
    probabilities = table.exp()
    return -(probabilities * table.masked_fill(probabilities == 0, 0.0)).sum(dim=-1)
