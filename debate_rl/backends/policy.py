"""A policy that samples with the model of a service."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from debate_rl.backends.service import ServiceError
from debate_rl.inference.speech import speech_of
from debate_rl.inference.vllm_requests import Part, RequestingPolicy


class ServicePolicy(RequestingPolicy):
    """Prompts, stops, thinking and seeds are as in LocalPolicy. ``speech``: settings of ``speech_of``."""

    def __init__(self, name: str, **speech: Any) -> None:
        self.version = 0
        self._speech = speech_of(name, **speech)

    def _part(self, tokens: Sequence[int], logprobs: Sequence[float], sampling: Mapping[str, Any]) -> Part:
        """Return a reply up to the end of its first stop string.

        Services report why a reply ended in different ways, so the reason is read from the tokens.
        ServiceError if a token has no log-probability.
        """
        if len(logprobs) != len(tokens):
            raise ServiceError(f"the service sent {len(logprobs)} log-probabilities for {len(tokens)} tokens")

        def stopped(length: int) -> bool:
            text = self._speech.text.decode(tokens[:length])
            return any(stop in text for stop in sampling["stop"])

        if stopped(len(tokens)):
            length = bisect_left(range(len(tokens) + 1), True, key=stopped)
            return Part(tuple(tokens[:length]), tuple(logprobs[:length]), "stop")
        ended = bool(tokens) and tokens[-1] in sampling["stop_token_ids"]
        return Part(tuple(tokens), tuple(logprobs), "stop" if ended else "length")
