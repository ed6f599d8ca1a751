"""Encode prompts and decode replies for every engine, with separate token budgets for thinking and answer.

Thinking is sampled first, and closed by force when its budget is spent. The closing tokens were not sampled:
``Completion.forced`` lists their positions, and nothing is learned from them. Stop strings of the answer
have no effect before ``</think>``.
"""

# pyright: standard, reportMissingTypeStubs=false
# torch, transformers and tokenizers are only partly typed: strict rules stop at their borders.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from debate.seeds import derive_seed
from debate.types import Completion, Message, SampleRequest
from debate_rl.inference.decoding import TokenText
from debate_rl.inference.encoding import EncodingError, PromptEncoder, end_of_turn
from debate_rl.inference.sampler import THINK_END, THINK_START, Draw, Drawn

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

REMEMBERED = 1024
"""Number of encoded prompts kept, because each prompt is counted first and sent a moment later."""
OPENING, CLOSING = f"{THINK_START}\n", f"\n{THINK_END}\n\n"
_NOTHING = Drawn((), (), "stop")


@dataclass(frozen=True, slots=True)
class Thought:
    """The thinking of one reply: tokens and log-probabilities (T,). The last ``forced`` were not sampled.

    ``over``: whether the reply ended within its thinking.
    """

    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    forced: int = 0
    over: bool = False


