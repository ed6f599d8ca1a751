"""About how much memory and time a step takes, printed before the first one.

Everything is counted as if every reply spent its limit of tokens, and was shown whole to the others: a run
takes less when replies stop early. Counted are the tensors that grow with the settings, and not what a
framework holds beside them. benchmarks/estimate.py compares with what was measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from debate.policies.local import LocalPolicy
from debate.policies.steps import steps_for
from debate.policy import context_limit
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import seat_debate
from debate.prompting.shown import rounds_held, rounds_shown
from debate.types import Problem, TurnId
from debate_rl.config import Config
from learner.types import Row
from learner.update.batches import collate
from learner.update.forward import HEAD_ELEMENTS, action_logprobs


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a decoder decides its memory. Sizes are of one layer; ``width`` is bytes of a weight.

    ``queries`` and ``keys`` are heads times head size. ``trained_bytes`` is the size of the trained weights.
    """

    weight_bytes: int
    trained_bytes: int
    layers: int
    hidden: int
    inner: int
    queries: int
    keys: int
    vocabulary: int
    width: int
    adapter: bool = False

    @property
    def saved_values(self) -> int:
        """Values that one layer keeps for the backward pass, for each token.

        The two norms keep input, normalised input and output (6 hidden); attention the queries before, within
        and after their norm and turned, its output twice (6 queries) and as much of the keys with the values
        (5 keys); the block's inner part gate, up, activation and product (4 inner).
        """
        return 6 * self.hidden + 6 * self.queries + 5 * self.keys + 4 * self.inner


@dataclass(frozen=True, slots=True)
class Load:
    """A step's work. ``rounds``: tokens of a prompt and of a reply, by round; each has ``replies`` replies.

    ``sampled``: replies sampled at a time; ``micro_tokens``: padded tokens of one pass of the learner.
    """

    rounds: tuple[tuple[int, int], ...]
    replies: int
    sampled: int
    micro_tokens: int

    @property
    def longest(self) -> int:
        """Tokens of the longest row."""
        return max(prompt + reply for prompt, reply in self.rounds)

    @property
    def row_tokens(self) -> int:
        """Tokens of all rows."""
        return self.replies * sum(prompt + reply for prompt, reply in self.rounds)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes by what holds them. Sampling and learning take turns; weights and optimizer stay."""

    weights: int
    reference: int
    optimizer: int
    gradients: int
    activations: int
    logits: int
    cache: int
    prompts: int

    @property
    def sampling(self) -> int:
        """Bytes while debates are held."""
        return self.weights + self.reference + self.optimizer + self.cache + self.prompts

    @property
    def learning(self) -> int:
        """Bytes at the end of a forward pass of the learner."""
        held = self.weights + self.reference + self.optimizer + self.gradients
        return held + self.activations + self.logits

    @property
    def peak(self) -> int:
        """The larger of the two."""
        return max(self.sampling, self.learning)


def shape_of(model: Any) -> Shape:
    """Return the shape of a transformers or peft decoder."""
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    parameters = list(model.parameters())
    return Shape(
        weight_bytes=sum(p.numel() * p.element_size() for p in parameters),
        trained_bytes=sum(p.numel() * p.element_size() for p in parameters if p.requires_grad),
        layers=config.num_hidden_layers,
        hidden=config.hidden_size,
        inner=config.intermediate_size,
        queries=heads * size,
        keys=(getattr(config, "num_key_value_heads", None) or heads) * size,
        vocabulary=config.vocab_size,
        width=model.dtype.itemsize,
        adapter=hasattr(model, "peft_config"),
    )


def load_of(config: Config, policy: LocalPolicy, problem: Problem) -> Load:
    """Return a step's work where every problem is as long as this one and every reply as its limit."""
    debate, train = config.debate, config.train
    reply = debate.max_tokens + debate.thinking_tokens
    limits = [limit for limit in (debate.context_tokens, context_limit(policy)) if limit]
    seating = seat_debate(problem, debate, 0)
    opening = policy.count_tokens(
        agent_prompt(seating, (), 0, 0, ContextBudget(None, policy.count_tokens)).messages
    )
    rounds: list[tuple[int, int]] = []
    for round_ in range(rounds_held(debate)):
        shown = len(rounds_shown(round_, debate.history_rounds)) * debate.num_agents * debate.max_tokens
        room = min(limits) - reply if limits else opening + shown
        rounds.append((min(opening + shown, room), reply))
    replies = train.problems_per_step * train.debates_per_problem * debate.num_agents
    row_tokens = replies * sum(map(sum, rounds))
    longest = max(map(sum, rounds))
    micro = min(max(config.learner.micro_batch_tokens, longest), row_tokens)
    return Load(tuple(rounds), replies, min(train.batch_size, replies), micro)


