"""How much memory a step takes, from doing its largest parts with tensors that have no data.

Everything is counted as if every reply spent its limit of tokens, and was shown whole to the others: a run
takes less when replies stop early. benchmarks/estimate.py compares with what was measured.
"""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeCopyMode, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from transformers import masking_utils
from transformers.modeling_layers import GradientCheckpointingLayer

from debate.config import DebateConfig
from debate.policy import context_limit
from debate.prompting.fitting import ContextBudget
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import seat_debate
from debate.prompting.shown import asks_pairs, groups_shown, rounds_held
from debate.types import Problem, TurnId
from debate_rl.config import Config
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.sampler import steps_for
from debate_rl.quantization import quantized_bytes
from learner.types import Row
from learner.update import head
from learner.update.batches import MicroBatch, collate, micro_batches
from learner.update.config import LearnerConfig
from learner.update.forward import (
    CHECKPOINTING,
    action_logprobs,
    compute_type,
    train_only_checkpointed_layers,
)
from learner.update.prefixes import common_prefix
from learner.update.sharing import reading


@dataclass(frozen=True, slots=True)
class Load:
    """A step's work. ``rounds``: tokens of a prompt and of a reply, by round; each has ``replies`` replies.

    ``learnt``: those of a round that are learnt from, None for all of them;
    ``sampled``: replies sampled at a time; ``micro_tokens``: tokens that one pass of the learner reads, with
    padding. ``together``: rows of a round whose first ``shared`` tokens, by round, are read once for all;
    ``grows``: those of a round begin with those of the rounds before, and are read once for all of them.
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
        """Replies of a round that are learnt from."""
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
        """Tokens that the learner reads in a pass over all rows: what rows share counts once.

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

    def batch(self, length: int, tokens: int, device: torch.device) -> MicroBatch:
        """Return rows of about so many tokens in all, none longer than ``length``, with long replies."""
        share = max(reply / (prompt + reply) for prompt, reply in self.rounds)
        count = ceil(tokens / length)
        row = _row(tokens // count, round(tokens // count * (1 - share)))
        return collate([row] * count, device=device)

    def packed(self, device: torch.device) -> MicroBatch:
        """Return a pass's rows of the longest round, read together: whole stars that fill the pass."""
        at = max(range(len(self.rounds)), key=lambda index: sum(self.rounds[index]))
        (prompt, reply), same = self.rounds[at], self.shared[at]
        star = same + self.together * (prompt + reply - same)
        count = ceil(self.micro_tokens / star)
        shrunk = self.micro_tokens / (count * star)
        prompt, same, length = (int(shrunk * size) for size in (prompt, same, prompt + reply))
        rows = [_row(length, prompt, same, number, self.together) for number in range(count * self.together)]
        return micro_batches(rows, self.micro_tokens, device=device, share=True)[0]


def _row(length: int, prompt: int, same: int = 0, number: int = 0, together: int = 1) -> Row:
    """Return a row whose first tokens are the ``same`` as in the others of its star, and in no other row."""
    places, star = np.arange(length), number // together
    mask, zeros = places >= max(1, prompt), np.zeros(length, np.float32)
    ids = np.where(places < same, 2 * star, 2 * number + 1)
    return Row(ids, mask, zeros, zeros, mask.astype(np.int8), str(star), 0, TurnId(number, 0))


def load_of(config: Config, policy: LocalPolicy, problem: Problem) -> Load:
    """Return a step's work where every problem is as long as this one and every reply as its limit."""
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
    debates, remote = train.batch_size * train.group_size, debate.seats.count("remote")
    replies = debates * (debate.num_agents - remote)
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
    """Return the tokens that a prompt of a round shows, where every reply spends its limit.

    A conversation has its agent's own replies whole.
    """
    others = 2 if asks_pairs(debate, round_) else debate.num_agents - debate.conversation
    shown = sum(map(len, groups_shown(debate, round_))) * others * debate.max_tokens
    own = round_ * (debate.max_tokens + debate.thinking_tokens)
    return shown + own if debate.conversation else shown


class LiveBytes(TorchDispatchMode):
    """Count the bytes of all tensors made inside: ``live`` now, ``peak`` at most so far.

    What a model holds is not counted, however it is looked at: a view of a weight is no new tensor.
    """

    def __init__(self, model: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.live = self.peak = 0
        held = () if model is None else (*model.parameters(), *model.buffers())
        self._seen = {tensor.untyped_storage()._cdata for tensor in held}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tree_map_only(torch.Tensor, self._count, result)
        return result

    def _count(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._seen:
            self._seen.add(key)
            self.live += size
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self.live -= size


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes by what holds them. Sampling and learning take turns; weights, reference and optimizer stay.

    ``sampling``: the cache and all else that sampling makes, at its peak; ``learning``: what one pass of the
    learner makes, at its peak, with the gradients. ``engine``: the share of another engine, which samples.
    ``frozen``: what is kept of the weights that training began with, for frozen seats.
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
        """Bytes at the fullest moment of a step."""
        return self.staying + max(self.sampling, self.learning)

    @property
    def staying(self) -> int:
        """Bytes that are held all the time."""
        return self.weights + self.reference + self.optimizer + self.engine + self.frozen


def memory_of(
    model: Any, load: Load, config: Config, *, on_gpu: bool | None = None, engine: int | None = None
) -> Memory:
    """Return how many bytes a step holds, from doing its largest parts with tensors that have no data.

    torch's fake tensors have a type, a shape and a device, and take no memory. What real ones would take is
    counted operation by operation, so any model and any setting is counted as it is. What a library and its
    allocator hold beside tensors is not counted. The optimizer holds AdamW's two moments. RuntimeError for a
    model whose forward pass looks at the data.

    ``on_gpu``: whether types are those of a GPU; None asks the model where it is. ``engine``: bytes here
    of an engine that samples in place of the model, None without one.
    """
    fakes = FakeTensorMode(allow_non_fake_inputs=True)
    fake = _without_data(model, fakes)
    learner = config.learner
    weights = _bytes(model.parameters()) + _bytes(model.buffers())
    trained = _bytes(parameter for parameter in model.parameters() if parameter.requires_grad)
    batch = (
        load.packed(fake.device)
        if load.together > 1
        else load.batch(load.longest, load.micro_tokens, fake.device)
    )
    passes = 2 if load.read_tokens > load.micro_tokens else 1  # gradients stay from the first to the others
    with fakes:
        compute = compute_type(model, learner.compute, on_gpu=on_gpu)
        sampling = 0 if engine is not None else _sampling_bytes(fake, load, compute)
        learning = _learning_bytes(fake, batch, learner, passes, on_gpu)
    unpacked = 0
    if config.model.quantization != "none":
        held = quantized_bytes(model, config.model.quantization)
        weights, unpacked = held.total + _bytes(model.buffers()), held.largest
    return Memory(
        weights=weights,
        reference=_reference_bytes(model, weights, trained, learner),
        optimizer=2 * trained,
        sampling=sampling + unpacked * bool(sampling),
        learning=learning + unpacked,
        engine=engine or 0,
        frozen=trained if engine is None and "frozen" in config.debate.seats else 0,
    )


def of_first_rank(memory: Memory, model: Any, ranks: int, *, samples: bool) -> Memory:
    """Return what the first of several ranks holds, of what a process alone does.

    That is its share of weights, reference, optimizer and gradients; whole are two layers at a time and what
    is outside of the layers, each with its gradient. Where the model itself ``samples``, it is there whole.
    """
    layers = [
        list(one.parameters()) for one in model.modules() if isinstance(one, GradientCheckpointingLayer)
    ]
    inside = {id(parameter) for layer in layers for parameter in layer}
    outside = [parameter for parameter in model.parameters() if id(parameter) not in inside]
    whole = 2 * max(map(_with_gradients, layers), default=0) + _with_gradients(outside)
    trained = memory.optimizer // 2
    return replace(
        memory,
        weights=ceil(memory.weights / ranks) + samples * memory.weights,
        reference=ceil(memory.reference / ranks),
        optimizer=ceil(memory.optimizer / ranks),
        sampling=samples * memory.sampling,
        learning=max(memory.learning - trained, 0) + ceil(trained / ranks) + whole,
    )


def _with_gradients(parameters: Sequence[torch.nn.Parameter]) -> int:
    return _bytes(parameters) + _bytes(parameter for parameter in parameters if parameter.requires_grad)


def _reference_bytes(model: Any, weights: int, trained: int, learner: LearnerConfig) -> int:
    """Return what the reference holds: of an adapter nothing, or a copy of it once it has been refreshed."""
    if not learner.needs_reference:
        return 0
    if hasattr(model, "peft_config"):
        return trained if learner.reference_every else 0
    return weights


def _without_data(model: Any, fakes: FakeTensorMode) -> Any:
    """Return a copy of a model whose tensors have no data; one on the "meta" device counts as on a CPU."""
    with FakeCopyMode(fakes):
        fake = copy.deepcopy(model)
    made: dict[int, torch.Tensor] = {}
    for tensors in (held for module in fake.modules() for held in (module._parameters, module._buffers)):
        for name, tensor in tensors.items():
            if tensor is not None and tensor.is_meta:
                tensors[name] = made.setdefault(id(tensor), _on_cpu(tensor, fakes))
    return fake


def _on_cpu(tensor: torch.Tensor, fakes: FakeTensorMode) -> torch.Tensor:
    with fakes:
        empty = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    parameter = isinstance(tensor, torch.nn.Parameter)
    return torch.nn.Parameter(empty, requires_grad=tensor.requires_grad) if parameter else empty


def _bytes(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@torch.no_grad()
def _sampling_bytes(model: Any, load: Load, compute: torch.dtype | None) -> int:
    """Return the peak of reading the longest prompts, or of the last token of their replies."""
    products = partial(torch.autocast, model.device.type, compute, enabled=compute is not None)
    prompt, reply = max(load.rounds)
    rows = torch.zeros(load.sampled, dtype=torch.long, device=model.device)
    peaks: list[int] = []
    for read, more in ((prompt, reply), (prompt + reply - 1, 1)):
        with LiveBytes(model) as bytes_, products():
            steps = steps_for(model)
            steps.prefill(rows[:, None].expand(-1, read), rows, more)
            if more == 1:  # reading so much at once is not what sampling does: only the step counts
                bytes_.peak = bytes_.live
                steps.step(rows)
        peaks.append(bytes_.peak)
        del steps
    return max(peaks)


def learning_bytes(model: Any, rows: Sequence[Row], config: LearnerConfig) -> int:
    """Return the bytes that learning from these rows makes at its peak, with the gradients."""
    batches = micro_batches(rows, config.micro_batch_tokens, device=model.device, share=config.share_prefixes)
    largest = max(batches, key=lambda batch: batch.positions)
    fakes = FakeTensorMode(allow_non_fake_inputs=True)
    fake = _without_data(model, fakes)
    with fakes:
        return _learning_bytes(fake, largest, config, min(len(batches), 2), None)


def _learning_bytes(
    model: Any, batch: MicroBatch, config: LearnerConfig, passes: int, on_gpu: bool | None
) -> int:
    """Return the peak of forward and backward passes of the learner, with the gradients."""
    if config.gradient_checkpointing is True:
        model.gradient_checkpointing_enable(CHECKPOINTING)
    train_only_checkpointed_layers(model)
    for parameter in model.parameters():
        parameter.grad = None
    entropy_gradient = config.entropy_bonus > 0
    compute = compute_type(model, config.compute, on_gpu=on_gpu)
    with ExitStack() as stack:
        # Without data transformers cannot see that a row is one sequence, and makes a mask for nothing.
        stack.enter_context(
            mock.patch.object(masking_utils, "find_packed_sequence_indices", return_value=None)
        )
        if on_gpu:
            stack.enter_context(mock.patch.multiple(head, **HEAD_OF_A_GPU))
            stack.enter_context(mock.patch.dict(head.TILE, cpu=head.TILE["cuda"]))
        stack.enter_context(reading(model, share=batch.tree is not None, compute=compute))
        bytes_ = stack.enter_context(LiveBytes(model))
        for _ in range(passes):
            logprobs, entropy = action_logprobs(
                model, batch, entropy_gradient=entropy_gradient, compute=compute
            )
            (logprobs.sum() + entropy.sum() if entropy_gradient else logprobs.sum()).backward()
            del logprobs, entropy
    return bytes_.peak


HEAD_OF_A_GPU = {
    "_widens": lambda _, product: product.itemsize < 4,
    "_add_product": lambda total, *_, **__: total,
}
"""What a head does on a GPU, whose products of 16 bits are float32 without copies of what is multiplied."""


def memory_there(device: torch.device) -> int:
    """Return the bytes of the device's memory, the machine's for a CPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def in_words(memory: Memory, there: int) -> str:
    """Return what is needed of the ``there`` bytes that a device has, and by what."""
    names = ("engine", "weights", "frozen", "reference", "optimizer", "sampling", "learning")
    parts = ", ".join(f"{name} {size(getattr(memory, name))}" for name in names if getattr(memory, name))
    phase = "sampling" if memory.sampling > memory.learning else "learning"
    return f"about {size(memory.peak)} of {size(there)}, at its fullest in {phase}: {parts}"


def cure(memory: Memory, config: Config, there: int) -> str:
    """Return what to lower where memory does not do."""
    if memory.sampling > memory.learning:
        if memory.engine:  # it sleeps while the learner learns, and all of its sampling is its share
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
    """Return a number of bytes with its unit.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
