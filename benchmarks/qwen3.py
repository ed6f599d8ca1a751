"""The published shapes of Qwen3, without their weights, which no download is needed for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformers import Qwen3Config

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


def write_shape(name: str, folder: Path, words: Sequence[str] = ()) -> None:
    """Write a shape's settings, and a tokenizer of bytes and words, as a model's folder without weights."""
    qwen3(name).save_pretrained(folder)
    tiny = TinyConfig(hidden_size=32, layers=1, intermediate_size=48)
    small = ModelConfig(tiny=tiny, chat=True, device="cpu")
    load_model(small, vocabulary=words, seed=0)[1].save_pretrained(folder)
