"""The published shapes of Qwen3 and a few others, without their weights, which no download is needed for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import Qwen3Config

from debate import DebateConfig, Problem
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import seat_debate
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.models import load_model

VOCABULARY = 151_936
QWEN3 = {
    "0.6B": (1024, 3072, 28, 16, True),
    "1.7B": (2048, 6144, 28, 16, True),
    "4B": (2560, 9728, 36, 32, True),
    "8B": (4096, 12_288, 36, 32, False),
}
"""Width, that of the MLPs, layers, heads, tied embeddings."""
SHAPES = QWEN3 | {"toy": (64, 128, 2, 8, True)}
"""The toy is for a CPU."""
QWEN25 = {"0.5B": (896, 4864, 24, 14, True), "14B": (5120, 13_824, 48, 40, False)}
"""Shapes of Qwen2.5, which is counted as a Qwen3 of its shape."""
SMOLLM2 = {"SmolLM2-1.7B": (2048, 8192, 24, 32, True)}
"""A Llama, counted as a Qwen3 of its shape, with a vocabulary and a context of its own."""
KEYS = {"0.5B": (2, 64), "SmolLM2-1.7B": (32, 64)}
"""Heads of keys, and the size of a head, where they are not 8 and 128."""
LENGTHS = {"SmolLM2-1.7B": (49_152, 8192)}
"""Tokens of the vocabulary and of the context, where they are not 151,936 and 40,960."""


def qwen3(name: str) -> Qwen3Config:
    """Return the settings of a shape."""
    hidden, inner, layers, heads, tied = (SHAPES | QWEN25 | SMOLLM2)[name]
    keys, size = KEYS.get(name, (8, 128))
    tokens, context = LENGTHS.get(name, (VOCABULARY, 40_960))
    return Qwen3Config(
        architectures=["Qwen3ForCausalLM"],
        vocab_size=tokens,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=keys,
        head_dim=size,
        max_position_embeddings=context,
        tie_word_embeddings=tied,
    )


def operations(config: Qwen3Config, *, read: float, said: float, squares: float, adapter: bool) -> float:
    """Return the operations that learning from rows needs: 2 for each weight and token, and causal attention.

    ``read`` tokens go through the layers, ``said`` through the head; ``squares`` is the sum of the squared
    lengths that attention reads. A backward pass takes twice as many as a forward pass, but for the weights'
    own gradients, which a base under an adapter does not have [the count of arXiv 2001.08361; 2204.02311,
    appendix B]. What gradient checkpointing computes once more is not needed, and not counted.
    """
    heads: Any = config
    width, keys = (count * heads.head_dim for count in (heads.num_attention_heads, heads.num_key_value_heads))
    layer = config.hidden_size * (2 * width + 2 * keys + 3 * config.intermediate_size)
    products = 2.0 * (read * config.num_hidden_layers * layer + said * config.hidden_size * config.vocab_size)
    attention = 2.0 * config.num_hidden_layers * width * squares
    return products * (2 if adapter else 3) + attention * 3


def words(problem: Problem, config: DebateConfig) -> list[str]:
    """Return the words of the shipped prompts, so that they have about as many tokens as of a real model."""
    prompt = agent_prompt(seat_debate(problem, config, 0), [], 0, 0, ContextBudget(None, len, 0))
    text = " ".join(message.content for message in prompt.messages)
    return sorted(set(re.findall(r" [a-zA-Z]{2,}", text)))


def write_shape(name: str, folder: Path, words: Sequence[str] = ()) -> None:
    """Write a shape's settings, and a tokenizer of bytes and words, as a model's folder without weights."""
    qwen3(name).save_pretrained(folder)
    tiny = TinyConfig(hidden_size=32, layers=1, intermediate_size=48)
    small = ModelConfig(tiny=tiny, chat=True, device="cpu")
    load_model(small, vocabulary=words, seed=0)[1].save_pretrained(folder)
