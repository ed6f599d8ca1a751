"""The duration of a run, from its finished steps, a short probe of its model, or a GPU's data sheet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.forecast.memory import Load
from debate_rl.forecast.plan import Plan, evaluations_of
from debate_rl.formatting import counted, duration
from debate_rl.inference.sampler import steps_for
from debate_rl.metrics.step_log import read_metrics, step_seconds
from debate_rl.runs.folder import RunFolder
from debate_rl.runs.weights import load_run_model
from learner.types import Row
from learner.update.batches import collate
from learner.update.config import LearnerConfig
from learner.update.forward import action_logprobs

PROBED_TOKENS, PROBED_STEPS = (
    2048,
    4,
)  # the most tokens that the probe reads at a time; the steps that it samples
LAUNCHES_S, ADAPTER_LAUNCHES_S = 1.10e-3, 1.75e-3
"""Seconds per layer to launch the kernels of a decode step of transformers on a GPU, without and with an
adapter, for any number of replies. Measured with SmolLM2-135M (30 layers) on an H100, torch 2.11,
transformers 5.17: 1,536 decode steps in a step of 53 s with full weights, and of 81 s with an adapter."""
NEAR = 0.1  # the fraction of its nominal memory that a card may lack
UNTIMED = "nothing was timed on this hardware; --plan RUN estimates the time from finished steps of a run"


@dataclass(frozen=True, slots=True)
class Speed:
    """A model's speed. ``read``: prompt tokens per second; ``score``: row tokens per second, to compute the
    log-probabilities of replies; ``step_s``: seconds of a decode step of all replies sampled at a time.
    """

    read: float
    score: float
    step_s: float


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU. ``gib``: its nominal memory; ``found``: the least GiB that a program finds.

    ``operations``: dense bfloat16 operations per second; ``bytes``: bytes read per second.
    """

    name: str
    gib: int
    operations: float
    bytes: float
    found: float

    def speed(self, model: Any, load: Load, *, launches_s: float = 0.0) -> Speed:
        """Return a speed that no run exceeds [arXiv 2001.08361].

        A token costs 2 operations for each weight of the layers, and a decode step of all replies reads
        every weight once, in 16 bits. ``launches_s``: seconds of a decode step's kernel launches.
        """
        ends = model.get_input_embeddings().weight, model.get_output_embeddings().weight  # perhaps the same
        every = sum(parameter.numel() for parameter in model.parameters())
        layers = every - sum({id(end): end.numel() for end in ends}.values())
        tokens = self.operations / 2 / layers
        return Speed(tokens, tokens, max(2 * every / self.bytes, load.sampled / tokens, launches_s))


CARDS = (
    Card("A10G", 24, 70e12, 0.6e12, 22.5),
    Card("L4", 24, 121e12, 0.3e12, 22.5),
    Card("L40S", 48, 362e12, 0.864e12, 45.0),
    Card("H100 SXM", 80, 989e12, 3.35e12, 79.0),
    Card("H200 SXM", 141, 989e12, 4.8e12, 139.0),
)
"""From NVIDIA's data sheets, without sparsity."""


def card_of(there: int) -> Card | None:
    """Return the first of ``CARDS`` with about this many bytes of memory, or None.

    >>> [card and card.name for card in map(card_of, (79 * 2**30, 80 * 2**30, 64 * 2**30))]
    ['H100 SXM', 'H100 SXM', None]
    """
    gib = there / 2**30
    return next((card for card in CARDS if card.gib * (1 - NEAR) <= gib <= card.gib), None)


def learner_passes(learner: LearnerConfig, *, adapter: bool, replies: bool = False) -> float:
    """Return the cost of a learner's step in forward passes over its rows.

    A backward pass costs two forward passes, or one if only an adapter learns [arXiv 2001.08361]. Reference,
    log-probabilities before the first update and gradient checkpointing cost further forward passes.
    ``replies``: whether the run is supervised, with one update per step.

    >>> learner_passes(LearnerConfig(beta=0.0, old_logprobs="sampling"), adapter=False)
    3.0
    >>> learner_passes(LearnerConfig(beta=0.1, gradient_checkpointing=True), adapter=True, replies=True)
    4.0
    """
    once = (2.0 if adapter else 3.0) + (learner.gradient_checkpointing is True)
    reference = float(learner.needs_reference)
    if replies:
        return once + reference
    first = 1 - 1 / learner.minibatches if learner.old_logprobs == "recompute" else 0.0
    return learner.epochs * once + reference + first


def learning_seconds(load: Load, speed: Speed, config: Config) -> float:
    """Return the approximate seconds of learning in a step."""
    return load.read_tokens * learner_passes(config.learner, adapter=config.model.lora_rank > 0) / speed.score


