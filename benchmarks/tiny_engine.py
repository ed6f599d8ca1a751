"""What the benchmarks of engines share: vLLM on a CPU (or a GPU, where there is one) with a tiny model.

Import it first: vLLM reads its environment when it is imported.
"""

from __future__ import annotations

import os

from cpu_engine import FOR_VLLM, ON_GPU

os.environ |= FOR_VLLM | {
    "VLLM_CPU_KVCACHE_SPACE": os.environ.get("VLLM_CPU_KVCACHE_SPACE", "2"),
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from qwen3 import words

from debate import DebateConfig, Problem
from debate.types import Completion, SampleRequest
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.inference.vllm import VLLMPolicy
from debate_rl.models import load_model

P = TypeVar("P", bound=VLLMPolicy)
clock = time.perf_counter if ON_GPU else time.process_time
CONTEXT = 4096
BLOCK = 32
"""Tokens of a block of the prefix cache: a GPU has 16 by default, a CPU 128 and at least this."""
DEBATES = 64
CONFIG = DebateConfig(num_agents=3, num_rounds=3, max_tokens=512)
TINY = TinyConfig(
    hidden_size=64, layers=1, heads=2, intermediate_size=96, init_std=0.3, context_tokens=CONTEXT
)
MEDIAN_TOKENS, SPREAD = 60, 0.5
"""Of the log-normal lengths of replies."""
PROBLEMS = [
    Problem(f"p{n}", f"Tom has {n} apples and gets {n + 3} more. He gives away {n // 2}. How many are left?")
    for n in range(DEBATES)
]


def write_tiny(folder: Path, *, seed: int = 0) -> Path:
    """Write a model with random weights and its tokenizer to a folder, and return it."""
    model: Any
    known = words(PROBLEMS[0], CONFIG)
    model, tokenizer = load_model(ModelConfig(tiny=TINY, device="cpu"), vocabulary=known, seed=seed)
    model.get_input_embeddings().weight.data[model.config.eos_token_id] = 0.0  # no reply ends by chance
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def learner_of(folder: Path, lora_rank: int = 0) -> tuple[Any, Any]:
    """Return the model in a folder, to learn, and its tokenizer."""
    return load_model(ModelConfig(name_or_path=str(folder), device="cpu", lora_rank=lora_rank), seed=0)


def open_engine(folder: Path, kind: type[P], **settings: Any) -> P:
    """Return an engine for a model that has room for every turn of a round at a time."""
    return kind(
        folder,
        dtype="bfloat16" if ON_GPU else "float32",
        max_model_len=CONTEXT,
        enforce_eager=not ON_GPU,
        gpu_memory_utilization=0.5,
        max_num_seqs=3 * DEBATES,
        block_size=BLOCK,
        **settings,
    )


def length_of(seed: int) -> int:
    """Return how many tokens the reply of this seed has."""
    drawn = np.random.default_rng(seed).lognormal(np.log(MEDIAN_TOKENS), SPREAD)
    return int(np.clip(drawn, 8, CONFIG.max_tokens))


class TalkingPolicy(VLLMPolicy):
    """vLLM whose replies have drawn lengths, and are read as a solution, an evaluation and comparisons.

    A model with random weights writes no sections, and the prompts of later rounds would be empty.
    """

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request with so many tokens."""
        tokens = min(request.max_tokens, length_of(request.seed))
        reply = await super().sample(replace(request, max_tokens=tokens, stop=()))
        half = len(reply.text) // 2
        solution, evaluation = reply.text[:half], reply.text[half:]
        start = "<solution>"
        text = f"{start}{solution} \\boxed{{1}}</solution><evaluation>{evaluation}</evaluation>"
        return replace(reply, text=text, offsets=tuple(len(start) + place for place in reply.offsets))
