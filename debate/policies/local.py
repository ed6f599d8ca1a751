"""The local policy: a transformers model that answers all live debates together, in batches of fixed shape.

Debates run concurrently and each waits for its own completions. The policy holds requests back until every
live debate is blocked on it, puts them in order of (debate, turn), and samples them in chunks of
``batch_size``. So the batches, and with them every bit of the results, depend on seeds and never on timing.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from debate.policies.decoding import TokenText
from debate.policies.encoding import EncodingError, PromptEncoder
from debate.policies.rendezvous import Rendezvous
from debate.policies.sampler import Draw, Drawn, sample_batch
from debate.policies.stopping import StopWatch
from debate.policies.thinking import CLOSING, OPENING, THINK_END, Thought, thinking_draw, thought_of
from debate.types import Completion, Message, SampleRequest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


_NOTHING = Drawn((), (), "stop")


class LocalPolicy:
    """A policy over a model that lives in this process, on whatever device it was put.

    ``chat`` None means: a chat model if its tokenizer has a chat template. With ``thinking`` every reply
    begins within a think block, which the prompt opens if the template does not. Where a request sets
    ``thinking_tokens``, thinking that has spent them is ended by force, and the answer is sampled behind it.
    ``context_tokens`` (prompt plus completion) defaults to the model's own limit; a completion is cut to
    fit (stop_reason "length"), and a prompt that leaves no room raises ValueError.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        chat: bool | None = None,
        thinking: bool = False,
        raw_prompt: Callable[[tuple[Message, ...]], str] | None = None,
        batch_size: int = 128,
        context_tokens: int | None = None,
        version: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        chat = bool(tokenizer.chat_template) if chat is None else chat
        self.version = version
        self.context_tokens = context_tokens or getattr(
            model.config.get_text_config(), "max_position_embeddings", None
        )
        self._model, self._batch_size = model, batch_size
        self._encoder = PromptEncoder(tokenizer, chat=chat, thinking=thinking, raw_prompt=raw_prompt)
        self._text = TokenText(tokenizer)
        self._thinking = thinking
        self._opening, self._closing = map(self._encoder.template_ids, (OPENING, CLOSING))
        if thinking and THINK_END not in self._text.decode(self._closing):
            raise EncodingError(f"the tokenizer cannot write {THINK_END}; set debate.thinking_tokens = 0")
        self._watch = StopWatch(self._text, model.config.get_text_config().vocab_size)
        self._ends = end_tokens(model, tokenizer)
        self._queue: Rendezvous[SampleRequest, Completion] = Rendezvous(self.sample_all, _place)

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request, together with those of every other live debate."""
        return await self._queue.ask(request)

    def seat(self) -> AbstractContextManager[None]:
        """Count one debate as live: nothing is sampled until it, too, waits for an answer or has ended."""
        return self._queue.seat()

    async def update(self, weights: object, version: int) -> None:
        """Take a state dict (of the adapter, for a LoRA model), or None if the model was trained in place."""
        if weights is not None:
            load_weights(self._model, weights)
        self.version = version

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the length of the prompt that these messages make."""
        return len(self.encode(messages))

    def opens_thinking(self, messages: Sequence[Message]) -> bool:
        """Return whether the prompt that these messages make ends with ``<think>``."""
        return self._thinking or self._encoder.opens_thinking(messages)

    def sample_all(self, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Answer many requests in chunks of ``batch_size``, in the given order; no event loop needed."""
        for request in requests:
            _refuse_impossible(request)
        prompts = [self.encode(request.messages) for request in requests]
        thoughts = self._think(requests, prompts)
        draws = [
            self._answer(request, prompt, thought)
            for request, prompt, thought in zip(requests, prompts, thoughts, strict=True)
        ]
        return [
            self._completion(prompt, thought, drawn)
            for prompt, thought, drawn in zip(prompts, thoughts, self._sampled(draws), strict=True)
        ]

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the prompt's ids (P,), up to where the reply begins."""
        prompt = self._encoder.encode(messages)
        opens = self._thinking and not self._encoder.opens_thinking(messages)
        return prompt + self._opening if opens else prompt

    def _sampled(self, draws: Sequence[Draw | None]) -> list[Drawn]:
        """Return what was drawn, in the given order; nothing for None."""
        wanted = [draw for draw in draws if draw is not None]
        drawn: list[Drawn] = []
        for start in range(0, len(wanted), self._batch_size):
            chunk = wanted[start : start + self._batch_size]
            drawn += sample_batch(self._model, chunk, ends=self._ends, watch=self._watch)
        left = iter(drawn)
        return [_NOTHING if draw is None else next(left) for draw in draws]

    def _think(self, requests: Sequence[SampleRequest], prompts: Sequence[tuple[int, ...]]) -> list[Thought]:
        """Return the thinking of each reply; nothing where a request has no budget for it."""
        draws = [
            thinking_draw(request, prompt, room=self._room(request, prompt) - 1, closing=self._closing)
            if request.thinking_tokens and self.opens_thinking(request.messages)
            else None
            for request, prompt in zip(requests, prompts, strict=True)
        ]
        return [
            Thought() if draw is None else thought_of(drawn, closing=self._closing, ends=self._ends)
            for draw, drawn in zip(draws, self._sampled(draws), strict=True)
        ]

    def _answer(self, request: SampleRequest, prompt: tuple[int, ...], thought: Thought) -> Draw | None:
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

    def _completion(self, prompt: tuple[int, ...], thought: Thought, answer: Drawn) -> Completion:
        """Return the completion; the end token is in the tokens and not in the text."""
        tokens = thought.tokens + answer.tokens
        ended = bool(tokens) and tokens[-1] in self._ends
        text, offsets = self._text.text_and_offsets(tokens[:-1] if ended else tokens)
        return Completion(
            prompt_tokens=prompt,
            tokens=tokens,
            logprobs=thought.logprobs + answer.logprobs,
            text=text,
            stop_reason=answer.stop_reason,
            policy_version=self.version,
            offsets=(*offsets, len(text)) if ended else offsets,
            forced=thought.forced_places,
        )


def _refuse_impossible(request: SampleRequest) -> None:
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


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return every id that ends a reply: the model's, the generation configuration's and the tokenizer's."""
    found: set[int] = set()
    for source in (model.config, model.generation_config, tokenizer):
        ids = getattr(source, "eos_token_id", None)
        found.update([ids] if isinstance(ids, int) else ids or [])
    return frozenset(found)


def load_weights(model: PreTrainedModel, weights: object) -> None:
    """Put a state dict into the model; ValueError when it holds names the model lacks, or lacks some."""
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be a state dict or None, got {type(weights).__name__}")
    state: dict[str, torch.Tensor] = dict(weights)
    if hasattr(model, "peft_config") and any("lora_" in name for name in state):
        from peft import set_peft_model_state_dict

        unknown = set_peft_model_state_dict(model, state).unexpected_keys
        missing: list[str] = []
    else:
        missing, unknown = model.load_state_dict(state, strict=False)
        missing = [name for name in missing if name not in (model._tied_weights_keys or ())]
    if unknown or missing:
        raise ValueError(f"weights do not fit the model: unknown {list(unknown)[:3]}, missing {missing[:3]}")


def _place(request: SampleRequest) -> tuple[str, int, int]:
    return request.debate, request.turn.round, request.turn.agent


__all__ = ["EncodingError", "LocalPolicy", "end_tokens", "load_weights"]
