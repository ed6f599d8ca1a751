"""A conversation with a model: what is said, what is still known, and a reply to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from debate import Message, Policy, SampleRequest
from debate.concurrency import run_async
from debate.parsing.sections import find_sections
from debate.policy import context_limit, opens_thinking, token_counter
from debate.seeds import derive_seed
from debate.types import TurnId
from debate.values import whole_text


@dataclass(slots=True)
class Talk:
    """A conversation with a policy; ``everything`` is all that was said, ``messages`` what is still known."""

    policy: Policy
    system: str
    max_tokens: int
    temperature: float
    top_p: float
    seed: int
    messages: list[Message] = field(default_factory=list[Message])
    everything: list[Message] = field(default_factory=list[Message])

    def answer(self, text: str) -> str:
        """Return the reply to a message; the oldest exchanges are forgotten where the context is full.

        A message that does not fit alone is not said, and the reply says so.
        """
        limit, count = context_limit(self.policy), token_counter(self.policy)
        most = self.max_tokens if limit is None else min(self.max_tokens, max(1, limit // 2))
        own = Message("user", whole_text(text))
        room = None if limit is None else limit - most
        while room is not None and self.messages and count(self._shown([*self.messages, own])) > room:
            del self.messages[:2]
        if room is not None and (length := count(self._shown([own]))) > room:
            return f"(a message of {length:,} tokens is too long for the context of {limit:,}: not said)"
        number, shown = len(self.everything) // 2, self._shown([*self.messages, own])
        request = SampleRequest(
            messages=shown,
            temperature=self.temperature,
            max_tokens=most,
            stop=(),
            seed=derive_seed(self.seed, "chat", number),
            debate="chat",
            turn=TurnId(0, number),
            top_p=self.top_p,
        )
        reply = run_async(self.policy.sample(request)).whole()
        thinking = find_sections(reply.text, in_thinking=opens_thinking(self.policy, shown)).thinking
        said = reply.text[thinking.end if thinking else 0 :].strip()
        exchange = [own, Message("assistant", said)]
        self.messages += exchange
        self.everything += exchange
        return said + (" [...]" if reply.stop_reason == "length" else "")

    def _shown(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return (*([Message("system", self.system)] if self.system else []), *messages)