class Speech:
    """Encodes prompts and decodes replies of one model. ``ends``: the ids of tokens that end a reply.

    The other arguments are as in ``LocalPolicy``.

    A request is answered by up to two draws: ``thinking_draw`` if it has a budget for thinking, and then
    ``answer_draw`` after the thinking. A draw is None if there is nothing to sample.
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
        own = tokenizer.eos_token_id
        self._end_of_text = (own,) if isinstance(own, int) else ()
        self._encoded = lru_cache(REMEMBERED)(self._encode)
        self._continued = lru_cache(REMEMBERED)(self._continue)
        self._opening, self._closing = map(self._encoder.template_ids, (OPENING, CLOSING))
        if thinking and THINK_END not in self.text.decode(self._closing):
            raise EncodingError(f"the tokenizer cannot write {THINK_END}; set debate.thinking_tokens = 0")

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids of the prompt (P,), which ends where the reply begins."""
        return self._encoded(tuple(messages))

    def as_read(self, text: str) -> str:
        """Return a text of a message as its tokens say it."""
        return self.text.decode(self._encoder.reply_ids(text, ()))

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of the prompt of these messages."""
        return len(self.encode(messages))

    def _encode(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        return self._encoder.encode(messages) + self._added_opening(messages)

    def _added_opening(self, messages: Sequence[Message]) -> tuple[int, ...]:
        return self._opening if self._thinking and not self._encoder.opens_thinking(messages) else ()

    def prompt(self, request: SampleRequest) -> tuple[int, ...]:
        """Return the ids of a request's prompt (P,), with its prefix and its begun reply unchanged."""
        begun = request.begun.tokens if request.begun else ()
        if not request.prefix:
            return self.encode(request.messages) + begun
        added, last = self.continuation(request.messages), request.prefix[-1:]
        ended = added[:1] == last and self.ends.issuperset(last)
        return request.prefix + added[ended:] + begun

    def continuation(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids (C,) after a reply: its end, the messages, and what begins the next reply."""
        return self._continued(tuple(messages))

    def count_continuation(self, messages: Sequence[Message]) -> int:
        """Return how many tokens these messages add after a reply, including the reply's end."""
        return len(self.continuation(messages))

    def _continue(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        return self._encoder.continuation(messages) + self._added_opening(messages)

    def is_end(self, token: int) -> bool:
        """Return whether a token ends a reply."""
        return token in self.ends

    def opens_thinking(self, messages: Sequence[Message]) -> bool:
        """Return whether the prompt of these messages ends with ``<think>``."""
        return self._thinking or self._encoder.opens_thinking(messages)

    def reply(self, text: str, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids of a reply to these messages (T,), ending with the end token like a sampled reply.

        If the prompt opens thinking, the ids do not contain the opening tag. ValueError if the reply to such
        a prompt does not close its thinking.
        """
        if self.opens_thinking(messages):
            text = text.lstrip().removeprefix(THINK_START).removeprefix("\n")
            if THINK_END not in text:
                raise ValueError(f"the prompt opens thinking, but the reply has no {THINK_END}")
        behind = self.continuation((Message("user", "x"),))[:1] if self._encoder.chat else ()
        end = behind if behind and self.ends.issuperset(behind) else self._end_of_text
        return self._encoder.reply_ids(text, (THINK_START, THINK_END)) + end

    def thinking_draw(self, request: SampleRequest, prompt: tuple[int, ...]) -> Draw | None:
        """Return the draw of the thinking, or None if the request has no budget for thinking."""
        if request.begun or not (request.thinking_tokens and self.opens_thinking(request.messages)):
            return None
        budget = min(request.thinking_tokens, self._tokens_left(request, prompt) - 1)
        if budget <= len(self._closing):
            raise ValueError(
                f"debate {request.debate}, turn {request.turn}: {budget} tokens are too few for thinking, "
                f"because its end alone takes {len(self._closing)}; raise debate.thinking_tokens or "
                f"context_tokens"
            )
        seed = derive_seed(request.seed, "thinking")
        most, among = budget - len(self._closing), (request.top_p, request.top_k)
        return Draw(prompt, most, request.temperature, seed, (THINK_END,), False, *among)

    def thought(self, drawn: Drawn | None) -> Thought:
        """Return the thinking, closed by force if the model did not close it."""
        if drawn is None:
            return Thought()
        if drawn.stop_reason == "stop":
            return Thought(drawn.tokens, drawn.logprobs, over=drawn.tokens[-1] in self.ends)
        closing = self._closing
        return Thought(drawn.tokens + closing, drawn.logprobs + (0.0,) * len(closing), forced=len(closing))

    def answer_draw(self, request: SampleRequest, prompt: tuple[int, ...], thought: Thought) -> Draw | None:
        """Return the draw of the answer, or None if the reply ended within its thinking."""
        if thought.over:
            return None
        before = prompt + thought.tokens
        most = min(request.max_tokens, self._tokens_left(request, before))
        begun = bool(thought.tokens or request.begun)
        thinking = False if begun else self.opens_thinking(request.messages) or None
        among = request.top_p, request.top_k
        return Draw(before, most, request.temperature, request.seed, request.stop, thinking, *among)

    def written(self, text: str) -> tuple[int, ...]:
        """Return the ids, without control tokens, of text that is inserted into a reply."""
        return self._encoder.reply_ids(text, ()) if text else ()

    def read(self, tokens: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Return the text of a reply's tokens (T,) and their offsets (T,). An end token adds no text."""
        ended = bool(tokens) and tokens[-1] in self.ends
        text, offsets = self.text.text_and_offsets(tokens[:-1] if ended else tokens)
        return text, (*offsets, len(text)) if ended else offsets

    def completion(
        self, prompt: tuple[int, ...], thought: Thought, answer: Drawn | None, *, version: int
    ) -> Completion:
        """Return the completion. Its tokens include the end token; its text does not."""
        answer = answer or _NOTHING
        tokens, logprobs = thought.tokens + answer.tokens, thought.logprobs + answer.logprobs
        text, offsets = self.read(tokens)
        thinking = len(thought.tokens)
        forced = tuple(range(thinking - thought.forced, thinking))
        return Completion(prompt, tokens, logprobs, text, answer.stop_reason, version, offsets, forced)

    def _tokens_left(self, request: SampleRequest, prompt: tuple[int, ...]) -> int:
        """Return how many tokens fit after the prompt. ValueError if none fits."""
        wanted = request.thinking_tokens + request.max_tokens
        left = wanted if self.context_tokens is None else self.context_tokens - len(prompt)
        if not prompt or left < 1:
            raise ValueError(
                f"debate {request.debate}, turn {request.turn}: a prompt of {len(prompt)} tokens "
                f"does not fit a context of {self.context_tokens}; shorten it or raise context_tokens"
            )
        return left


def speech_of(model_path: str, *, context_tokens: int | None, **settings: Any) -> Speech:
    """Return the ``Speech`` of a model in a folder or on the hub; ``settings`` go to ``Speech``.

    The ids that end a reply are the same as in LocalPolicy.
    """
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig

    tokenizer = AutoTokenizer.from_pretrained(model_path, trust_remote_code=False)
    config = AutoConfig.from_pretrained(model_path, trust_remote_code=False)
    try:
        generation = GenerationConfig.from_pretrained(model_path)
    except OSError:  # a model without one
        generation = None
    ends = ids_of_ends(config, generation, tokenizer)
    return Speech(tokenizer, ends=ends, context_tokens=context_tokens, **settings)


class SpeakingPolicy:
    """A policy with a ``Speech``. All public attributes of the speech are attributes of the policy too."""

    _speech: Speech

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not there yet
            raise AttributeError(name)
        return getattr(self._speech, name)


def refuse_impossible(request: SampleRequest) -> None:
    """Raise ValueError for a request that cannot be sampled."""
    needs = {
        "max_tokens": (request.max_tokens >= 1, "1 or more"),
        "temperature": (isfinite(request.temperature) and request.temperature >= 0, "finite, and 0 or more"),
        "seed": (request.seed >= 0, "0 or more"),
        "top_p": (0 < request.top_p <= 1, "above 0, and at most 1"),
        "top_k": (request.top_k >= 0, "0 or more"),
    }
    for name, (fits, range_) in needs.items():
        if not fits:
            turn = f"debate {request.debate}, turn {request.turn}"
            raise ValueError(f"{turn}: {name} {getattr(request, name)} must be {range_}")


def ids_of_ends(*sources: Any) -> frozenset[int]:
    """Return every id that ends a reply according to these configurations, tokenizers and chat templates.

    >>> from types import SimpleNamespace as Config
    >>> sorted(ids_of_ends(Config(eos_token_id=3), Config(eos_token_id=[7, 3]), Config(eos_token_id=None)))
    [3, 7]
    """
    ends: set[int] = set()
    for source in sources:
        ids = getattr(source, "eos_token_id", None)
        ends.update([ids] if isinstance(ids, int) else ids or [])
        if getattr(source, "chat_template", None) and (end := end_of_turn(source)) is not None:
            ends.add(end)
    return frozenset(ends)
