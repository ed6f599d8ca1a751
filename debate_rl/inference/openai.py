"""A policy over an OpenAI-compatible server, by its chat or its completions endpoint.

The server encodes the prompts, so its chat template decides how control tokens in a text are treated. It
cannot receive weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias, cast

from debate.prompting.rendering import raw_prompt as default_raw_prompt
from debate.seeds import SERVER_SEEDS
from debate.stops import end_of_stop
from debate.tools import FENCE
from debate.types import Completion, Message, SampleRequest, StopReason
from debate.values import whole_text
from debate_rl.inference.decoding import characters
from debate_rl.inference.server import Server, ServerError, key_for

Object: TypeAlias = Mapping[str, object]
OPENING, CLOSING = "<think>", "</think>"


class ReplyError(ValueError):
    """A server's answer without a valid reply."""


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Token ids, and log-probabilities and offsets if they are known, each (T,)."""

    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    offsets: tuple[int, ...] = ()

    def until(self, end: int) -> _Tokens:
        """Return the tokens that begin before this character. Without offsets, return no tokens."""
        kept = sum(offset < end for offset in self.offsets)
        return _Tokens(self.ids[:kept], self.logprobs[:kept], self.offsets[:kept])


def read_reply(reply: Object, request: SampleRequest, *, version: int) -> Completion:
    """Return the completion in a server's answer. ReplyError if there is none."""
    choice = _first_choice(reply)
    text, thinking = _text(choice)
    if request.begun:  # its thinking is over, even if a server reports the new text as thinking
        text, thinking = thinking + text, ""
    tokens = _tokens(choice, text, request)
    text, stop_reason = _ended(text, choice, request)
    if thinking:
        text = f"{OPENING}\n{thinking.replace(CLOSING, '')}\n{CLOSING}\n\n{text}"
        tokens = _Tokens(tokens.ids, tokens.logprobs)
    if request.thinking_tokens:
        text, tokens, stop_reason = _thought(text, tokens, stop_reason, request)
    usage = _object(reply.get("usage"))
    prompt = _ids(choice.get("prompt_token_ids")) or _ids(reply.get("prompt_token_ids"))
    counts = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    how = stop_reason, version, tokens.offsets, (), *counts
    return Completion(prompt, tokens.ids, tokens.logprobs, text, *how)


def read_tokens(reply: Object) -> tuple[tuple[int, ...], tuple[float, ...], str]:
    """Return a vLLM server's ids (T,), log-probabilities (T,) in nats, and finish reason.

    ReplyError if any of these is missing.
    """
    choice = _first_choice(reply)
    ids, (_, logprobs) = _ids(choice.get("token_ids")), _listed_tokens(choice)
    if not ids or len(ids) != len(logprobs):
        raise ReplyError(f"{len(ids)} token ids with {len(logprobs)} log-probabilities")
    return ids, logprobs, str(choice.get("finish_reason"))


def says_what_stopped(reply: Object) -> bool:
    """Return whether a server says which stop string ended a reply, as vLLM does.

    >>> says_what_stopped({"choices": [{"stop_reason": None}]}), says_what_stopped({"choices": [{}]})
    (True, False)
    """
    choices = _list(reply.get("choices"))
    return bool(choices) and "stop_reason" in _object(choices[0])


def restored(text: str, stop: Sequence[str]) -> str:
    """Return the text with the closing tag that the server removed, if its section is still open.

    >>> restored("<solution>4", ["</solution>"]), restored("I pass.", ["</solution>"])
    ('<solution>4</solution>', 'I pass.')
    """
    for string in stop:
        opening = string.replace("</", "<", 1)
        if opening != string and string.endswith(">") and text.rfind(opening) > text.rfind(string):
            return text + string
    return text


def _first_choice(reply: Object) -> Object:
    first = next(iter(_list(reply.get("choices"))), None)
    if not isinstance(first, dict):
        raise ReplyError("the answer has no choices")
    return cast(Object, first)


def _text(choice: Object) -> tuple[str, str]:
    """Return the reply, and its thinking if the server reports thinking separately (else "")."""
    message = _object(choice.get("message"))
    text = message.get("content", "" if message else choice.get("text"))
    thinking = message.get("reasoning") or message.get("reasoning_content")
    if text is None and message:
        text = ""  # all of it was thinking, or refused
    if not isinstance(text, str):
        raise ReplyError("the answer has no text in its first choice")
    return text, thinking if isinstance(thinking, str) else ""


