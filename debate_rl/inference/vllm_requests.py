"""The requests to a vLLM engine for one reply, in this process or by HTTP, and the adapters they use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from debate.seeds import derive_seed
from debate.types import Completion, SampleRequest, StopReason
from debate_rl.inference.sampler import THINK_END, THINK_START, Draw, Drawn
from debate_rl.inference.speech import SpeakingPolicy, refuse_impossible

A = TypeVar("A")
COLDEST = 0.01
"""vLLM silently raises a positive temperature below this value to this value."""


@dataclass(frozen=True, slots=True)
class Part:
    """The result of one request: ids (T,), log-probabilities (T,) in nats, and vLLM's finish reason."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: str | None


Ask = Callable[[list[int], dict[str, Any]], Awaitable[Part]]
"""A function that sends one request: a prompt's ids and vLLM's sampling settings."""


class RequestingPolicy(SpeakingPolicy):
    """A policy over a vLLM engine, with the prompts, stop strings, thinking and seeds of LocalPolicy."""

    async def _reply(self, request: SampleRequest, ask: Ask, *, version: int) -> Completion:
        refuse_impossible(request)
        if 0 < request.temperature < COLDEST:
            raise ValueError(f"temperature {request.temperature}: must be 0 or at least {COLDEST} for vLLM")
        prompt = self._speech.prompt(request)
        thinking = self._speech.thinking_draw(request, prompt)
        thought = self._speech.thought(None if thinking is None else await self._drawn(thinking, ask))
        draw = self._speech.answer_draw(request, prompt, thought)
        answer = None if draw is None else await self._drawn(draw, ask)
        return self._speech.completion(prompt, thought, answer, version=version)

    async def _drawn(self, draw: Draw, ask: Ask) -> Drawn:
        """Sample a draw. If a stop string ended a request within a think block, sampling continues."""
        tokens: list[int] = []
        logprobs: list[float] = []
        reason: StopReason = "length"
        while len(tokens) < draw.max_tokens:
            part = await ask([*draw.prompt, *tokens], self._sampling(draw, len(tokens)))
            tokens += part.tokens
            logprobs += part.logprobs
            if part.ended != "stop":
                break
            if tokens[-1] in self._speech.ends or not self._thinks(draw, tokens):
                reason = "stop"
                break
        return Drawn(tuple(tokens), tuple(logprobs), reason)

    def _thinks(self, draw: Draw, tokens: list[int]) -> bool:
        """Return whether the reply is still within a leading think block."""
        if draw.thinking is False:
            return False
        text = self._speech.text.decode(tokens)
        return THINK_END not in text and (bool(draw.thinking) or text.lstrip().startswith(THINK_START))

    def _sampling(self, draw: Draw, done: int) -> dict[str, Any]:
        """Return vLLM's sampling settings: no penalties, our stop strings, and log-probabilities."""
        return {
            "temperature": draw.temperature,
            "top_p": draw.top_p,
            "top_k": draw.top_k,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "max_tokens": draw.max_tokens - done,
            "seed": derive_seed(draw.seed, "behind", done) if done else draw.seed,
            "stop": list(draw.stop),
            "stop_token_ids": sorted(self._speech.ends),
            "include_stop_str_in_output": True,
            "skip_special_tokens": False,
            "logprobs": 0,
        }


class Current(Generic[A]):
    """The adapter of new requests. ``remove`` is called with each older adapter after its last request."""

    def __init__(self, first: A, remove: Callable[[A], None]) -> None:
        self.adapter, self._remove = first, remove
        self._using: Counter[A] = Counter()

    @contextmanager
    def kept(self) -> Generator[A]:
        """Yield the current adapter, which is not removed before the block ends."""
        adapter = self.adapter
        self._using[adapter] += 1
        try:
            yield adapter
        finally:
            self._using[adapter] -= 1
            self._remove_unused()

    def replace(self, adapter: A) -> None:
        """Use this adapter for new requests."""
        self._using[self.adapter] += 0
        self.adapter = adapter
        self._remove_unused()

    def _remove_unused(self) -> None:
        for adapter in [one for one, users in self._using.items() if not users and one != self.adapter]:
            del self._using[adapter]
            self._remove(adapter)
