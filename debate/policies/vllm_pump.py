"""vLLM's engine, turned step by step within an event loop, so that every debate goes on when it can."""

# pyright: standard, reportMissingTypeStubs=false, reportMissingImports=false
# vllm is only partly typed, and not always installed.

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any


class Pump:
    """Asks an ``LLMEngine`` and turns it while anything is asked; it stands still otherwise.

    A step blocks the event loop, as sampling does in ``LocalPolicy``; between two steps everybody else runs.
    Requests of a cancelled caller are dropped. All at a time belong to one event loop.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._numbers = count()
        self._turning: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether anything is asked and not answered."""
        return bool(self._waiting)

    async def ask(self, prompt: Sequence[int], params: Any, lora: Any) -> Any:
        """Return the finished ``CompletionOutput`` of a prompt (P,)."""
        loop = asyncio.get_running_loop()
        if any(future.get_loop() is not loop for future in self._waiting.values()):
            raise RuntimeError(
                "this policy answers debates of another event loop or thread: wait for them to end, "
                "or give each its own policy"
            )
        name, future = str(next(self._numbers)), loop.create_future()
        self._engine.add_request(name, {"prompt_token_ids": list(prompt)}, params, lora_request=lora)
        self._waiting[name] = future
        if self._turning is None or self._turning.done():
            self._turning = loop.create_task(self._turn())
        try:
            return await future
        except asyncio.CancelledError:
            self._engine.abort_request([name])
            raise
        finally:
            self._waiting.pop(name, None)

    async def _turn(self) -> None:
        """Step while anybody waits; what the engine raises goes to everybody who does."""
        try:
            while self._waiting:
                for output in self._engine.step():
                    future = self._waiting.get(output.request_id)
                    if output.finished and future is not None and not future.done():
                        future.set_result(output.outputs[0])
                await asyncio.sleep(0)
        except Exception as error:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)
