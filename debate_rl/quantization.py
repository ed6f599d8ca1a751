"""Quantize the frozen base of an adapter to 8 or 4 bits, by bitsandbytes on a CUDA GPU, and count its bytes.

LLM.int8 [arXiv 2208.07339] keeps a byte per weight and a float32 scale per output. NF4 with double
quantization [QLoRA, arXiv 2305.14314] keeps half a byte per weight, a one-byte scale per 64 weights, and a
float32 per 256 scales. Embeddings, the output layer and norms are not quantized.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from debate_rl.config.models import ModelConfig

if TYPE_CHECKING:
    import torch

BLOCK = 64
"""Number of weights that share a scale in 4 bits."""
SCALES = 256
"""Number of 4-bit scales that share a scale of their own."""


def refuse_unquantizable(config: ModelConfig, device: str) -> None:
    """Raise ValueError if the model is to be quantized on a device that is not a CUDA GPU.

    Raises ModuleNotFoundError if bitsandbytes, which quantizes, is missing.
    """
    if config.quantization == "none":
        return
    if device != "cuda":
        raise ValueError(
            f'model.quantization = "{config.quantization}": bitsandbytes needs a CUDA GPU, but the model '
            f'would be on {device}; set model.quantization = "none"'
        )
    if find_spec("bitsandbytes") is None:
        raise ModuleNotFoundError("No module named 'bitsandbytes'", name="bitsandbytes")


def loading_settings(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Return the settings with which transformers loads a quantized base; empty without quantization."""
    if config.quantization == "none":
        return {}
    from transformers import BitsAndBytesConfig

    how: dict[str, Any] = {"load_in_8bit": True}
    if config.quantization == "4bit":
        nf4 = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
        how = {"load_in_4bit": True, **nf4, "bnb_4bit_compute_dtype": dtype}
    return {"quantization_config": BitsAndBytesConfig(**how), "device_map": {"": device}}


@dataclass(frozen=True, slots=True)
class QuantizedBytes:
    """Bytes of a model: ``packed`` weights, their ``scales``, and the ``rest`` that is not quantized.

    ``largest``: the largest packed layer while it is unpacked for a matrix product. ``before``: all packed
    layers before they were packed.
    """

    packed: int
    scales: int
    rest: int
    largest: int
    before: int

    @property
    def total(self) -> int:
        """Bytes that are always in memory."""
        return self.packed + self.scales + self.rest


def quantized_bytes(model: Any, quantization: str) -> QuantizedBytes:
    """Return the bytes of a quantized model. ``model`` may be on the meta device, not yet quantized.

    Like transformers, this quantizes all linear layers of the base except the output layer.
    """
    import torch

    base = model.get_base_model() if hasattr(model, "peft_config") else model
    head = base.get_output_embeddings()
    layers = [
        module
        for name, module in base.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not head and "lora_" not in name
    ]
    before = [layer.weight.numel() * layer.weight.element_size() for layer in layers]
    every = sum(p.numel() * p.element_size() for p in model.parameters())
    counts = [layer.weight.numel() for layer in layers]
    if quantization == "8bit":
        packed, scales = sum(counts), sum(4 * layer.out_features for layer in layers)
    else:
        blocks = [-(-count // BLOCK) for count in counts]
        packed = sum(-(-count // 2) for count in counts)
        scales = sum(block + 4 * -(-block // SCALES) for block in blocks)
    return QuantizedBytes(packed, scales, every - sum(before), max(before, default=0), sum(before))
