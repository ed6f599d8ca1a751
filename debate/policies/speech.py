"""Between messages and tokens, whoever samples the tokens: prompts, thinking, room, and the completion."""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from debate.policies.decoding import TokenText
from debate.policies.encoding import EncodingError, PromptEncoder
from debate.policies.sampler import Draw, Drawn
from debate.policies.thinking import CLOSING, OPENING, THINK_END, Thought, thinking_draw, thought_of
from debate.types import Completion, Message, SampleRequest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_NOTHING = Drawn((), (), "stop")


class Speech:
    """How one model is spoken to and read; see ``LocalPolicy`` for the settings. ``ends`` end a reply.

    A request is answered by up to two draws: ``thinking_draw`` where it has a budget for thinking, and then
    ``answer_draw`` behind it. Either is None where there is nothing to sample.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        ends: frozenset[int],
        chat: bool | None = None,
        thinking: bool = False,
        raw_prompt: Callable[[tuple[Message, ...]], str] | None = None,
        context_tokens: int | None = None,
    ) -> None:
        chat = bool(tokenizer.chat_template) if chat is None else chat
        self.text, self.ends, self.context_tokens = TokenText(tokenizer), ends, context_tokens
        self._encoder = PromptEncoder(tokenizer, chat=chat, thinking=thinking, raw_prompt=raw_prompt)
        self._thinking = thinking
        self._opening, self._closing = map(self._encoder.template_ids, (OPENING, CLOSING))
        if thinking and THINK_END not in self.text.decode(self._closing):
            raise EncodingError(f"the tokenizer cannot write {THINK_END}; set debate.thinking_tokens = 0")

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the prompt's ids (P,), up to where the reply begins."""
        prompt = self._encoder.encode(messages)
        opens = self._thinking and not self._encoder.opens_thinking(messages)
        return prompt + self._opening if opens else prompt

    def opens_thinking(self, messages: Sequence[Message]) -> bool:
        """Return whether the prompt that these messages make ends with ``<think>``."""
        return self._thinking or self._encoder.opens_thinking(messages)

    def thinking_draw(self, request: SampleRequest, prompt: tuple[int, ...]) -> Draw | None:
        """Return what is to be sampled for the thinking; None where the request has no budget for it."""
        if not (request.thinking_tokens and self.opens_thinking(request.messages)):
            return None
        return thinking_draw(request, prompt, room=self._room(request, prompt) - 1, closing=self._closing)

    def thought(self, drawn: Drawn | None) -> Thought:
        """Return the thinking that was drawn, with its end."""
        return Thought() if drawn is None else thought_of(drawn, closing=self._closing, ends=self.ends)

    def answer_draw(self, request: SampleRequest, prompt: tuple[int, ...], thought: Thought) -> Draw | None:
        """Return what is to be sampled behind the thinking; None where the reply has ended in it."""
        if thought.over:
            return None
        before = prompt + thought.tokens
        return Draw(
            prompt=before,
            max_tokens=min(request.max_tokens, self._room(request, before)),
            temperature=request.temperature,
            seed=request.seed,
            stop=request.stop,
            thinking=False if thought.tokens else self.opens_thinking(request.messages) or None,
        )

    def completion(
        self, prompt: tuple[int, ...], thought: Thought, answer: Drawn | None, *, version: int
    ) -> Completion:
        """Return the completion; the end token is in the tokens and not in the text."""
        answer = answer or _NOTHING
        tokens = thought.tokens + answer.tokens
        ended = bool(tokens) and tokens[-1] in self.ends
        text, offsets = self.text.text_and_offsets(tokens[:-1] if ended else tokens)
        return Completion(
            prompt_tokens=prompt,
            tokens=tokens,
            logprobs=thought.logprobs + answer.logprobs,
            text=text,
            stop_reason=answer.stop_reason,
            policy_version=version,
            offsets=(*offsets, len(text)) if ended else offsets,
            forced=thought.forced_places,
        )

    def _room(self, request: SampleRequest, prompt: tuple[int, ...]) -> int:
        """Return how many tokens fit behind the prompt; ValueError when there is no room."""
        asked = request.thinking_tokens + request.max_tokens
        room = asked if self.context_tokens is None else self.context_tokens - len(prompt)
        if not prompt or room < 1:
            raise ValueError(
                f"debate {request.debate}, turn {request.turn}: a prompt of {len(prompt)} tokens "
                f"does not fit a context of {self.context_tokens}; shorten it or raise context_tokens"
            )
        return room


def refuse_impossible(request: SampleRequest) -> None:
    """Raise ValueError for a request that nothing could be sampled for as asked."""
    needs = {
        "max_tokens": (request.max_tokens >= 1, "1 or more"),
        "temperature": (isfinite(request.temperature) and request.temperature >= 0, "finite, and 0 or more"),
        "seed": (request.seed >= 0, "0 or more"),
    }
    for name, (fits, told) in needs.items():
        if not fits:
            place = f"debate {request.debate}, turn {request.turn}"
            raise ValueError(f"{place}: {name} {getattr(request, name)} must be {told}")


def ids_of_ends(*sources: object) -> frozenset[int]:
    """Return every id that ends a reply, by what these configurations and tokenizers say.

    >>> from types import SimpleNamespace as Said
    >>> sorted(ids_of_ends(Said(eos_token_id=3), Said(eos_token_id=[7, 3]), Said(eos_token_id=None), None))
    [3, 7]
    """
    found: set[int] = set()
    for source in sources:
        ids = getattr(source, "eos_token_id", None)
        found.update([ids] if isinstance(ids, int) else ids or [])
    return frozenset(found)
