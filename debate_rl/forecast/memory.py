"""The memory of a step, computed from the model's shape and the step's work.

All figures assume that every reply reaches its token limit and is shown in full to the other agents. The
bytes of a layer are those of transformers' Llama and Qwen3 under PyTorch's autograd, without the allocator's
overhead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

import numpy as np
import torch
from transformers.modeling_layers import GradientCheckpointingLayer

from debate.config import DebateConfig
from debate.policy import context_limit
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import seat_debate
from debate.prompting.shown import asks_pairs, groups_shown, rounds_held
from debate.types import Problem
from debate_rl.config import Config
from debate_rl.inference.local import LocalPolicy
from debate_rl.quantization import quantized_bytes
from learner.types import Row
from learner.update.batches import common_prefix, micro_batches
from learner.update.config import LearnerConfig
from learner.update.forward import compute_type
from learner.update.head import TILE

OVERHEAD, LARGE_OVERHEAD = 3 * 2**30, 9 * 2**29
"""Bytes of a GPU that vLLM needs in addition to weights and cache, for a full batch and CUDA graphs: assumed,
not counted. The second value is for a large GPU, where vLLM 0.32.0 reads 16,384 tokens and answers 1,024
requests at a time."""
LARGE = 70 * 2**30  # bytes of a large GPU; on others vLLM reads 8,192 tokens and answers 256 requests
ENGINE_BYTES = 2  # bytes of a number of the engine's weights, adapters and cache
KEPT: dict[tuple[bool, int, int], tuple[float, float, float, float]] = {
    (False, 4, 4): (24, 16, 16, 16),
    (False, 4, 2): (26, 8, 10, 10),
    (False, 2, 2): (16, 8, 10, 10),
    (True, 4, 4): (16, 16, 12, 12),
    (True, 4, 2): (18, 8, 8, 8),
    (True, 2, 2): (12, 8, 8, 8),
}
"""Bytes that a layer keeps of each token for its backward pass, for each unit of its hidden width, its
feed-forward width, and the widths of its queries and keys. The key: (whether an adapter is trained, bytes of
a weight, bytes of a product)."""
OUTSIDE = 9  # bytes of a token for each unit of the hidden width outside of the layers
TILES = 12  # bytes of a logit in the tile that the head works on


@dataclass(frozen=True, slots=True)
class Load:
    """A step's work. ``rounds``: tokens of a prompt and of a reply, by round. ``replies``: replies per round.

    ``learnt``: replies of a round that the learner trains on; None means all. ``sampled``: replies sampled at
    a time. ``micro_tokens``: tokens per pass of the learner, with padding. ``together``: rows of a round that
    share their first ``shared`` tokens; ``grows``: these begin with the shared tokens of earlier rounds.
    """

    rounds: tuple[tuple[int, int], ...]
    replies: int
    sampled: int
    micro_tokens: int
    together: int = 1
    shared: tuple[int, ...] = ()
    grows: bool = False
    learnt: int | None = None

    @property
    def rows(self) -> int:
        """The number of replies of a round that the learner trains on."""
        return self.replies if self.learnt is None else self.learnt

    @property
    def longest(self) -> int:
        """Tokens of the longest row."""
        return max(prompt + reply for prompt, reply in self.rounds)

    @property
    def row_tokens(self) -> int:
        """Tokens of all rows."""
        return self.rows * sum(prompt + reply for prompt, reply in self.rounds)

    @property
    def read_tokens(self) -> int:
        """Tokens that the learner reads in a pass over all rows; shared tokens count once.

        >>> load = Load(((50, 10), (70, 10)), replies=6, sampled=6, micro_tokens=99)
        >>> load.read_tokens, replace(load, together=3, shared=(40, 50)).read_tokens
        (840, 480)
        >>> replace(load, together=3, shared=(40, 50), grows=True).read_tokens  # the 40 are among the 50
        400
        """
        shared = self.shared or (0,) * len(self.rounds)
        own = sum(prompt + reply - same for (prompt, reply), same in zip(self.rounds, shared, strict=True))
        once = max(shared) if self.grows else sum(shared)
        return self.rows * (once + self.together * own) // self.together


def load_of(config: Config, policy: LocalPolicy, problem: Problem) -> Load:
    """Return a step's work if every problem is as long as this one and every reply reaches its limit."""
    debate, train = config.debate, config.train
    reply = debate.max_tokens + debate.thinking_tokens
    limits = [limit for limit in (debate.context_tokens, context_limit(policy)) if limit]
    seating = seat_debate(problem, debate, 0)
    budget = ContextBudget(None, policy.count_tokens)
    first, last = (
        policy.encode(agent_prompt(seating, (), agent, 0, budget).messages)
        for agent in (0, debate.num_agents - 1)
    )
    opening, common = len(first), common_prefix(np.array(first), np.array(last))
    prompts = [opening + _shown_tokens(debate, round_) for round_ in range(rounds_held(debate))]
    room = min(limits) - reply if limits else max(prompts)
    rounds = [(min(prompt, room), reply) for prompt in prompts]
    debates = train.batch_size * train.group_size
    replies = debates * (debate.num_agents - debate.seats.count("remote"))
    sampled = min(train.sample_batch_size, replies)
    load = Load(tuple(rounds), replies, sampled, 0, learnt=debates * debate.learners)
    if config.learner.share_prefixes and debate.learners > 1 and not debate.conversation:
        every = debate.order == "per_debate"
        shared = tuple(
            prompt - (opening - common) if every and not asks_pairs(debate, round_) else min(common, prompt)
            for round_, (prompt, _) in enumerate(rounds)
        )
        whole = debate.history_rounds == -1 and debate.ballot == "all"
        grows = every and whole and max(prompts) <= room
        load = replace(load, together=debate.learners, shared=shared, grows=grows)
    micro = min(max(config.learner.micro_batch_tokens, load.longest), load.read_tokens)
    return replace(load, micro_tokens=micro)


