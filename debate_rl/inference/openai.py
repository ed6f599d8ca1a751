"""A policy over an OpenAI-compatible server, by its chat or its completions endpoint.

Nothing of the model is in this process. Prompts are not encoded here, so the server's own chat template
decides what becomes of control tokens that a text spells, and no adapter can be sent to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from debate.prompting.rendering import raw_prompt as default_raw_prompt
from debate.tools import FENCE
from debate.types import Completion, Message, SampleRequest
from debate.values import whole_text
from debate_rl.inference.replies import ReplyError, read_reply, says_what_stopped
from debate_rl.inference.server import Server, ServerError, key_for

LIMITS = ("max_tokens", "max_tokens", "max_completion_tokens")
"""The dialects, by what they call the limit: vLLM's with its extras, the usual one, OpenAI's newer models."""
GO_ON = "That is your reply so far. Go on with it exactly where it ends, and repeat nothing of it."
NOTHING: Mapping[str, object] = {}
GOING_ON: Mapping[str, object] = {"continue_final_message": True, "add_generation_prompt": False}
NOT_UNDERSTOOD = (400, 422)
VLLM: Mapping[str, object] = {
    "include_stop_str_in_output": True,
    "return_token_ids": True,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
}
"""What makes vLLM sample from the model itself, and report the tokens. Others ignore it or refuse it."""


class OpenAIPolicy:
    """A policy over ``model`` at ``base_url`` (with its path, as in ``http://localhost:8000/v1``).

    ``chat`` False asks for a plain completion of ``raw_prompt``. ``thinking`` goes to the server's chat
    template. The key is ``api_key``, or that of the environment (``key_for``). A server that does not
    understand vLLM's extras is asked without them from then on; then there are no token ids, and the
    completions have their counts.
    Stop strings are not sent where a request has ``thinking_tokens``, since a server would find them in the
    thinking; the reply is cut behind it. Nor is the fence that ends a program, unless the server says which
    string stopped it: it cuts them off, and a fence that opens a block would be lost.
    A reply that has begun is the last message of a chat, which vLLM and SGLang go on with. In the other
    dialects a message behind it asks for that.
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
        concurrency: int = 64,
        timeout_s: float = 600.0,
        retries: int = 4,
        first_wait_s: float = 0.5,
        version: int = 0,
    ) -> None:
        self.version = version
        self._model, self._chat, self._thinking = model, chat, thinking
        self._raw_prompt = raw_prompt
        self._dialect = 0
        self._says_what_stopped = False
        self._server = Server(
            base_url,
            api_key=key_for(base_url) if api_key is None else api_key,
            concurrency=concurrency,
            timeout_s=timeout_s,
            retries=retries,
            first_wait_s=first_wait_s,
        )

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request, in the first dialect that the server understands; top_k is in vLLM's alone."""
        dialect = 0 if request.top_k else self._dialect
        while True:
            try:
                reply = await self._server.post(self._path, self._body(request, dialect))
            except ServerError as error:
                if error.status not in NOT_UNDERSTOOD or dialect + 1 == len(LIMITS):
                    raise
                if request.top_k:
                    raise ValueError(
                        f"debate.top_k = {request.top_k}: is one of vLLM's own settings, and this server "
                        f"refuses them; set debate.top_k = 0 ({error})"
                    ) from error
                dialect += 1
                continue
            self._dialect = max(self._dialect, dialect)
            return self._completion(reply, request)

    async def update(self, weights: object, version: int) -> None:
        """Raise ValueError: a server of this kind takes no weights."""
        raise ValueError(
            f"the model {self._model!r} at {self._server.base_url} cannot be trained from here; "
            "train a local model, or let the server play and be evaluated"
        )

    @property
    def _path(self) -> str:
        return "/chat/completions" if self._chat else "/completions"

    def _completion(self, reply: Mapping[str, object], request: SampleRequest) -> Completion:
        self._says_what_stopped = says_what_stopped(reply)
        try:
            return read_reply(reply, request, version=self.version)
        except ReplyError as error:
            raise ServerError(f"{self._server.base_url}{self._path}: HTTP 200, but {error}", 200) from error

    def _body(self, request: SampleRequest, dialect: int) -> dict[str, object]:
        """Return the body of the request; the seed is folded to the 31 bits that every server can hold."""
        body: dict[str, object] = {
            "model": self._model,
            LIMITS[dialect]: request.max_tokens + request.thinking_tokens,
            "temperature": request.temperature,
            "seed": request.seed % 2**31,
            **self._prompt(request, asks=dialect > 0),
        }
        if (stop := self._stop(request)) and not request.thinking_tokens:
            body["stop"] = stop
        if dialect == 0:
            sampling = {"top_p": request.top_p, "top_k": request.top_k or -1}
            goes_on = GOING_ON if self._chat and request.begun else NOTHING
            return {**body, **sampling, **self._extras(), **goes_on}
        return body | ({"top_p": request.top_p} if request.top_p < 1 else {})

    def _stop(self, request: SampleRequest) -> list[str]:
        return [one for one in request.stop if one != FENCE or self._says_what_stopped]

    def _prompt(self, request: SampleRequest, *, asks: bool) -> dict[str, object]:
        """Return the prompt; ``asks``: whether a message asks to go on with a reply that has begun."""
        begun = request.begun.text if request.begun else ""
        if not self._chat:
            return {"prompt": whole_text(self._raw_prompt(request.messages) + begun)}
        messages = request.messages
        if begun:
            messages += (Message("assistant", begun), *((Message("user", GO_ON),) if asks else ()))
        return {"messages": [{"role": one.role, "content": whole_text(one.content)} for one in messages]}

    def _extras(self) -> dict[str, object]:
        if not self._chat:
            return {**VLLM, "logprobs": 1}
        return {**VLLM, "logprobs": True, "chat_template_kwargs": {"enable_thinking": self._thinking}}