def memory_of(shape: Shape, load: Load, config: Config) -> Memory:
    """Return about how many bytes a step holds.

    Gradients are as large as the trained weights, AdamW's two moments twice that. Passing back through a
    layer needs about twice what it keeps, for gradients and what lies between. With gradient checkpointing a
    layer keeps its input alone, and only the one passed back through the rest. Logits are float32, about five
    tables of them at once (scaled, log-softmax, and for entropy and gradients). While prompts are read, one
    layer's values are there for all their tokens.
    """
    learner = config.learner
    kept = (shape.layers + 2) * shape.saved_values
    if learner.gradient_checkpointing:
        kept = shape.layers * shape.hidden + 3 * shape.saved_values
    actions = int(load.micro_tokens * max(reply / (prompt + reply) for prompt, reply in load.rounds))
    rows = min(actions, max(HEAD_ELEMENTS // shape.vocabulary, 1))
    prompt, reply = max(load.rounds)
    return Memory(
        weights=shape.weight_bytes,
        reference=shape.weight_bytes if learner.needs_reference and not shape.adapter else 0,
        optimizer=2 * shape.trained_bytes,
        gradients=shape.trained_bytes,
        activations=load.micro_tokens * kept * shape.width,
        logits=5 * rows * shape.vocabulary * 4,
        cache=load.sampled * (prompt + reply) * 2 * shape.keys * shape.layers * shape.width,
        prompts=load.sampled * prompt * (3 * shape.hidden + 3 * shape.inner) * shape.width,
    )


@dataclass(frozen=True, slots=True)
class Speed:
    """What a probe measured, in tokens a second and in seconds.

    ``read``: tokens of prompts; ``score``: tokens of rows, for the log-probabilities of their replies;
    ``step_s``: one more token of every reply that is sampled at a time.
    """

    read: float
    score: float
    step_s: float


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall seconds of a step."""

    sampling: float
    learning: float


def seconds_of(load: Load, speed: Speed, config: Config, *, adapter: bool) -> Seconds:
    """Return about how long a step takes at this speed.

    A backward pass costs two forward passes, and one where the weights themselves have no gradient (an
    adapter): 2 operations for each weight and token forward, 2 for the inputs' gradients, 2 for the weights'
    [the count of arXiv 2001.08361]. Reference, log-probabilities before the first update and gradient
    checkpointing are forward passes more.
    """
    learner = config.learner
    passes = learner.epochs * ((2.0 if adapter else 3.0) + learner.gradient_checkpointing)
    passes += learner.needs_reference
    if learner.old_logprobs == "recompute":
        passes += 1 - 1 / learner.minibatches
    batches = -(-load.replies // load.sampled)
    sampling = sum(
        load.replies * prompt / speed.read + batches * reply * speed.step_s for prompt, reply in load.rounds
    )
    return Seconds(sampling, load.row_tokens * passes / speed.score)


PROBED_TOKENS = 2048
"""Tokens that the probe reads at a time, at most."""
PROBED_STEPS = 4


@torch.no_grad()
def probe(model: Any, load: Load) -> Speed:
    """Measure a model: one pass over a few rows, and a few steps of sampling. Nothing of it is random."""
    length = min(load.longest, 512)
    rows = max(1, min(load.micro_tokens, PROBED_TOKENS) // length)
    batch = collate([_probed_row(length, load) for _ in range(rows)], device=model.device)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    read = _seconds(lambda: base.base_model(input_ids=batch.input_ids, use_cache=False), model.device)
    score = _seconds(lambda: action_logprobs(model, batch), model.device)
    steps = steps_for(model)
    tokens = torch.zeros(load.sampled, dtype=torch.long, device=model.device)
    steps.prefill(tokens[:, None].expand(-1, 8), torch.zeros_like(tokens), 2 * PROBED_STEPS + 1)

    def several() -> None:
        for _ in range(PROBED_STEPS):
            steps.step(tokens)

    step_s = _seconds(several, model.device) / PROBED_STEPS
    return Speed(rows * length / read, rows * length / score, step_s)


def _probed_row(length: int, load: Load) -> Row:
    """Return a row of some length whose reply has its usual share, all of it one token."""
    share = max(reply / (prompt + reply) for prompt, reply in load.rounds)
    mask = np.arange(length) >= max(1, round(length * (1 - share)))
    zeros = np.zeros(length, np.float32)
    return Row(np.zeros(length, np.int64), mask, zeros, zeros, mask.astype(np.int8), "probe", 0, TurnId(0, 0))


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return how long the work takes the second time: the first one warms up."""
    taken = 0.0
    for _ in range(2):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken = time.perf_counter() - started
    return taken


def memory_there(device: torch.device) -> int:
    """Return the bytes of the device's memory, the machine's for a CPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def estimate(config: Config, model: Any, policy: Any, problem: Problem) -> list[str]:
    """Return the lines to print before the first step; none where another engine samples."""
    if not isinstance(policy, LocalPolicy):
        return []
    shape, load = shape_of(model), load_of(config, policy, problem)
    memory = memory_of(shape, load, config)
    took = seconds_of(load, probe(model, load), config, adapter=shape.adapter)
    return in_words(memory, took, load, memory_there(model.device))


def in_words(memory: Memory, took: Seconds, load: Load, there: int) -> list[str]:
    """Return the estimate as lines to print."""
    phase = "sampling" if memory.sampling > memory.learning else "learning"
    names = ("weights", "reference", "optimizer", "gradients", "activations", "logits", "cache", "prompts")
    parts = ", ".join(f"{name} {size(getattr(memory, name))}" for name in names if getattr(memory, name))
    lines = [
        f"estimate, if every reply spends its {load.rounds[0][1]} tokens and prompts have up to "
        f"{max(load.rounds)[0]}:",
        f"  memory  about {size(memory.peak)} of {size(there)}, most of it in {phase}: {parts}",
        f"  time    about {took.sampling + took.learning:.2g} s a step: sampling {took.sampling:.2g} s, "
        f"learning {took.learning:.2g} s (from a short probe)",
    ]
    if memory.peak > there:
        cure = "train.batch_size" if phase == "sampling" else "learner.micro_batch_tokens"
        lines.append(f"  that is more than there is: lower {cure} or debate.max_tokens")
    return lines


def size(count: float) -> str:
    """Return a number of bytes with its unit.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