def _shown_tokens(debate: DebateConfig, round_: int) -> int:
    """Return how many tokens of replies a prompt contains; in a conversation, its agent's own ones too."""
    others = 2 if asks_pairs(debate, round_) else debate.num_agents - debate.conversation
    shown = sum(map(len, groups_shown(debate, round_))) * others * debate.max_tokens
    own = round_ * (debate.max_tokens + debate.thinking_tokens)
    return shown + own if debate.conversation else shown


class Shape:
    """The widths of a model that determine its memory; ``model`` may be on the meta device.

    ``cached``: numbers per token in the cache; ``trained``: bytes of trained weights.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.settings = model, model.config.get_text_config()
        of = self.settings
        self.head_width = getattr(of, "head_dim", None) or of.hidden_size // of.num_attention_heads
        self.cached = 2 * of.num_hidden_layers * of.num_key_value_heads * self.head_width
        self.adapter = hasattr(model, "peft_config")
        self.trained = _bytes(one for one in model.parameters() if one.requires_grad)

    def layer_bytes(self, stream: int, product: int) -> float:
        """Return the bytes per token that one layer keeps for its backward pass."""
        of, key = self.settings, (self.adapter, stream, product)
        hidden, inner, queries, keys = KEPT[key if key in KEPT else (self.adapter, 4, 4)]
        if not any(name.endswith("q_norm.weight") for name, _ in self.model.named_parameters()):
            queries = keys = 2 * product  # what normalizes queries and keys keeps more
        kept = hidden * of.hidden_size + inner * of.intermediate_size
        kept += self.head_width * (queries * of.num_attention_heads + keys * of.num_key_value_heads)
        ranks = [one.shape[0] for name, one in self.model.named_parameters() if "lora_A" in name]
        return kept + product * sum(ranks) / of.num_hidden_layers


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes by use. Sampling and learning alternate; all other parts stay in memory.

    ``sampling``: the peak with the cache; ``learning``: the peak with gradients. ``engine``: the bytes of a
    separate engine that samples. ``frozen``: the copy of the start weights for frozen seats.
    """

    weights: int
    reference: int
    optimizer: int
    sampling: int
    learning: int
    engine: int = 0
    frozen: int = 0

    @property
    def peak(self) -> int:
        """The largest number of bytes in a step."""
        return self.staying + max(self.sampling, self.learning)

    @property
    def staying(self) -> int:
        """Bytes that stay for the whole step."""
        return self.weights + self.reference + self.optimizer + self.engine + self.frozen


def memory_of(
    model: Any, load: Load, config: Config, *, on_gpu: bool | None = None, engine: int | None = None
) -> Memory:
    """Return the memory of a step; ``model`` may be on the meta device.

    The optimizer has AdamW's two moments. ``on_gpu``: whether to assume a GPU's types; None means the model's
    device. ``engine``: an engine's bytes on this GPU, None if the model samples. AttributeError for a
    model whose settings have other names.
    """
    learner, shape = config.learner, Shape(model)
    weights, trained = _bytes(model.parameters()) + _bytes(model.buffers()), shape.trained
    said = max(reply / (prompt + reply) for prompt, reply in load.rounds)
    passes = 2 if load.read_tokens > load.micro_tokens else 1
    learning = _learning(
        shape, load.micro_tokens, round(said * load.micro_tokens), learner, passes=passes, on_gpu=on_gpu
    )
    sampling, unpacked = 0 if engine is not None else _sampling(shape, load, learner, on_gpu), 0
    if config.model.quantization != "none":
        held = quantized_bytes(model, config.model.quantization)
        weights, unpacked = held.total + _bytes(model.buffers()), held.largest
    reference = 0
    if learner.needs_reference:  # of an adapter nothing, or a copy of it once it has been refreshed
        reference = trained * bool(learner.reference_every) if shape.adapter else weights
    return Memory(
        weights=weights,
        reference=reference,
        optimizer=2 * trained,
        sampling=sampling + unpacked * bool(sampling),
        learning=learning + unpacked,
        engine=engine or 0,
        frozen=trained if engine is None and "frozen" in config.debate.seats else 0,
    )


