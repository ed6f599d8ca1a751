"""Saved weights into a model that is already built: an adapter's, or all of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor


def load_weights(model: Any, folder: Path) -> None:
    """Load what ``save_pretrained`` wrote, in place; ValueError where names or shapes do not match."""
    if hasattr(model, "peft_config"):
        _load_adapter(model, folder)
    else:
        _load_all(model, folder)


def _load_adapter(model: Any, folder: Path) -> None:
    from peft import set_peft_model_state_dict

    path = folder / "adapter_model.safetensors"
    if not path.is_file():
        raise ValueError("it holds full weights, this run trains an adapter")
    saved = load_file(path)
    _refuse_other_rank(model, saved)
    result = set_peft_model_state_dict(model, saved)
    missing = [name for name in result.missing_keys if "lora_" in name]
    if missing or result.unexpected_keys:
        name = (missing or result.unexpected_keys)[0]
        raise ValueError(f"the adapter has other layers than this run's: {name}")


def _refuse_other_rank(model: Any, saved: Mapping[str, Tensor]) -> None:
    ranks = {tensor.shape[0] for name, tensor in saved.items() if "lora_A" in name}
    own = {config.r for config in model.peft_config.values()}
    if ranks and len(own) == 1 and ranks != own:
        shown = ", ".join(map(str, sorted(ranks)))
        raise ValueError(f"the adapter has rank {shown}, this run's has {own.pop()} (model.lora_rank)")


def _load_all(model: Any, folder: Path) -> None:
    """Copy by name; architectures that save under other names go through from_pretrained."""
    saved: dict[str, Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        saved |= load_file(path)
    if not saved:
        raise ValueError("it holds an adapter, this run trains full weights")
    own = model.state_dict()
    if saved.keys() - own.keys():
        saved = _under_own_names(model, folder)
    tied = set(getattr(model, "all_tied_weights_keys", None) or {})
    missing = own.keys() - saved.keys() - tied
    other = [name for name in saved if name not in own or own[name].shape != saved[name].shape]
    if missing or other:
        raise ValueError(f"the weights are of another model: {sorted([*missing, *other])[0]}")
    model.load_state_dict(saved, strict=False)
    model.tie_weights()


def _under_own_names(model: Any, folder: Path) -> dict[str, Tensor]:
    """Return the weights by the names in the model; ValueError where from_pretrained would make some up."""
    loaded, info = type(model).from_pretrained(folder, dtype=model.dtype, output_loading_info=True)
    other = sorted([*info["missing_keys"], *info["unexpected_keys"]])
    if other:
        raise ValueError(f"the weights are of another model: {other[0]}")
    return loaded.state_dict()
