"""Published settings of the models in shipped recipes, for plans without access to the hub."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from debate_rl.warm_start.tokenizer import CHAT_TEMPLATE, END, PAD, UNKNOWN

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

CHARACTERS = 4
"""Characters per token for an unknown tokenizer."""


class Shape(NamedTuple):
    """Settings of a model. ``head``: the size of a head; 0 means ``width / heads``."""

    kind: str
    width: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    tied: bool
    tokens: int
    context: int


SHAPES = {
    "Qwen/Qwen3-0.6B": Shape("qwen3", 1024, 3072, 28, 16, 8, 128, True, 151_936, 40_960),
    "Qwen/Qwen3-1.7B": Shape("qwen3", 2048, 6144, 28, 16, 8, 128, True, 151_936, 40_960),
    "Qwen/Qwen3-4B": Shape("qwen3", 2560, 9728, 36, 32, 8, 128, True, 151_936, 40_960),
    "Qwen/Qwen3-8B": Shape("qwen3", 4096, 12_288, 36, 32, 8, 128, False, 151_936, 40_960),
    "Qwen/Qwen2.5-0.5B": Shape("qwen2", 896, 4864, 24, 14, 2, 0, True, 151_936, 32_768),
    "Qwen/Qwen2.5-14B": Shape("qwen2", 5120, 13_824, 48, 40, 8, 0, False, 152_064, 131_072),
    "HuggingFaceTB/SmolLM2-135M": Shape("llama", 576, 1536, 30, 9, 3, 0, True, 49_152, 8192),
    "HuggingFaceTB/SmolLM2-1.7B": Shape("llama", 2048, 8192, 24, 32, 32, 0, True, 49_152, 8192),
}
CONTEXTS = {"-Base": 32_768, "-Instruct-2507": 262_144}
"""Context lengths of Qwen3 models by the end of their names."""
_VARIANT = re.compile(r"-(Base|Instruct(-2507)?)$")


def known_settings(name: str) -> PretrainedConfig | None:
    """Return the settings of a model if they are known here, or None.

    >>> known_settings("Qwen/Qwen3-8B-Base").max_position_embeddings, known_settings("somebody/model")
    (32768, None)
    """
    shape = SHAPES.get(_VARIANT.sub("", name))
    if shape is None:
        return None
    from transformers import AutoConfig

    variant = next((context for end, context in CONTEXTS.items() if name.endswith(end)), shape.context)
    more: dict[str, Any] = {"head_dim": shape.head} if shape.head else {}
    return AutoConfig.for_model(
        shape.kind,
        hidden_size=shape.width,
        intermediate_size=shape.mlp,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        tie_word_embeddings=shape.tied,
        vocab_size=shape.tokens,
        max_position_embeddings=variant,
        **more,
    )


def assumed_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token for every ``CHARACTERS`` characters, to count prompts.

    >>> len(assumed_tokenizer()("What is two and three?")["input_ids"])  # 22 characters
    6
    """
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from debate_rl.inference.sampler import THINK_END, THINK_START  # loads torch

    backend = Tokenizer(models.WordLevel({END: 0, PAD: 1, UNKNOWN: 2}, unk_token=UNKNOWN))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(rf"[\s\S]{{1,{CHARACTERS}}}"), "isolated")
    backend.add_tokens([AddedToken(mark, normalized=False) for mark in (THINK_START, THINK_END)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token=PAD, eos_token=END, unk_token=UNKNOWN
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