def _ended(text: str, choice: Object, request: SampleRequest) -> tuple[str, StopReason]:
    """Return the text including the stop string that ended it, and the stop reason.

    vLLM reports the stop string in ``stop_reason``. For other servers, it is taken to be the closing tag of
    the open section.
    """
    if choice.get("finish_reason") in ("length", "content_filter"):
        return text, "length"
    string = choice.get("stop_reason")
    if isinstance(string, str) and string in request.stop:
        return text if text.endswith(string) else text + string, "stop"
    if "stop_reason" in choice or any(text.endswith(string) for string in request.stop):
        return text, "stop"
    begun = request.begun.text if request.begun else ""
    return restored(begun + text, request.stop)[len(begun) :], "stop"


def _thought(
    text: str, tokens: _Tokens, reason: StopReason, request: SampleRequest
) -> tuple[str, _Tokens, StopReason]:
    """Return a thinking model's reply up to the first stop string after its thinking.

    A reply that was cut off without ``</think>`` counts as thinking, and so stays private.
    """
    if CLOSING not in text:
        if reason == "length" and not text.lstrip().startswith(OPENING):
            return f"{OPENING}\n{text}", _Tokens(tokens.ids, tokens.logprobs), reason
        return text, tokens, reason
    end = end_of_stop(text, request.stop, text.index(CLOSING))
    if end is None or end == len(text):
        return text, tokens, reason
    return text[:end], tokens.until(end), "stop"


def _tokens(choice: Object, text: str, request: SampleRequest) -> _Tokens:
    """Return the tokens that the server reports, as vLLM does if it is asked for ids.

    By default, a server reports log-probabilities at temperature 1 over all tokens. They are left out if the
    reply was sampled with other settings.
    """
    ids, (pieces, logprobs) = _ids(choice.get("token_ids")), _listed_tokens(choice)
    plain = request.temperature == 0 or (request.temperature, request.top_p, request.top_k) == (1, 1, 0)
    known = plain and len(logprobs) == len(ids)
    whole, offsets = characters(pieces) if len(pieces) == len(ids) else ("", [])
    fits = bool(offsets) and whole.startswith(text) and offsets[-1] <= len(text)  # an end token hangs over
    return _Tokens(ids, logprobs if known else (), tuple(offsets) if fits else ())


def _listed_tokens(choice: Object) -> tuple[list[bytes], tuple[float, ...]]:
    """Return the bytes and log-probability of each token, from either endpoint; empty if any is missing."""
    listed = _object(choice.get("logprobs"))
    if "content" not in listed:
        texts = [text for text in _list(listed.get("tokens")) if isinstance(text, str)]
        pieces = [text.encode("utf-8", "replace") for text in texts]
        return pieces, _logprobs(_list(listed.get("token_logprobs")))
    entries = [_object(entry) for entry in _list(listed.get("content"))]
    try:
        pieces = [bytes(value) for entry in entries if isinstance(value := entry.get("bytes"), list)]
    except (ValueError, TypeError):
        pieces = []
    return pieces, _logprobs([entry.get("logprob") for entry in entries])


def _logprobs(values: Sequence[object]) -> tuple[float, ...]:
    """Return the log-probabilities if all of them are finite and at most 0, else an empty tuple.

    >>> _logprobs([-0.5, -0.0]), _logprobs([-0.5, None]), _logprobs([float("-inf")])
    ((-0.5, -0.0), (), ())
    """
    valid = [float(v) for v in values if isinstance(v, float | int) and -1e6 < v <= 0 and isfinite(v)]
    return tuple(valid) if len(valid) == len(values) else ()


def _ids(value: object) -> tuple[int, ...]:
    """Return the token ids if all of them are valid ids, else an empty tuple.

    >>> _ids([3, 4]), _ids([3, "4"]), _ids([3, -1]), _ids(None)
    ((3, 4), (), (), ())
    """
    listed = _list(value)
    valid = tuple(v for v in listed if type(v) is int and 0 <= v < 2**31)
    return valid if len(valid) == len(listed) else ()


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**53 else None


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _object(value: object) -> Object:
    return cast(Object, value) if isinstance(value, dict) else {}


LIMITS = ("max_tokens", "max_tokens", "max_completion_tokens")
"""The key of the token limit in each dialect: vLLM's with extra settings, the usual one, OpenAI's newer."""
GO_ON = "That is your reply so far. Go on with it exactly where it ends, and repeat nothing of it."
GOING_ON: Mapping[str, object] = {"continue_final_message": True, "add_generation_prompt": False}
NOT_UNDERSTOOD = (400, 422)
VLLM: Mapping[str, object] = {
    "include_stop_str_in_output": True,
    "return_token_ids": True,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}
