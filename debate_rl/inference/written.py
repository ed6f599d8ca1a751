"""A reply so far, while programs run in it: its tokens, or its text if the engine returns no tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from debate.policy import context_limit, token_counts
from debate.tools import FENCE
from debate.types import Begun, Call, Completion, Policy, SampleRequest, StopReason

THINK_END = "</think>"
WRITER = ("written", "read", "is_end")


class Written:
    """A reply by an engine that returns no tokens. Without counts of tokens, a token is three characters."""

    def __init__(self, first: Completion, request: SampleRequest) -> None:
        self._first, self._newest, self._request = first, first, request
        self._spent = 0
        self.text = ""

    def take(self, piece: Completion) -> None:
        """Add what the model wrote."""
        self._newest = piece
        self._spent += token_counts(piece)[1] or self.cost(piece.text)
        self.text += piece.text

    def cut(self, end: int) -> bool:
        """Remove the text from ``end`` on, if possible. Return whether it was removed."""
        self.text = self.text[:end]
        return True

    def add(self, text: str) -> None:
        """Append text that the model did not write."""
        self.text += text
        self._spent += self.cost(text)

    def cost(self, text: str) -> int:
        """Return how many tokens a text has."""
        return -(-len(text) // 3)

    def left(self) -> int:
        """Return how many tokens remain. Thinking counts too, since the engine may not report its length."""
        return self._request.max_tokens + self._request.thinking_tokens - self._spent

    def at_fence(self, stop: Sequence[str]) -> bool:
        """Return whether a fence ended the newest piece: no end token did, and none of these strings."""
        return self._newest.text.endswith(FENCE) and not self._newest.text.endswith(tuple(stop))

    def begun(self) -> Begun:
        """Return the beginning from which the model continues."""
        return Begun((), self.text)

    def completion(self, reason: StopReason, calls: tuple[Call, ...]) -> Completion:
        """Return the complete reply. If it has programs, it has only a count of its tokens."""
        first = self._first
        if self._newest is first and not calls:
            return replace(first, text=self.text, calls=())
        bare = Completion((), (), (), self.text, reason, first.policy_version)
        counts = {"prompt_count": token_counts(first)[0] or None, "token_count": self._spent}
        return replace(bare, **counts, calls=calls)


class WrittenTokens(Written):
    """A reply in tokens. The model continues from exactly these tokens, and every sampled one is kept."""

    def __init__(self, policy: Any, first: Completion, request: SampleRequest) -> None:
        super().__init__(first, request)
        self._policy = policy
        self._tokens: tuple[int, ...] = ()
        self._logprobs: tuple[float, ...] = ()
        self._offsets: tuple[int, ...] = ()
        self._forced: tuple[int, ...] = ()
        self._thought: int | None = None

    def take(self, piece: Completion) -> None:
        """Add what the model wrote."""
        self._extend(piece.tokens, piece.logprobs, piece.forced)

    def cut(self, end: int) -> bool:
        """Return False: every sampled token is kept."""
        return False

    def add(self, text: str) -> None:
        """Add forced tokens. An end token before them is removed, because the reply continues."""
        if self._policy.is_end(self._tokens[-1]):
            self._tokens, self._logprobs = self._tokens[:-1], self._logprobs[:-1]
        added = self._policy.written(text)
        self._extend(added, (0.0,) * len(added), range(len(added)))

    def cost(self, text: str) -> int:
        """Return how many tokens a text has."""
        return len(self._policy.written(text))

    def left(self) -> int:
        """Return how many tokens remain. Thinking has its own limit, and the context limits everything."""
        if self._thought is None:
            behind = self.text.partition(THINK_END)[0] + THINK_END if self._request.thinking_tokens else ""
            self._thought = sum(offset < len(behind) for offset in self._offsets)
        left = self._request.max_tokens + self._thought - len(self._tokens)
        limit = context_limit(self._policy)
        used = len(self._first.prompt_tokens) + len(self._tokens)
        return left if limit is None else min(left, limit - used)

    def at_fence(self, stop: Sequence[str]) -> bool:
        """Return whether a fence ended the newest piece: no end token did, and none of these strings."""
        ended = self._policy.is_end(self._tokens[-1])
        return not ended and self._completes(FENCE) and not any(map(self._completes, stop))

    def begun(self) -> Begun:
        """Return the beginning from which the model continues."""
        return Begun(self._tokens, self.text)

    def completion(self, reason: StopReason, calls: tuple[Call, ...]) -> Completion:
        """Return the complete reply."""
        parts = {"tokens": self._tokens, "logprobs": self._logprobs, "offsets": self._offsets}
        how = {"text": self.text, "stop_reason": reason, "forced": self._forced, "calls": calls}
        return replace(self._first, **parts, **how)

    def _extend(self, tokens: tuple[int, ...], logprobs: tuple[float, ...], forced: Sequence[int]) -> None:
        at = len(self._tokens)
        self._tokens, self._logprobs = self._tokens + tokens, self._logprobs + logprobs
        self._forced += tuple(at + index for index in forced)
        self.text, self._offsets = self._policy.read(self._tokens)

    def _completes(self, string: str) -> bool:
        """Return whether the newest token completes a string."""
        return string in self.text[max(0, self._offsets[-1] - len(string) + 1) :]


def written_by(policy: Policy, first: Completion, request: SampleRequest) -> Written:
    """Return an empty reply: in tokens if the first piece has tokens and the policy can encode text."""
    if first.tokens and all(hasattr(policy, name) for name in WRITER):
        return WrittenTokens(policy, first, request)
    return Written(first, request)
