"""What vLLM's share of a GPU holds, and what of that is beside a learner on the same GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from debate_rl.config import Config
from debate_rl.forecast.estimate import Load, Memory, size

OVERHEAD, LARGE_OVERHEAD = 3 * 2**30, 9 * 2**29
"""Bytes of a GPU that vLLM keeps beside weights and cache, for a full batch and CUDA graphs: assumed, not
counted. More on a large GPU, where it reads 16,384 tokens and answers 1,024 requests at a time (0.32.0)."""
LARGE = 70 * 2**30
"""Bytes from which on a GPU is large: on others it reads 8,192 tokens and answers 256 requests at a time."""
PER_NUMBER = 2
"""Bytes of a number of the engine's weights, adapters and cache: 16 bits on a GPU."""


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Bytes that the engine takes of a GPU and of its weights; ``token``: of a token in its cache.

    ``limit``: the longest prompt with its reply that the engine is to take. ``overhead``: what is neither
    weights nor cache. ``beside``: whether the learner is on the same GPU.
    """

    share: int
    weights: int
    token: int
    limit: int
    overhead: int = OVERHEAD
    beside: bool = True

    @property
    def share_beside(self) -> int:
        """Bytes that it takes of the learner's GPU."""
        return self.share if self.beside else 0

    def asleep(self, memory: Memory) -> Memory:
        """Return what a step holds where the engine gives back its memory while the learner learns."""
        return replace(memory, engine=self.overhead, sampling=self.share - self.overhead)

    @property
    def tokens(self) -> int:
        """Tokens that its cache holds."""
        return max(0, (self.share - self.weights - self.overhead) // self.token)

    def debates(self, config: Config, load: Load) -> int:
        """Return how many debates it answers at once where all replies and prompts are at their longest."""
        return self.tokens // (config.debate.num_agents * load.longest)

    def in_words(self, config: Config, load: Load) -> str:
        """Return what the cache holds."""
        where = "" if self.beside else ", on GPUs of its own"
        return (
            f"vLLM has weights of {size(self.weights)} and a cache of {self.tokens:,} tokens: "
            f"{self.debates(config, load)} debates at once at their longest{where}"
        )

    def refuse_too_small(self, config: Config, load: Load) -> None:
        """Raise ValueError where the cache does not hold what the engine is to take: it would not start."""
        if self.tokens < self.limit:
            least = self.weights + self.overhead + self.limit * self.token
            raise ValueError(
                f"model.vllm.gpu_memory_utilization={config.model.vllm.gpu_memory_utilization:g}: "
                f"{size(self.share)} leave a cache of {self.tokens:,} tokens, and a reply with its prompt "
                f"may have {self.limit:,}; give it {size(least)} or more, or lower model.vllm.max_model_len "
                f"({load.longest:,} are enough)"
            )


def overhead_of(there: int) -> int:
    """Return the bytes that vLLM keeps beside weights and cache of a GPU that has ``there`` bytes."""
    return LARGE_OVERHEAD if there >= LARGE else OVERHEAD


def engine_memory(model: Any, config: Config, there: int, *, beside: bool) -> EngineMemory:
    """Return what vLLM takes of a GPU with so many bytes; ``model`` may be without data."""
    settings = model.config.get_text_config()
    heads = settings.num_key_value_heads
    width = getattr(settings, "head_dim", None) or settings.hidden_size // settings.num_attention_heads
    limit = config.model.vllm.max_model_len or settings.max_position_embeddings
    return EngineMemory(
        share=ceil(config.model.vllm.gpu_memory_utilization * there),
        weights=PER_NUMBER * sum(parameter.numel() for parameter in model.parameters()),
        token=2 * PER_NUMBER * settings.num_hidden_layers * heads * width,
        limit=limit,
        overhead=overhead_of(there),
        beside=beside,
    )