"""Settings with which vLLM samples without penalties and reports tokens. Other servers may refuse them."""


class OpenAIPolicy:
    """A policy over ``model`` at ``base_url`` (with its path, as in ``http://localhost:8000/v1``).

    ``chat`` False requests a plain completion of ``raw_prompt``. ``thinking`` goes to the server's chat
    template. ``sending``: settings of ``Server``. The key is ``api_key``, or by default from the environment
    (``key_for``). If a server refuses vLLM's extra settings, they are no longer sent; completions then have
    counts of tokens but no ids.

    Stop strings are not sent with ``thinking_tokens``, since the server would also stop in the thinking; the
    reply is cut afterwards. The fence that ends a program is sent as a stop string only if the server reports
    which string stopped a reply: other servers remove the string, so an opening fence would be lost.
    A begun reply is sent as the last message of a chat, which vLLM and SGLang continue. In the other dialects
    a further message asks the model to continue the reply.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        chat: bool = True,
        thinking: bool = False,
        raw_prompt: Callable[[tuple[Message, ...]], str] = default_raw_prompt,
        version: int = 0,
        **sending: Any,
    ) -> None:
        self.version = version
        self._model, self._chat, self._thinking = model, chat, thinking
        self._raw_prompt = raw_prompt
        self._dialect = 0
        self._says_what_stopped = False
        self._server = Server(base_url, api_key=key_for(base_url) if api_key is None else api_key, **sending)

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request in the first dialect that the server accepts. Only vLLM's dialect has top_k."""
        dialect = 0 if request.top_k else self._dialect
        while True:
            try:
                reply = await self._server.post(self._path, self._body(request, dialect))
            except ServerError as error:
                if error.status not in NOT_UNDERSTOOD or dialect + 1 == len(LIMITS):
                    raise
                if request.top_k:
                    raise ValueError(
                        f"debate.top_k = {request.top_k}: this server refuses top_k, a setting of vLLM; "
                        f"set debate.top_k = 0 ({error})"
                    ) from error
                dialect += 1
                continue
            self._dialect = max(self._dialect, dialect)
            self._says_what_stopped = says_what_stopped(reply)
            try:
                return read_reply(reply, request, version=self.version)
            except ReplyError as error:
                raise ServerError(
                    f"{self._server.base_url}{self._path}: HTTP 200, but {error}", 200
                ) from error

    async def update(self, weights: object, version: int) -> None:
        """Raise ValueError: a server of this kind takes no weights."""
        raise ValueError(
            f"the model {self._model!r} at {self._server.base_url} cannot be trained; train a local model, "
            f"or use the server only for evaluation and play"
        )

    @property
    def _path(self) -> str:
        return "/chat/completions" if self._chat else "/completions"

    def _body(self, request: SampleRequest, dialect: int) -> dict[str, object]:
        """Return the body of the request. Its seed is reduced to 31 bits, which every server accepts."""
        body: dict[str, object] = {
            "model": self._model,
            LIMITS[dialect]: request.max_tokens + request.thinking_tokens,
            "temperature": request.temperature,
            "seed": request.seed % SERVER_SEEDS,
            **self._prompt(request, asks=dialect > 0),
        }
        stop = [one for one in request.stop if one != FENCE or self._says_what_stopped]
        if stop and not request.thinking_tokens:
            body["stop"] = stop
        if dialect:
            return body | ({"top_p": request.top_p} if request.top_p < 1 else {})
        body |= {**VLLM, "top_p": request.top_p, "top_k": request.top_k or -1}
        if not self._chat:
            return body | {"logprobs": 1}
        how = {"logprobs": True, "chat_template_kwargs": {"enable_thinking": self._thinking}}
        return {**body, **how, **(GOING_ON if request.begun else {})}

    def _prompt(self, request: SampleRequest, *, asks: bool) -> dict[str, object]:
        """Return the prompt. ``asks`` adds a message that asks to continue a reply that has begun."""
        begun = request.begun.text if request.begun else ""
        if not self._chat:
            return {"prompt": whole_text(self._raw_prompt(request.messages) + begun)}
        messages = request.messages
        if begun:
            messages += (Message("assistant", begun), *((Message("user", GO_ON),) if asks else ()))
        return {"messages": [{"role": one.role, "content": whole_text(one.content)} for one in messages]}
