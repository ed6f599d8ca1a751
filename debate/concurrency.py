"""Run coroutines concurrently, and run a coroutine from synchronous code."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class _Carried(Exception):
    """Wraps a KeyboardInterrupt or SystemExit of a task, because the bare one would break the event loop."""

    def __init__(self, stop: BaseException) -> None:
        super().__init__(stop)
        self.stop = stop


async def together(calls: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """Await all calls concurrently.

    If one raises, cancel the others, wait for them, then raise its exception.

    Call this function within ``stops_released``.
    """
    tasks = [asyncio.create_task(_carrying(call)) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for call in calls:
            call.close()  # a coroutine cancelled before it started would cause a warning
        raise


async def _carrying(call: Coroutine[object, object, T]) -> T:
    try:
        return await call
    except (KeyboardInterrupt, SystemExit) as stop:
        raise _Carried(stop) from stop


@contextmanager
def stops_released() -> Generator[None]:
    """Raise the KeyboardInterrupt or SystemExit that ``together`` carried out of a task."""
    try:
        yield
    except _Carried as carried:
        raise carried.stop from None


def run_async(call: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end. If an event loop already runs, as in notebooks, run it in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="debate") as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, call).result()