def learning_bytes(model: Any, rows: Sequence[Row], config: LearnerConfig) -> int:
    """Return the peak bytes of learning from these rows, with the gradients."""
    batches = micro_batches(rows, config.micro_batch_tokens, share=config.share_prefixes)
    largest = max(batches, key=lambda batch: batch.positions)
    learnt, passes = largest.predictors.numel(), min(len(batches), 2)
    return _learning(Shape(model), largest.positions, learnt, config, passes=passes, on_gpu=None)


def _types(shape: Shape, config: LearnerConfig, on_gpu: bool | None) -> tuple[int, int]:
    """Return how many bytes a number of the residual stream and a number of a matrix product have."""
    compute = compute_type(shape.model, config.compute, on_gpu=on_gpu)
    sizes = (one.element_size() for one in shape.model.parameters() if one.is_floating_point())
    stream = min(sizes, default=4)
    return stream, stream if compute is None else compute.itemsize


def _learning(
    shape: Shape, tokens: int, learnt: int, config: LearnerConfig, *, passes: int, on_gpu: bool | None
) -> int:
    """Return the peak bytes of a forward and a backward pass over ``tokens``; ``learnt`` of them have a loss.

    The forward pass keeps activations, and copies of weights in the type of products. With gradient
    checkpointing the backward pass computes each layer again, with gradients as wide as the feed-forward
    part. Gradients of weights stay between passes.
    """
    of, (stream, product) = shape.settings, _types(shape, config, on_gpu)
    on_gpu = next(shape.model.parameters()).is_cuda if on_gpu is None else on_gpu
    head = shape.model.get_output_embeddings().weight
    logits = min(learnt * len(head), TILE["cuda" if on_gpu else "cpu"])
    layer, hidden = shape.layer_bytes(stream, product), of.hidden_size
    copies = product * sum(one.numel() for one in shape.model.parameters()) if product < stream else 0
    head_gradient = 4 * head.numel() if head.requires_grad else 0
    if config.gradient_checkpointing is True:
        kept = of.num_hidden_layers * stream * hidden * tokens
        again = (layer + 2 * product * of.intermediate_size + OUTSIDE / 2 * hidden) * tokens
        backward = kept + max(again, TILES / 2 * logits + head_gradient + OUTSIDE * hidden * tokens)
    else:
        kept = of.num_hidden_layers * layer * tokens + copies
        backward = kept + TILES / 2 * logits + head_gradient + OUTSIDE * hidden * tokens
        copies = 0
    forward = kept + copies + TILES * logits + OUTSIDE * hidden * tokens
    gradients = shape.trained if passes > 1 else 0
    return ceil(max(gradients + max(forward, backward), shape.trained))


def _sampling(shape: Shape, load: Load, config: LearnerConfig, on_gpu: bool | None) -> int:
    """Return the peak bytes of sampling: at the longest prompts, or at the last token of their replies."""
    of, (stream, product) = shape.settings, _types(shape, config, on_gpu)
    prompt, reply = max(load.rounds)
    cached = stream * shape.cached
    if (heads := of.num_attention_heads) != of.num_key_value_heads:
        cached += 2 * stream * heads * shape.head_width  # keys and values of a layer, repeated for all heads
    widest = 3 * product * of.intermediate_size + 4.5 * stream * of.hidden_size
    reading = load.sampled * prompt * (cached + widest)
    grown = stream * shape.cached / 2 / of.num_hidden_layers  # a layer's cache, copied for a token more
    saying = load.sampled * ((prompt + reply) * (cached + grown) + 8 * of.vocab_size)
    return ceil(max(reading, saying))


