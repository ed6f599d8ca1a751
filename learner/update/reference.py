"""The reference model of the KL: the model before training, or at the last refresh."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from learner.update.ranks import trained, whole


class Reference:
    """The reference of the KL, with the weights after ``step`` steps.

    For full weights, ``module`` is a frozen copy, given or made here. For an adapter, ``module`` is None and
    the reference is the model itself: with the adapter off, or, if training began with an adapter that was
    already trained, with that adapter's initial weights. After a refresh it has the weights of that step.
    """

    def __init__(self, model: nn.Module, module: nn.Module | None = None) -> None:
        self.step = 0
        self._model = model
        self._weights: dict[str, Tensor] = {}
        if module is None and not hasattr(model, "disable_adapter"):
            module = copy.deepcopy(model).requires_grad_(False).eval()
        self.module = module
        self.begin()

    @torch.no_grad()
    def begin(self) -> None:
        """If the adapter was already trained, keep its current weights as the reference."""
        own = trained(self._model)
        if self.module is None and any("lora_B" in name and whole(own[name]).any() for name in own):
            self._take(own)

    @torch.no_grad()
    def refresh(self, step: int) -> None:
        """Take the model's current weights, after ``step`` steps, as the reference."""
        self._take(trained(self._model))
        self.step = step

    @contextmanager
    def model(self) -> Iterator[nn.Module]:
        """Yield the model with the reference's weights, for passes without gradients."""
        adapter: Any = self._model
        if self.module is not None:
            yield self.module
        elif not self._weights:
            with adapter.disable_adapter():
                yield adapter
        else:
            present = {name: weights.clone() for name, weights in trained(adapter).items()}
            _copy(self._weights, trained(adapter))
            try:
                yield adapter
            finally:
                _copy(present, trained(adapter))

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs.

        Before a refresh it is only the step, without weights.
        """
        weights = self._weights if self.module is None else _of(self.module, trained(self._model))
        return {"step": self.step, "weights": dict(weights) if self.step else {}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state from ``state_dict``."""
        self.step = int(state_dict["step"])
        if self.step:
            self._take(state_dict["weights"])

    def _take(self, weights: Mapping[str, Tensor]) -> None:
        own = trained(self._model)
        if weights.keys() != own.keys():
            raise ValueError("the reference must have the same parameters as the trained weights")
        if self.module is None:
            self._weights = {name: weights[name].to(own[name], copy=True) for name in own}
        else:
            _copy(weights, _of(self.module, own))


def _of(module: nn.Module, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in module.named_parameters() if name in names}


@torch.no_grad()
def _copy(weights: Mapping[str, Tensor], into: Mapping[str, Tensor]) -> None:
    for name, values in into.items():
        values.copy_(weights[name])
