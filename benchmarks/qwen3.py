"""The published shapes of Qwen3, without their weights, which no download is needed for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

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


def qwen3(name: str) -> Qwen3Config:
    """Return the settings of a shape."""
    hidden, inner, layers, heads, tied = SHAPES[name]
    return Qwen3Config(
        architectures=["Qwen3ForCausalLM"],
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40_960,
        tie_word_embeddings=tied,
    )


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