def of_first_rank(memory: Memory, model: Any, ranks: int, *, samples: bool) -> Memory:
    """Return the memory of the first of several ranks, from the memory of a single process.

    The rank has its share of weights, reference, optimizer and gradients. It also has two layers and
    everything outside the layers, complete and with their gradients. If the model itself ``samples``, the
    rank also has a complete copy of the weights.
    """
    modules = [one for one in model.modules() if isinstance(one, GradientCheckpointingLayer)]
    layers = [list(one.parameters()) for one in modules]
    inside = {id(parameter) for layer in layers for parameter in layer}
    outside = [parameter for parameter in model.parameters() if id(parameter) not in inside]
    sizes = [_bytes(part) + _bytes(one for one in part if one.requires_grad) for part in (outside, *layers)]
    whole = 2 * max(sizes[1:], default=0) + sizes[0]
    trained = memory.optimizer // 2
    return replace(
        memory,
        weights=ceil(memory.weights / ranks) + samples * memory.weights,
        reference=ceil(memory.reference / ranks),
        optimizer=ceil(memory.optimizer / ranks),
        sampling=samples * memory.sampling,
        learning=max(memory.learning - trained, 0) + ceil(trained / ranks) + whole,
    )


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Bytes of the engine: its share of a GPU, its weights, a ``token`` in its cache, and other ``overhead``.

    ``limit``: the most tokens of a prompt with its reply. ``beside``: whether the learner is on the same GPU.
    """

    share: int
    weights: int
    token: int
    limit: int
    overhead: int = OVERHEAD
    beside: bool = True

    @property
    def tokens(self) -> int:
        """The number of tokens that fit into the cache."""
        return max(0, (self.share - self.weights - self.overhead) // self.token)

    def asleep(self, memory: Memory) -> Memory:
        """Return the memory of a step whose engine frees its share while the learner learns."""
        return replace(memory, engine=self.overhead, sampling=self.share - self.overhead)

    def in_words(self, config: Config, load: Load) -> str:
        """Return the capacity of the cache, in words."""
        where = "" if self.beside else ", on GPUs of its own"
        debates = self.tokens // (config.debate.num_agents * load.longest)
        held = f"weights of {size(self.weights)} and a cache of {self.tokens:,} tokens"
        return f"vLLM has {held}: {debates} debates of maximum length at once{where}"

    def refuse_too_small(self, config: Config, load: Load) -> None:
        """Raise ValueError if the longest prompt and reply exceed the cache: vLLM would not start."""
        if self.tokens < self.limit:
            least = self.weights + self.overhead + self.limit * self.token
            raise ValueError(
                f"model.vllm.gpu_memory_utilization={config.model.vllm.gpu_memory_utilization:g}: "
                f"{size(self.share)} leave room for {self.tokens:,} cached tokens, but a prompt with its "
                f"reply may have {self.limit:,}; use {size(least)} or more, or lower debate.context_tokens "
                f"({load.longest:,} are enough)"
            )


def overhead_of(there: int) -> int:
    """Return the bytes that vLLM needs in addition to weights and cache on a GPU of ``there`` bytes."""
    return LARGE_OVERHEAD if there >= LARGE else OVERHEAD


def engine_memory(model: Any, config: Config, there: int, *, beside: bool) -> EngineMemory:
    """Return vLLM's memory on a GPU of ``there`` bytes; ``model`` may be on the meta device."""
    vllm, shape = config.model.vllm, Shape(model)
    return EngineMemory(
        share=ceil(vllm.gpu_memory_utilization * there),
        weights=ENGINE_BYTES * sum(parameter.numel() for parameter in model.parameters()),
        token=ENGINE_BYTES * shape.cached,
        limit=config.debate.context_tokens or shape.settings.max_position_embeddings,
        overhead=overhead_of(there),
        beside=beside,
    )


def memory_there(device: torch.device) -> int:
    """Return the bytes of a GPU's memory, or of the machine's for a CPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def in_words(memory: Memory, there: int) -> str:
    """Return in words how many of the ``there`` bytes are needed, in total and by part."""
    names = ("engine", "weights", "frozen", "reference", "optimizer", "sampling", "learning")
    parts = ", ".join(f"{name} {size(getattr(memory, name))}" for name in names if getattr(memory, name))
    phase = "sampling" if memory.sampling > memory.learning else "learning"
    return f"about {size(memory.peak)} of {size(there)}, with its peak in {phase}: {parts}"


def cure(memory: Memory, config: Config, there: int) -> str:
    """Return in words how to make a run fit the memory."""
    if memory.sampling > memory.learning:
        if memory.engine:  # it sleeps during learning; its share is all the memory of sampling
            return "lower model.vllm.gpu_memory_utilization"
        return "lower train.sample_batch_size or debate.max_tokens"
    ways = ["lower learner.micro_batch_tokens or debate.max_tokens"]
    if config.learner.gradient_checkpointing is False:
        ways.insert(0, "set learner.gradient_checkpointing=true")
    left = 1 - (memory.peak - memory.engine) / there
    if memory.engine and left > 0:
        ways.insert(0, f"lower model.vllm.gpu_memory_utilization to {floor(100 * left) / 100:g}")
    return ", or ".join(ways)


def size(count: float) -> str:
    """Format a number of bytes with its unit.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
