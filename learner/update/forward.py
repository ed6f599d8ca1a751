"""Log-probabilities of the tokens that were sampled, under a causal language model, and how rows are read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from learner.types import Row
from learner.update.batches import MicroBatch, micro_batches
from learner.update.head import Head, head_logprobs
from learner.update.ranks import ALONE, Ranks, own_part
from learner.update.tally import floats
from learner.update.tree_attention import attending_in_trees

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


def without_copies(model: nn.Module, compute: torch.dtype | None) -> AbstractContextManager[None]:
    """Keep peft from copying what its adapters read to their own type where products have another.

    Forward and backward passes belong inside, as layers may be computed again in the latter.
    """
    if compute is None or not hasattr(model, "peft_config"):
        return nullcontext()
    from peft.helpers import disable_input_dtype_casting

    return disable_input_dtype_casting(model)


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


BACKEND = "inductor"
GRAPHS = 32
"""Graphs of a layer at most, after which it is plain. Rows together, padded or alone, with a gradient or
without, by an adapter or the base under it, need one each; lengths and layers of one kind share them."""


class CompiledLayers:
    """The layers of some models, which are compiled at their first pass, each kind of them once."""

    def __init__(self, *models: nn.Module | None) -> None:
        from transformers.modeling_layers import GradientCheckpointingLayer

        modules = [module for model in models if model is not None for module in model.modules()]
        self._calls: list[tuple[Any, Any]] = []
        for layer in modules:
            if isinstance(layer, GradientCheckpointingLayer):
                layer.compile(backend=BACKEND, dynamic=True, recompile_limit=GRAPHS)
                self._calls.append((layer, layer._compiled_call_impl))
                layer._compiled_call_impl = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have the layers called as compiled: the learner's passes belong inside, and no sampling."""
        for layer, call in self._calls:
            layer._compiled_call_impl = call
        try:
            with warnings.catch_warnings():  # the compiler looks at .grad of all that a layer is given
                warnings.filterwarnings("ignore", r"The \.grad attribute of a Tensor that is not a leaf")
                yield
        finally:
            for layer, _ in self._calls:
                layer._compiled_call_impl = None


@contextmanager
def reading(*models: Any, share: bool, compute: torch.dtype | None) -> Iterator[None]:
    """Let models read packed rows, and products be taken in a type; forward and backward passes go inside."""
    with ExitStack() as stack:
        for model in (one for one in models if one is not None):
            stack.enter_context(without_copies(model, compute))
            if share:
                stack.enter_context(attending_in_trees(model))
        yield


def check_sharing(
    model: Any, star: Sequence[Row], *, max_tokens: int, compute: torch.dtype | None, ranks: Ranks = ALONE
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
    away = f"is {unlike:.2g} of its size away from that of its rows apart"
    return f"the first star's gradient {away}, and rounding moves it by {noise:.2g}", found


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
