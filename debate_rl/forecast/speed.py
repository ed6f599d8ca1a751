"""About how much time a step and an evaluation take, at a speed that a probe of the model measured."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from debate_rl.config import Config
from debate_rl.forecast.estimate import Load
from debate_rl.forecast.passes import learner_passes
from debate_rl.inference.sampler import steps_for
from learner.update.forward import action_logprobs


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
    """Return about how long a step takes at this speed."""
    passes = learner_passes(config.learner, adapter=adapter)
    return Seconds(sampling_seconds(load, speed), load.read_tokens * passes / speed.score)


def sampling_seconds(load: Load, speed: Speed) -> float:
    """Return about how long all replies take: their prompts are read, then each batch goes token by token."""
    batches = -(-load.replies // load.sampled)
    return sum(
        load.replies * prompt / speed.read + batches * reply * speed.step_s for prompt, reply in load.rounds
    )


def evaluation_seconds(load: Load, speed: Speed, config: Config, problems: int) -> float:
    """Return about how long an evaluation takes: a debate of each problem, and as many tokens alone."""
    replies = problems * config.debate.num_agents
    sampled = min(config.train.sample_batch_size, replies)
    debates = replace(load, replies=replies, sampled=sampled)
    alone = replace(debates, rounds=load.rounds[:1] * len(load.rounds))
    return sampling_seconds(debates, speed) + sampling_seconds(alone, speed)


PROBED_TOKENS = 2048
"""Tokens that the probe reads at a time, at most."""
PROBED_STEPS = 4


@torch.no_grad()
def probe(model: Any, load: Load) -> Speed:
    """Measure a model: one pass over a few rows, and a few steps of sampling. Nothing of it is random."""
    batch = load.batch(min(load.longest, 512), min(load.micro_tokens, PROBED_TOKENS), model.device)
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

    step_s = _seconds(several, model.device) / PROBED_STEPS
    return Speed(count / read, count / score, step_s)


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


def limit_of(model: Any, load: Load, device: torch.device) -> Speed:
    """Return a speed that no run exceeds: that of matrix products, and of reading the weights, timed here.

    A token costs 2 operations for each weight of the layers [arXiv 2001.08361], and one more token of all
    replies needs every such weight once. ``model`` may be without data.
    """
    every = list(model.parameters())
    held = sum(p.numel() * p.element_size() for p in every)
    side = 8192 if device.type == "cuda" else 1024
    square = torch.ones(side, side, dtype=every[0].dtype, device=device)
    block = torch.ones(1 << 26, device=device)
    tokens = side**3 / _seconds(lambda: square @ square, device) / weights_of_layers(model)
    copied = 2 * block.nbytes / _seconds(block.clone, device)
    return Speed(tokens, tokens, max(held / copied, load.sampled / tokens))


def weights_of_layers(model: Any) -> int:
    """Return how many numbers a model has between its embeddings."""
    ends = model.get_input_embeddings().weight, model.get_output_embeddings().weight  # perhaps the same
    outside = sum({id(end): end.numel() for end in ends}.values())
    return sum(parameter.numel() for parameter in model.parameters()) - outside


def evaluations_of(config: Config, held_out: int, *, done: int = 0) -> int:
    """Return how many evaluations a run still makes with so many held-out problems, after ``done`` steps."""
    steps = config.train.steps
    left = range(done + 1 if done else 0, steps + 1)
    return sum(config.held_out.due(step, steps) for step in left) if held_out else 0
