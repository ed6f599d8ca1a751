"""Decoder layers that are compiled where they learn [``torch.compile``], and plain where they sample."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

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
