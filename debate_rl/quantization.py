"""A frozen base of 8 or 4 bits under an adapter: bitsandbytes on a CUDA GPU, and the bytes that it holds.

LLM.int8 [arXiv 2208.07339] keeps a byte a weight and a float32 scale for each output. NF4 with double
quantization [QLoRA, arXiv 2305.14314] keeps half a byte, for each 64 weights a scale of a byte, and for each
256 of those a float32. Embeddings, the output layer and norms stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from debate_rl.config.models import ModelConfig

if TYPE_CHECKING:
    import torch

BLOCK = 64
"""Weights that share a scale in 4 bits."""
SCALES = 256
"""Scales of 4-bit blocks that share one of their own."""


def refuse_unquantizable(config: ModelConfig, device: str) -> None:
    """ValueError where nothing quantizes on such a device; ModuleNotFoundError without the library."""
    if config.quantization == "none":
        return
    if device != "cuda":
        raise ValueError(
            f'model.quantization = "{config.quantization}": bitsandbytes quantizes on a CUDA GPU here, and '
            f'the model would be on {device}; set model.quantization = "none"'
        )
    if find_spec("bitsandbytes") is None:
        raise ModuleNotFoundError("No module named 'bitsandbytes'", name="bitsandbytes")


def loading_settings(config: ModelConfig, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    """Return what transformers is told to load a quantized base onto its device; else nothing."""
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
    """Bytes of a model: ``packed`` weights and their ``scales``, and the ``rest`` that is not quantized.

    ``largest``: of the largest packed layer in the type that it computes in, which it is unpacked to for a
    moment. ``before``: of all that is packed, unpacked.
    """

    packed: int
    scales: int
    rest: int
    largest: int
    before: int

    @property
    def total(self) -> int:
        """Bytes that stay."""
        return self.packed + self.scales + self.rest


def quantized_bytes(model: Any, quantization: str) -> QuantizedBytes:
    """Return what a model will hold; ``model`` may be without data, its base not yet quantized.

    Quantized are the linear layers of the base but for the output layer, as transformers does it.
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
