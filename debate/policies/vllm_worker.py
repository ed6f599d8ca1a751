"""What vLLM's workers are taught: the output layer's packed copy follows weights that are replaced."""

from __future__ import annotations

from typing import Any


class FreshHead:
    """Added to vLLM's worker class by name, so that it is there in whatever process the worker lives."""

    def refresh_head(self: Any) -> int:
        """Return how many output layers were packed anew.

        On a CPU vLLM computes with a packed copy of each matrix. Of an output layer that is tied to the
        embedding, ``reload_weights`` replaces the matrix and leaves the copy (0.32.0).
        """
        heads = [
            module
            for module in self.model_runner.get_model().modules()
            if type(module).__name__ == "ParallelLMHead" and module.weight.device.type == "cpu"
        ]
        for head in heads:
            head.quant_method.process_weights_after_loading(head)
        return len(heads)
