"""One step of a causal model with its cache: any transformers model, or a faster path where there is one."""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Protocol

import torch

from debate_rl.inference.qwen3 import Qwen3Steps, fits

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Steps(Protocol):
    """A causal model with its cache, one batch at a time; logits are (B, V) float32 of the last position."""

    def prefill(self, ids: torch.Tensor, pad: torch.Tensor, more: int) -> torch.Tensor:
        """Read prompts (B, P), of which the first ``pad`` (B,) are padding; ``more`` tokens may follow."""
        ...

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """Read one more token of each row (B,)."""
        ...

    def keep(self, rows: torch.Tensor) -> None:
        """Keep only these rows of the cache."""
        ...


class ModelSteps:
    """Any transformers causal LM with a key-value cache, LoRA models included."""

    def __init__(self, model: PreTrainedModel) -> None:
        from transformers import DynamicCache

        base = model.get_base_model() if hasattr(model, "peft_config") else model  # pyright: ignore[reportCallIssue]
        accepted = inspect.signature(base.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._model = model
        self._cache = DynamicCache(config=model.config)
        self._mask = torch.empty(0)
        self._position = torch.empty(0)

    def prefill(self, ids: torch.Tensor, pad: torch.Tensor, more: int) -> torch.Tensor:
        """See Steps."""
        columns = torch.arange(ids.shape[1], device=ids.device)
        self._mask = (columns >= pad[:, None]).long()
        self._position = ids.shape[1] - pad
        return self._forward(ids, (columns - pad[:, None]).clamp(min=0))

    def step(self, tokens: torch.Tensor) -> torch.Tensor:
        """See Steps."""
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
        logits = self._forward(tokens[:, None], self._position[:, None])
        self._position = self._position + 1
        return logits

    def keep(self, rows: torch.Tensor) -> None:
        """See Steps."""
        self._cache.batch_select_indices(rows)
        self._mask, self._position = self._mask[rows], self._position[rows]

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            **self._last_only,
        )
        return output.logits[:, -1].float()


def steps_for(model: PreTrainedModel) -> Steps:
    """Return the fast path of small Qwen3 models that compute in float32 on a CPU, else the model's own."""
    if torch.is_autocast_enabled(model.device.type):
        return ModelSteps(model)
    return Qwen3Steps(model) if fits(model) else ModelSteps(model)
