"""What an engine's own process serves: vLLM, here or by its URL, and how much it has done."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debate.concurrency import run_async
from debate.types import Completion, SampleRequest
from debate_rl.inference.engine_report import EngineReport
from debate_rl.inference.server import ServerError
from debate_rl.inference.vllm import EngineState, VLLMPolicy
from debate_rl.inference.vllm_server import VLLMServer

BROKEN = 70
"""The exit code of an engine that cannot go on."""


class Engine:
    """A ``VLLMPolicy`` of these settings, with the weights in a folder, if any, as ``version``.

    With ``base_url`` among the settings it is a ``VLLMServer``. ``lacking``: no request is answered before
    weights have come from the owner's model.
    """

    def __init__(
        self, settings: dict[str, Any], weights: str | None, version: int, *, lacking: bool = False
    ) -> None:
        kind = VLLMServer if "base_url" in settings else VLLMPolicy
        self._policy: VLLMServer | VLLMPolicy = kind(version=version, **settings)
        self._ready = asyncio.Event()
        if weights is not None:
            run_async(self._policy.update(Path(weights), version))
        if not lacking:
            self._ready.set()

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request. What is no fault of the request ends the process: another one takes its place."""
        await self._ready.wait()
        try:
            return await self._policy.sample(request)
        except (ValueError, ServerError):
            raise
        except Exception:
            traceback.print_exc()
            os._exit(BROKEN)

    async def update(self, weights: str, version: int) -> None:
        """Take the weights in a folder."""
        await self._policy.update(Path(weights), version)
        self._ready.set()

    async def receive(self, call: str, arguments: dict[str, Any], version: int | None) -> None:
        """Answer a call of the sender of whole weights; the last has their version."""
        assert isinstance(self._policy, VLLMPolicy)
        await self._policy.receive(call, arguments, version)
        if version is not None:
            self._ready.set()

    async def check(self, requests: Sequence[SampleRequest]) -> tuple[EngineReport, ...]:
        """Answer requests, and report what they were computed with."""
        return await self._policy.check(requests)

    async def context_tokens(self) -> int | None:
        """Return the most tokens of prompt and completion together."""
        return self._policy.context_tokens

    def state(self) -> EngineState:
        """Return what the engine has done so far."""
        return self._policy.state()
