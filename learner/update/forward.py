"""Log-probabilities of sampled tokens under a causal language model, and the ways in which rows are read."""

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
"""Configuration fields of models that change the logits after the head. Their logits come from the model."""
CHECKPOINTING = {"use_reentrant": False, "preserve_rng_state": False}
"""Settings for recomputing layers. Nothing in the layers is random, so no generator state is kept."""
READ = "read_batch"
"""The name of the method by which a model with sharded tensors runs ``read_batch`` on complete tensors."""


def compute_type(model: nn.Module, setting: str, *, on_gpu: bool | None = None) -> torch.dtype | None:
    """Return the data type of matrix products, or None for the weights' type.

    "auto" chooses the base's type for a float32 adapter, because otherwise activations would be copied to
    float32 for each of its matrices. It chooses bfloat16 for float32 weights on a GPU, which has tensor cores
    for it. Weights packed into integers are ignored. ``on_gpu`` None uses the model's device.
    """
    if setting != "auto":
        return torch.bfloat16 if setting == "bfloat16" else None
    types = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    if len(types) > 1:
        return min(types, key=lambda one: one.itemsize)
    on_gpu = next(model.parameters()).is_cuda if on_gpu is None else on_gpu
    return torch.bfloat16 if on_gpu and types == {torch.float32} else None


def without_copies(model: nn.Module, compute: torch.dtype | None) -> AbstractContextManager[None]:
    """Stop peft from copying the inputs of its adapters to the adapters' type if products have another type.

    Run forward and backward passes inside, because layers may be recomputed in the backward pass.
    """
    if compute is None or not hasattr(model, "peft_config"):
        return nullcontext()
    from peft.helpers import disable_input_dtype_casting

    return disable_input_dtype_casting(model)


def action_logprobs(
    model: Any, batch: MicroBatch, *, entropy_gradient: bool = False, compute: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities (B, T), 0 outside the mask, and the n masked tokens' entropies (n,), in nats.

    Both are at each row's temperature. The entropies have a gradient only with ``entropy_gradient``. Token t
    is predicted at position t - 1, and the head runs only on such positions. Rows are padded on the right, so
    with causal attention no real position sees padding. No attention mask is passed, which allows the fast
    attention kernels. ``compute`` is the type of products (``compute_type``); logits are always float32.
    """
    device = batch.input_ids.device.type
    with torch.autocast(device, compute, enabled=compute is not None):
        if hasattr(model, READ):
            return getattr(model, READ)(batch, entropy_gradient)
        return read_batch(model, batch, entropy_gradient)


def read_batch(model: Any, batch: MicroBatch, entropy_gradient: bool) -> tuple[Tensor, Tensor]:
    """Return the result of ``action_logprobs``, without setting the type of products."""
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
    """Return the head's input, (B, T, H), and the head. For unusual heads: the logits and an identity."""
    read: dict[str, Any] = {"input_ids": batch.input_ids[:, :-1], "use_cache": False}
    if (tree := batch.tree) is not None:
        read |= {"input_ids": tree.input_ids, "position_ids": tree.positions}
        read |= {"tree": tree.calls, "tree_number": tree.calls.number}
    if any(getattr(base.config, name, None) for name in RESHAPED_LOGITS):
        return base(**read).logits, nn.Identity()
    return base.base_model(**read).last_hidden_state, base.get_output_embeddings()


def train_only_checkpointed_layers(model: nn.Module) -> None:
    """Put only checkpointed layers in training mode, and keep dropout off as in sampling.

    With dropout the trainer would have other probabilities than the sampler. Layers drop activations only in
    training mode, and the modules within a layer have a mode of their own.
    """
    for module in model.modules():
        module.training = getattr(module, "gradient_checkpointing", False)


BACKEND = "inductor"
GRAPHS = 32
"""The maximum number of compiled graphs per layer; beyond it the layer runs uncompiled.

Shared, padded or single rows, with or without gradient, with an adapter or its base, each need a graph.
Rows of any length and layers of one kind share graphs.
"""


class CompiledLayers:
    """The layers of some models, compiled at their first pass; each kind of layer is compiled once."""

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
        """Call the layers as compiled within this context.

        Run the learner's passes inside, but no sampling.
        """
        for layer, call in self._calls:
            layer._compiled_call_impl = call
        try:
            with warnings.catch_warnings():  # the compiler reads .grad of all inputs of a layer
                warnings.filterwarnings("ignore", r"The \.grad attribute of a Tensor that is not a leaf")
                yield
        finally:
            for layer, _ in self._calls:
                layer._compiled_call_impl = None


@contextmanager
def reading(*models: Any, share: bool, compute: torch.dtype | None) -> Iterator[None]:
    """Let models read packed rows and multiply in the type ``compute``. Run all passes inside."""
    with ExitStack() as stack:
        for model in (one for one in models if one is not None):
            stack.enter_context(without_copies(model, compute))
            if share:
                stack.enter_context(attending_in_trees(model))
        yield


def check_sharing(
    model: Any, star: Sequence[Row], *, max_tokens: int, compute: torch.dtype | None, ranks: Ranks = ALONE
) -> tuple[str, dict[str, float]]:
    """Check whether the rows of a star may be read together; return the reason if not, and measurements.

    The reason is "" if they may. ``sharing/difference``: the distance between the gradients of rows read
    together and separately, as a fraction of the latter's norm. ``sharing/noise``: the same distance between
    padded rows and rows read one by one, which is only rounding. The bound is the larger of four times the
    noise and 1/1000, or 1/20 if products are rounded to 16 bits. All ``ranks`` call this together and get the
    same result. OutOfMemoryError is not caught.
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
    away = f"by {unlike:.2g} of its size from that of the same rows read separately"
    return f"the gradient of rows read together differs {away} (rounding alone: {noise:.2g})", found


def _norms(
    model: Any,
    star: Sequence[Row],
    compute: torch.dtype | None,
    ranks: Ranks,
    first: tuple[bool, int],
    second: tuple[bool, int],
) -> tuple[float, float]:
    """Return the gradient's norm for one way of reading rows, and the norm of its difference from another.

    A way is whether shared prefixes are read once, and the tokens per pass. The gradient is of the sum of
    log-probabilities, each with the sign of its advantage. The second gradient is subtracted from the first
    in place, so that only one gradient is stored. All gradients are cleared at the end.
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