def sampling_seconds(load: Load, speed: Speed) -> float:
    """Return the approximate seconds of sampling all replies: reading prompts, then decoding batches."""
    batches = -(-load.replies // load.sampled)
    return sum(
        load.replies * prompt / speed.read + batches * reply * speed.step_s for prompt, reply in load.rounds
    )


def evaluation_seconds(load: Load, speed: Speed, config: Config, problems: int) -> float:
    """Return the approximate seconds of an evaluation: debates, and as many tokens of single agents."""
    replies = problems * config.debate.num_agents
    debates = replace(load, replies=replies, sampled=min(config.train.sample_batch_size, replies))
    alone = replace(debates, rounds=load.rounds[:1] * len(load.rounds))
    return sampling_seconds(debates, speed) + sampling_seconds(alone, speed) if problems else 0.0


def least_seconds(config: Config, model: Any, load: Load, held_out: int, card: Card) -> tuple[float, float]:
    """Return the seconds of a step and of an evaluation at the peak speed of a card's data sheet.

    Every reply is at its limit, and no prompt is cached. vLLM samples all replies of a step at once, with
    CUDA graphs; transformers samples ``train.sample_batch_size`` at a time and waits for kernel launches.
    """
    if config.model.policy is not None:
        load, launches_s = replace(load, sampled=load.replies), 0.0
        train = config.train.model_copy(update={"sample_batch_size": 1 << 30})
        config = config.model_copy(update={"train": train})
    else:
        each = ADAPTER_LAUNCHES_S if config.model.lora_rank else LAUNCHES_S
        launches_s = model.config.get_text_config().num_hidden_layers * each
    speed = card.speed(model, load, launches_s=launches_s)
    step = sampling_seconds(load, speed) + learning_seconds(load, speed, config)
    return step, evaluation_seconds(load, speed, config, held_out if evaluations_of(config, held_out) else 0)


@torch.no_grad()
def probe(model: Any, load: Load) -> Speed:
    """Measure a model's speed with one pass over a few rows and a few decode steps, without randomness."""
    length = min(load.longest, 512)
    prompt = max(1, min(prompt * length // (prompt + reply) for prompt, reply in load.rounds))
    mask, zeros = np.arange(length) >= prompt, np.zeros(length, np.float32)
    row = Row(np.ones(length, np.int64), mask, zeros, zeros, mask.astype(np.int8), "", 0, TurnId(0, 0))
    batch = collate([row] * -(-min(load.micro_tokens, PROBED_TOKENS) // length), device=model.device)
    count = batch.input_ids.numel()
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    read = _seconds(lambda: base.base_model(input_ids=batch.input_ids, use_cache=False), model.device)
    score = _seconds(lambda: action_logprobs(model, batch), model.device)
    steps = steps_for(model)
    tokens = torch.zeros(load.sampled, dtype=torch.long, device=model.device)
    steps.prefill(tokens[:, None].expand(-1, 8), torch.zeros_like(tokens), 2 * PROBED_STEPS + 1)

    def several() -> None:
        for _ in range(PROBED_STEPS):
            steps.step(tokens)

    return Speed(count / read, count / score, _seconds(several, model.device) / PROBED_STEPS)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of the second of two calls; the first warms up."""
    started = 0.0
    for _ in range(2):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return time.perf_counter() - started


def time_line(needs: Plan, run: Path | None, *, here: bool, model: Any = None) -> str:
    """Return the line about the remaining time: from the run's finished steps, a probe, or a data sheet.

    ``here``: whether the run is planned for this machine. ``model``: its model, None if not loaded.
    """
    config, load = needs.config, needs.load
    metrics = RunFolder(run).metrics if run is not None else None
    if rows := read_metrics(metrics) if metrics is not None and metrics.exists() else []:
        evaluated = [value for row in rows if (value := row.get("seconds/evaluate"))]
        step, each = fmean(map(step_seconds, rows)), fmean(evaluated or [0.0])
        return line_of(
            needs, len(rows), step, each, "about", f"from the {counted(len(rows), 'finished step')}"
        )
    if here and (speed := speed_here(config, load, model)) is not None:
        sampling, learning = sampling_seconds(load, speed), learning_seconds(load, speed, config)
        parts = f" (sampling {duration(sampling)}, learning {duration(learning)})"
        each = evaluation_seconds(load, speed, config, needs.held_out)
        by = "from a short probe of this model"
        return line_of(needs, needs.done, sampling + learning, each, "about", by, parts=parts)
    if (here and not needs.on_gpu) or (card := card_of(needs.there)) is None:
        return f"  time    not known: {UNTIMED}"
    step, each = least_seconds(config, needs.model, load, needs.held_out, card)
    by = sheet_of(card, launches=config.model.policy is None)
    return line_of(needs, needs.done, step, each, "at least", by)


def speed_here(config: Config, load: Load, model: Any = None) -> Speed | None:
    """Return the speed of a model that samples itself; None if it is neither loaded nor tiny."""
    if config.model.policy is not None:
        return None
    if model is None and config.model.tiny is not None:
        model = load_run_model(config)[0]
    return None if model is None else probe(model, load)


def sheet_of(card: Card, *, launches: bool = False) -> str:
    """Return the words about an estimate from a card's data sheet."""
    also = " plus the time to launch kernels" if launches else ""
    return f"from the peak speed in the {card.name} data sheet{also}; nothing was run on that GPU"


def line_of(
    needs: Plan, done: int, step: float, evaluation: float, about: str, by: str, *, parts: str = ""
) -> str:
    """Return the line from the seconds of a step and of an evaluation; ``parts``: words about a step."""
    left = max(needs.config.train.steps - done, 0)
    if not left:
        return f"  time    none: {counted(done, 'step')} of {needs.config.train.steps} are done"
    count = evaluations_of(needs.config, needs.held_out, done=done) if evaluation else 0
    each = f"{counted(left, 'step')} of {duration(step)}{parts}"
    also = f", {counted(count, 'evaluation')} of {duration(evaluation)}" if count else ""
    whole = duration(left * step + count * evaluation)
    return f"  time    {about} {whole}{' left' if done else ''}: {each}{also}; {by}"
