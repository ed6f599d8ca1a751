"""A discrete-event model of debate RL on many GPUs: what limits a step, and how stale its debates are.

A sampling GPU runs all of its requests as one batch: one iteration adds a token to each of b requests and
takes ``iteration_s + b * sequence_s`` seconds. Reading prompts delays the whole batch. A debate runs on one
GPU. Its agents reply at the same time, and its next round begins when all of them are done.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

import simpy

Turn = tuple[int, int]
"""Prompt tokens and reply tokens of one turn."""
Lengths = tuple[tuple[Turn, ...], ...]
"""The turns of one debate by round."""


@dataclass(frozen=True)
class Speed:
    """The speed of a GPU. The defaults are computed for an 8B model in bfloat16 on an H100, not measured.

    An iteration reads the weights (16 GB at 3.35 TB/s, 5 ms) and has an overhead of 3 ms. A sequence of 2,000
    tokens adds .3 GB of cache and 16 GFLOP, .13 ms. Prompts are read at 40% of 989 TFLOP/s. Learning is what
    one H100 measured with an adapter (experiments/results/one_h100.md).
    """

    iteration_s: float = 0.008
    sequence_s: float = 0.00013
    prompt_tokens_per_s: float = 24_000.0
    most_sequences: int = 256
    learnt_tokens_per_s: float = 6_000.0
    publish_s: float = 3.0


@dataclass(frozen=True)
class Plan:
    """Steps of ``debates`` debates on ``gpus`` GPUs, of which ``learners`` learn.

    ``learners`` 0: all GPUs sample and learn in turn. ``lock_step``: a round begins when the previous round
    of all debates is done. ``async_level``: how many steps sampling may be ahead of learning; needs learners.
    """

    gpus: int
    debates: int
    learners: int = 0
    lock_step: bool = False
    async_level: int = 0
    steps: int = 3
    seed: int = 0


@dataclass
class Outcome:
    """What a plan achieves.

    ``step_s``: seconds of a step. ``tokens_per_s``: generated tokens. ``idle``: the fraction of GPU time in
    which a GPU neither samples nor learns. ``staleness``: the mean number of updates between the beginning of
    a step's debates and learning from them, over the second half of the steps.
    """

    step_s: float
    tokens_per_s: float
    idle: float
    staleness: float


class SamplingGpu:
    """A batch of requests that advance by one token together."""

    def __init__(self, env: simpy.Environment, speed: Speed) -> None:
        self._env, self._speed = env, speed
        self._active: list[tuple[float, int, simpy.Event]] = []
        self._waiting: list[tuple[Turn, simpy.Event]] = []
        self._number = count()
        self._position = self._reading = self._since = self.busy_s = 0.0
        self._changed = env.event()
        env.process(self._run())

    def reply(self, turn: Turn) -> simpy.Event:
        """Return the event of a finished reply."""
        done = self._env.event()
        self._waiting.append((turn, done))
        if not self._changed.triggered:
            self._changed.succeed()
        return done

    def _run(self) -> Generator[simpy.Event, Any, None]:
        while True:
            self._advance()
            while self._waiting and len(self._active) < self._speed.most_sequences:
                (prompt, tokens), done = self._waiting.pop(0)
                self._reading += prompt / self._speed.prompt_tokens_per_s
                heappush(self._active, (self._position + tokens, next(self._number), done))
            self._changed = self._env.event()
            if self._active:
                left = self._active[0][0] - self._position
                yield self._env.timeout(self._reading + left * self._iteration()) | self._changed
            else:
                yield self._changed

    def _iteration(self) -> float:
        return self._speed.iteration_s + len(self._active) * self._speed.sequence_s

    def _advance(self) -> None:
        """Move the batch to the present, and finish the replies that are done."""
        passed, self._since = self._env.now - self._since, self._env.now
        if self._active:
            self.busy_s += passed
            read = min(passed, self._reading)
            self._reading -= read
            self._position += (passed - read) / self._iteration()
        while self._active and self._active[0][0] <= self._position + 1e-6:
            heappop(self._active)[2].succeed()


@dataclass
class _Run:
    env: simpy.Environment
    plan: Plan
    speed: Speed
    stored: Sequence[Lengths]
    samplers: list[SamplingGpu]
    version: int = 0
    learnt: list[float] = field(default_factory=list)
    busy_s: float = 0.0
    tokens: int = 0
    lags: list[int] = field(default_factory=list)
    published: simpy.Event = field(init=False)

    def __post_init__(self) -> None:
        self.published = self.env.event()


def simulate(plan: Plan, stored: Sequence[Lengths], speed: Speed | None = None) -> Outcome:
    """Return the outcome of a plan; each debate has the lengths of a stored one, drawn by the seed.

    ValueError for a plan that cannot be.
    """
    sampling = plan.gpus - plan.learners
    if sampling < 1 or plan.learners < 0 or plan.debates < 1 or plan.steps < 1 or not stored:
        raise ValueError(f"{plan}: needs a GPU that samples, a debate and a step")
    if plan.async_level and not plan.learners:
        raise ValueError(f"{plan}: sampling ahead of learning needs GPUs that only learn")
    env, speed = simpy.Environment(), speed or Speed()
    run = _Run(env, plan, speed, stored, [SamplingGpu(env, speed) for _ in range(sampling)])
    batches: simpy.Store = simpy.Store(env)
    env.process(_sampling(run, batches))
    env.run(until=env.process(_learning(run, batches)))
    busy = run.busy_s + sum(one.busy_s for one in run.samplers)
    first, last = (run.learnt[0], run.learnt[-1]) if plan.steps > 1 else (0.0, run.learnt[-1])
    step_s = (last - first) / max(plan.steps - 1, 1)
    lags = run.lags[plan.steps // 2 :]
    idle = 1 - busy / (env.now * plan.gpus)
    return Outcome(step_s, run.tokens / plan.steps / step_s, idle, sum(lags) / len(lags))


def _sampling(run: _Run, batches: simpy.Store) -> Generator[simpy.Event, Any, None]:
    rng = Random(run.plan.seed)
    for step in range(run.plan.steps):
        while run.version < step - run.plan.async_level:
            yield run.published
        begun = run.version
        debates = [run.stored[rng.randrange(len(run.stored))] for _ in range(run.plan.debates)]
        if run.plan.lock_step:
            for round_ in range(max(map(len, debates))):
                turns = [(i, turn) for i, one in enumerate(debates) for turn in one[round_ : round_ + 1]]
                yield run.env.all_of([run.env.process(_round(run, i, turn)) for i, turn in turns])
        else:
            yield run.env.all_of([run.env.process(_debate(run, i, one)) for i, one in enumerate(debates)])
        batches.put((begun, debates))


def _debate(run: _Run, number: int, rounds: Lengths) -> Generator[simpy.Event, Any, None]:
    for turns in rounds:
        yield run.env.process(_round(run, number, turns))


def _round(run: _Run, number: int, turns: Sequence[Turn]) -> Generator[simpy.Event, Any, None]:
    gpu = run.samplers[number % len(run.samplers)]
    run.tokens += sum(tokens for _, tokens in turns)
    yield run.env.all_of([gpu.reply(turn) for turn in turns])


def _learning(run: _Run, batches: simpy.Store) -> Generator[simpy.Event, Any, None]:
    learners = run.plan.learners or run.plan.gpus
    for _ in range(run.plan.steps):
        begun, debates = yield batches.get()
        run.lags.append(run.version - begun)
        read = sum(prompt + tokens for one in debates for turns in one for prompt, tokens in turns)
        seconds = read / (run.speed.learnt_tokens_per_s * learners)
        yield run.env.timeout(seconds + run.speed.publish_s)
        run.busy_s += seconds * learners
        run.version += 1
        run.learnt.append(run.env.now)
        done, run.published = run.published, run.env.event()
        done.succeed()


def critical_path_s(stored: Sequence[Lengths], speed: Speed) -> float:
    """Return the seconds of the slowest stored debate on a GPU of its own, which no more GPUs shorten."""

    def alone(rounds: Lengths) -> float:
        total = 0.0
        for turns in rounds:
            total += sum(prompt for prompt, _ in turns) / speed.prompt_tokens_per_s
            position, ends = 0, sorted(tokens for _, tokens in turns)
            for index, end in enumerate(ends):
                total += (end - position) * (speed.iteration_s + (len(ends) - index) * speed.sequence_s)
                position = end
        return total

    return max(map(alone, stored))
