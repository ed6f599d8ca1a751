"""Log-probabilities of the tokens that were sampled, under a causal language model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from learner.update.batches import MicroBatch
from learner.update.head import Head, head_logprobs

RESHAPED_LOGITS = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""Configuration fields of models that change the logits after the head; those take the plain path."""


CHECKPOINTING = {"use_reentrant": False, "preserve_rng_state": False}
"""How layers are computed again: nothing in them is random, so no generator's state is kept for it."""
READ = "read_batch"
"""The method of a model whose tensors are cut over ranks, which has them whole within: ``read_batch``."""


def compute_type(model: nn.Module, setting: str, *, on_gpu: bool | None = None) -> torch.dtype | None:
    """Return the type in which matrices are multiplied; None for the weights' own.

    "auto": the base's type under an adapter of float32, whose activations would else be copied to float32 for
    each of its matrices; bfloat16 for float32 weights on a GPU, as its tensor cores have it. Weights that
    are packed into integers have no say. ``on_gpu`` None is where the model is.
    """
    if setting != "auto":
        return torch.bfloat16 if setting == "bfloat16" else None
    types = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    if len(types) > 1:
        return min(types, key=lambda one: one.itemsize)
    on_gpu = next(model.parameters()).is_cuda if on_gpu is None else on_gpu
    return torch.bfloat16 if on_gpu and types == {torch.float32} else None


@contextmanager
def without_copies(model: nn.Module, compute: torch.dtype | None) -> Iterator[None]:
    """Keep peft from copying what its adapters read to their own type where products have another.

    Forward and backward passes belong inside, as layers may be computed again in the latter.
    """
    if compute is not None and hasattr(model, "peft_config"):
        from peft.helpers import disable_input_dtype_casting

        with disable_input_dtype_casting(model):
            yield
    else:
        yield


def action_logprobs(
    model: Any, batch: MicroBatch, *, entropy_gradient: bool = False, compute: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities (B, T), 0 outside the mask, and the n masked tokens' entropies (n,), in nats.

    Both at each row's temperature; the entropies carry a gradient only when asked for. Token t is read off
    position t - 1; the head runs on those positions only. Rows are padded on the right, so causal attention
    alone keeps padding out of every real position and no attention mask is passed: that keeps the fast
    attention kernels. ``compute`` is the type of products (``compute_type``); logits are float32 in any case.
    """
    device = batch.input_ids.device.type
    with torch.autocast(device, compute, enabled=compute is not None):
        if hasattr(model, READ):
            return getattr(model, READ)(batch, entropy_gradient)
        return read_batch(model, batch, entropy_gradient)


def read_batch(model: Any, batch: MicroBatch, entropy_gradient: bool) -> tuple[Tensor, Tensor]:
    """Return what ``action_logprobs`` does, in the type of the weights."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's wrapper
    where = batch.predictors
    targets = batch.input_ids[:, 1:].flatten()[where]
    temperature = batch.temperature.expand_as(batch.mask)[:, 1:].flatten()[where]
    features, head = _features_and_head(base, batch)
    chosen = features.flatten(0, 1).index_select(0, where if batch.tree is None else batch.tree.sources)
    logprobs, entropy = head_logprobs(head, chosen, targets, temperature, entropy_gradient=entropy_gradient)
    flat = logprobs.new_zeros(batch.mask[:, 1:].numel()).scatter(0, where, logprobs)
    return nn.functional.pad(flat.view(len(batch.mask), -1), (1, 0)), entropy


def _features_and_head(base: Any, batch: MicroBatch) -> tuple[Tensor, Head]:
    """Return what the head reads, (B, T, H), and the head; whole logits and identity for unusual heads."""
    read: dict[str, Any] = {"input_ids": batch.input_ids[:, :-1], "use_cache": False}
    if (tree := batch.tree) is not None:
        read |= {"input_ids": tree.input_ids, "position_ids": tree.positions}
        read |= {"tree": tree.calls, "tree_number": tree.calls.number}
    if any(getattr(base.config, name, None) for name in RESHAPED_LOGITS):
        return base(**read).logits, nn.Identity()
    return base.base_model(**read).last_hidden_state, base.get_output_embeddings()


def train_only_checkpointed_layers(model: nn.Module) -> None:
    """Leave dropout off, as in sampling: with it on the trainer would have other probabilities.

    Layers keep no activations in training mode alone, and what lies within a layer has a mode of its own.
    """
    for module in model.modules():
        module.training = getattr(module, "gradient_checkpointing", False)
