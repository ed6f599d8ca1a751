"""An extension of vLLM's workers: digests of their weights, and a repair of the output layer."""

# pyright: standard, reportMissingTypeStubs=false
# torch is only partly typed: strict rules stop at its borders.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from debate_rl.inference.engine_report import Digest, digest

if TYPE_CHECKING:
    import torch

PROBES = 8
"""Number of random hidden states with which ``rounds_logits`` tests the output layer."""


class WorkerExtension:
    """Methods that vLLM adds to its worker class, in whatever process the worker runs."""

    def refresh_head(self: Any) -> int:
        """Pack the output layers on a CPU again, and return how many there are.

        On a CPU, vLLM computes with a packed copy of each matrix. If the output layer is tied to the
        embedding, ``reload_weights`` replaces the matrix but not the copy (0.32.0).
        """
        heads = [
            module
            for module in self.model_runner.get_model().modules()
            if type(module).__name__ == "ParallelLMHead" and module.weight.device.type == "cpu"
        ]
        for head in heads:
            head.quant_method.process_weights_after_loading(head)
        return len(heads)

    def weight_digests(self: Any, adapter: int) -> dict[str, Digest]:
        """Return the digests of the weights by the learner's names. ``adapter``: the adapter's id, or 0."""
        model, dtype = self.model_runner.get_model(), self.model_config.dtype
        found = {name: digest(value, dtype) for name, value in _weights(model)}
        if adapter:
            manager = self.model_runner.lora_manager._adapter_manager
            slot = manager.lora_index_to_id.index(adapter)
            loaded = _adapter_weights(manager.modules, slot, _packed(model))
            found |= {name: digest(value, dtype) for name, value in loaded}
        return found

    def rounds_logits(self: Any) -> bool:
        """Return whether the output layer rounds its logits to 16 bits, tested with random hidden states."""
        import torch

        model = self.model_runner.get_model()
        head = getattr(model.lm_head, "base_layer", model.lm_head)
        processor = getattr(model.logits_processor, "base_layer", model.logits_processor)
        states = torch.randn(PROBES, head.embedding_dim).to(head.weight)
        logits = processor._apply_head(head, states, None).float()
        return any(torch.equal(logits, logits.to(kind).float()) for kind in (torch.bfloat16, torch.float16))


def _weights(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the base model's weights, with stacked layers split and without padding of the vocabulary."""
    packed = _packed(model)
    for path, module in model.named_modules():
        for kind, value in module.named_parameters(recurse=False):
            if kind == "weight" and hasattr(module, "cpu_linear"):
                value = _computed_with(module)
            value = value[: getattr(module, "org_vocab_size", None)]
            names = _names(path.replace(".base_layer", ""), packed)
            sizes = module.output_partition_sizes if len(names) > 1 else [len(value)]
            for name, part in zip(names, value.split(sizes), strict=True):
                yield f"{name}.{kind}", part


def _computed_with(module: Any) -> torch.Tensor:
    """Return the matrix (N, K) of a CPU layer: the product of its packed copy with the identity."""
    import torch

    width = getattr(module, "input_size", None) or module.embedding_dim
    return module.cpu_linear(torch.eye(width, dtype=module.params_dtype), module.weight, None).t()


def _adapter_weights(
    modules: dict[str, Any], slot: int, packed: dict[str, Sequence[str]]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the adapter matrices of a slot, with stacked layers split. B is already scaled."""
    for path, module in modules.items():
        for kind, stacked in (("lora_A", "lora_a_stacked"), ("lora_B", "lora_b_stacked")):
            parts = getattr(module, stacked, None)
            names = _names(path, packed)
            if isinstance(parts, tuple) and len(parts) == len(names):
                for name, part in zip(names, parts, strict=True):
                    yield f"{name}.{kind}", part[slot, 0]


def _packed(model: Any) -> dict[str, Sequence[str]]:
    """Return the layers in each stacked layer, such as q_proj, k_proj and v_proj in qkv_proj."""
    return getattr(model, "packed_modules_mapping", {})


def _names(path: str, packed: dict[str, Sequence[str]]) -> list[str]:
    """Return the learner's names of a module.

    >>> _names("layers.0.qkv_proj", {"qkv_proj": ["q_proj", "k_proj", "v_proj"]})
    ['layers.0.q_proj', 'layers.0.k_proj', 'layers.0.v_proj']
    >>> _names("norm", {})
    ['norm']
    """
    parent, _, last = path.rpartition(".")
    return [f"{parent}.{name}" for name in packed[last]] if last in packed else [path]
