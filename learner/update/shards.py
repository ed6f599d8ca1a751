"""A model whose tensors are sharded over the ranks [FSDP2: ``torch.distributed.fsdp.fully_shard``].

Each rank holds a part of every tensor, and gathers a whole layer only while it computes with it. Parameter
names do not change.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import Shard, distribute_tensor
from torch.utils._pytree import tree_map_only
from transformers.modeling_layers import GradientCheckpointingLayer

from learner.update.forward import READ, read_batch
from learner.update.ranks import whole


def shard(model: nn.Module, mesh: DeviceMesh, compute: torch.dtype | None) -> None:
    """Shard a model in place, layer by layer, so that no device ever holds all of it.

    The layers' weights are sent in the type of products, and their gradients are added in float32. Weights
    outside the layers (embeddings, last norm, head) keep their type. Gradients are sums over the ranks.
    """
    travels = MixedPrecisionPolicy(
        param_dtype=compute, reduce_dtype=compute and torch.float32, cast_forward_inputs=False
    )
    stays = MixedPrecisionPolicy(cast_forward_inputs=False)
    for layer in [one for one in model.modules() if isinstance(one, GradientCheckpointingLayer)]:
        fully_shard(layer, mesh=mesh, mp_policy=travels, reshard_after_forward=True)
    fully_shard(model, mesh=mesh, mp_policy=stays, reshard_after_forward=True)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    setattr(model, READ, MethodType(read_batch, model))
    register_fsdp_forward_method(model, READ)


def gathered(tree: Any) -> Any:
    """Return nested containers with whole tensors on the CPU of the first rank, and unchanged on other ranks.

    Tensors are gathered one at a time, so no device ever holds two complete tensors.
    """
    first = dist.get_rank() == 0

    def fetched(tensor: Tensor) -> Tensor:
        full = whole(tensor)
        return full.to("cpu", copy=True) if first else tensor

    return tree_map_only(Tensor, fetched, tree)


def outline(tree: Any) -> Any:
    """Return nested containers with tensors that have shape and type but no data, as input for ``cut``."""
    return tree_map_only(Tensor, lambda tensor: tensor.to("meta") if tensor.dim() else tensor, tree)


def cut(tree: Any, mesh: DeviceMesh) -> Any:
    """Return nested containers with the first rank's tensors sharded over all ranks.

    Other ranks pass an outline.

    A tensor without dimensions is not a weight, and stays whole on every rank.
    """

    def share(tensor: Tensor) -> Tensor:
        if not tensor.dim():
            return tensor
        full = (
            torch.empty_like(tensor, device=mesh.device_type)
            if tensor.is_meta
            else tensor.to(mesh.device_type)
        )
        return distribute_tensor(full, mesh, [Shard(0)])

    return tree_map_only(Tensor, share, tree)
