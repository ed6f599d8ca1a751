"""A policy over a running vLLM server. Prompts are sent as token ids; replies are ids and log-probabilities.

The server may be on another machine. It loads adapters from folders that it can read, each under its own
name, and never full weights. docs/engines.md says how to start it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from debate.concurrency import run_async
from debate.types import Completion, Message, SampleRequest
from debate_rl.inference.engine_report import EngineReport
from debate_rl.inference.openai import ReplyError, read_tokens
from debate_rl.inference.server import Server, ServerError, key_for
from debate_rl.inference.speech import speech_of
from debate_rl.inference.vllm import EngineState
from debate_rl.inference.vllm_requests import Current, Part, RequestingPolicy

COMPLETIONS, MODELS = "/completions", "/models"
LOAD, UNLOAD = "/load_lora_adapter", "/unload_lora_adapter"
NOT_FOUND = 404
LIKELIEST = 5
RAW = 0.75
"""If gaps between log-probabilities at temperature 2 are more than this share of those at temperature 1,
vLLM reports log-probabilities without the temperature, which would halve the gaps."""


class VLLMServer(RequestingPolicy):
    """A policy over a model of ``vllm serve`` at ``base_url``, such as ``http://localhost:8000/v1``.

    ``model_path``: the folder or hub id of the model, for its tokenizer; the server must serve a model with
    this name or root. ``dtype``: the type in which the server computes. ``adapter``: the folder of the first
    adapter. ``chat``, ``thinking`` and ``raw_prompt`` are as in ``LocalPolicy``, ``sending`` as in
    ``OpenAIPolicy``.
    """

    def __init__(
        self,
        model_path: str | Path,
        *,
        base_url: str,
        dtype: str,
        adapter: str | Path | None = None,
        chat: bool | None = None,
        thinking: bool = False,
        raw_prompt: Callable[[tuple[Message, ...]], str] | None = None,
        version: int = 0,
        **sending: Any,
    ) -> None:
        key = key_for(base_url)
        self._server = Server(base_url, api_key=key, **sending)
        self._once = Server(base_url, api_key=key, **(sending | {"retries": 0}))
        self._dtype, self.version = dtype, version
        self._running, self._answered, self._seconds = 0, 0, 0.0
        self._since = 0.0
        self._run, self._adapters = f"debate-rl-{token_hex(4)}", 0
        self._folders: dict[str, Path] = {}
        self._loading = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._base, context = run_async(self._served(str(model_path)))
        self._now = Current(self._base, self._unload)
        self._speech = speech_of(
            str(model_path), chat=chat, thinking=thinking, raw_prompt=raw_prompt, context_tokens=context
        )
        run_async(self._refuse_raw_logprobs())
        if adapter is not None:
            run_async(self.update(adapter, version))

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request with the weights at the time of the call."""
        frozen = request.seat == "frozen"
        version = 0 if frozen else self.version
        with self._now.kept() as newest:
            name = self._base if frozen else newest

            async def ask(prompt: list[int], sampling: dict[str, Any]) -> Part:
                return await self._part(name, prompt, sampling)

            return await self._reply(request, ask, version=version)

    async def update(self, weights: object, version: int) -> None:
        """Load an adapter from a folder. Running requests keep the adapter they began with."""
        folder = Path(str(weights)).resolve()
        if not (folder / "adapter_config.json").is_file():
            raise ValueError(f"{self._server.base_url}: a server only takes adapters, but {folder} has none")
        self._adapters += 1
        name = f"{self._run}-{self._adapters}"
        self._folders[name] = folder
        await self._load(name)
        self._now.replace(name)
        self.version = version

    def freeze(self) -> None:
        """Do nothing: the base model without an adapter answers for frozen seats."""

    async def check(self, requests: Sequence[SampleRequest]) -> tuple[EngineReport, ...]:
        """Answer requests, and return a report without digests, since a server does not show its weights.

        Adapters never share cached prefixes, because each has its own name.
        """
        replies = await asyncio.gather(*map(self.sample, requests))
        return (EngineReport(self._dtype, tuple(replies), cached_tokens=0, rounded_head=False),)

    def state(self) -> EngineState:
        """Return the number of replies, and the seconds in which any request was running.

        The state is never busy, because requests have their own time-out.
        """
        under_way = time.perf_counter() - self._since if self._running else 0.0
        return EngineState(False, self._answered, self._seconds + under_way)

    async def _served(self, model: str) -> tuple[str, int | None]:
        """Return the model's name at the server, and the maximum tokens of a prompt with its reply."""
        try:
            cards = _cards(await self._server.get(MODELS))
        except ServerError as error:
            raise ValueError(f"model.vllm.servers: {error}") from error
        folder = Path(model).resolve() if Path(model).is_dir() else None
        for card in cards:
            root = card.get("root")
            same = folder is not None and isinstance(root, str) and Path(root).resolve() == folder
            if same or model in (card.get("id"), root):
                longest = card.get("max_model_len")
                return str(card["id"]), longest if isinstance(longest, int) else None
        names = ", ".join(str(card.get("id")) for card in cards)
        raise ValueError(
            f"model.name_or_path={model}: {self._server.base_url} serves {names}; start it with vllm serve "
            f"{model}, or set model.name_or_path to a model that it serves"
        )

    async def _refuse_raw_logprobs(self) -> None:
        """Raise ValueError if the server reports log-probabilities that ignore the temperature."""
        gaps = [await self._gap(temperature) for temperature in (1.0, 2.0)]
        if gaps[1] > RAW * gaps[0] > 0:
            raise ValueError(
                f"model.vllm.servers: {self._server.base_url} reports log-probabilities without the "
                f"temperature; start it with --logprobs-mode processed_logprobs"
            )

    async def _gap(self, temperature: float) -> float:
        """Return the largest minus the smallest log-probability among the likeliest first tokens."""
        prompt = [min(self._speech.ends, default=0)]
        body = {"model": self._now.adapter, "prompt": prompt, "max_tokens": 1, "temperature": temperature}
        asked = {"top_p": 1.0, "top_k": 0, "logprobs": LIKELIEST, "return_tokens_as_token_ids": True}
        values = _likeliest(await self._server.post(COMPLETIONS, body | asked))  # ids: texts may be alike
        return values[0] - values[-1] if values else 0.0

    async def _part(self, name: str, prompt: list[int], sampling: dict[str, Any]) -> Part:
        body = {"model": name, "prompt": prompt, "return_token_ids": True, **sampling}
        if not self._running:
            self._since = time.perf_counter()
        self._running += 1
        try:
            return Part(*read_tokens(await self._posted(name, body)))
        except ReplyError as error:
            raise ServerError(f"{self._server.base_url}{COMPLETIONS}: HTTP 200, but {error}", 200) from error
        finally:
            self._running, self._answered = self._running - 1, self._answered + 1
            if not self._running:
                self._seconds += time.perf_counter() - self._since

    async def _posted(self, name: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return the reply; if a restarted server has lost the adapter, load the adapter again."""
        try:
            return await self._server.post(COMPLETIONS, body)
        except ServerError as error:
            if error.status != NOT_FOUND or name not in self._folders:
                raise
        await self._load(name)
        return await self._server.post(COMPLETIONS, body)

    async def _load(self, name: str) -> None:
        """Load an adapter unless it is loaded. ValueError if the server rejects it."""
        body = {"lora_name": name, "lora_path": str(self._folders[name])}
        try:
            async with self._loading:
                if name not in [card.get("id") for card in _cards(await self._server.get(MODELS))]:
                    await self._once.tell(LOAD, body)
        except ServerError as error:
            raise ValueError(f"model.vllm.servers: {error}{_remedy(error)}") from error

    def _unload(self, name: str) -> None:
        """Unload an adapter that no request uses any more, in the background."""
        self._folders.pop(name, None)
        if name != self._base:
            task = asyncio.ensure_future(self._forget(name))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _forget(self, name: str) -> None:
        with suppress(ServerError):  # a full server drops its oldest adapter itself
            await self._once.tell(UNLOAD, {"lora_name": name})


def _cards(reply: Mapping[str, object]) -> list[dict[str, object]]:
    listed = reply.get("data")
    cards = cast("list[object]", listed) if isinstance(listed, list) else []
    return [cast("dict[str, object]", card) for card in cards if isinstance(card, dict)]


def _likeliest(reply: Mapping[str, object]) -> list[float]:
    """Return the log-probabilities of the likeliest first tokens, in descending order."""
    try:
        choices: Any = reply["choices"]
        listed = choices[0]["logprobs"]["top_logprobs"][0].values()
        return sorted(map(float, listed), reverse=True)[:LIKELIEST]
    except (LookupError, TypeError, ValueError, AttributeError):
        return []


def _remedy(error: ServerError) -> str:
    """Return advice for an adapter that a server rejects.

    >>> _remedy(ServerError("http://localhost:8000/v1/load_lora_adapter: HTTP 404 Not Found: Not Found", 404))
    '; start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment'
    >>> _remedy(ServerError("HTTP 404: No adapter found for /dev/shm/debate-rl-x/version_1", 404))
    '; set model.vllm.adapter_folder to a folder that it can read'
    >>> _remedy(ServerError("HTTP 500: LoRA rank 32 is greater than max_lora_rank 16.", 500))
    '; start it with --enable-lora --max-lora-rank of model.lora_rank or more'
    """
    said = str(error)
    if "adapter found" in said or "does not exist" in said:
        return "; set model.vllm.adapter_folder to a folder that it can read"
    if error.status == NOT_FOUND:
        return "; start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment"
    if error.status:
        return "; start it with --enable-lora --max-lora-rank of model.lora_rank or more"
    return ""
