"""Coroutines that run at once, and the way from them back to code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class _Carried(Exception):
    """A KeyboardInterrupt or SystemExit on its way out of a task, where it would break the event loop."""

    def __init__(self, stop: BaseException) -> None:
        super().__init__(stop)
        self.stop = stop


async def together(calls: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """Await all calls at once; the first exception is raised once the others are cancelled and ended.

    Await it within ``stops_released``.
    """
    tasks = [asyncio.create_task(_carrying(call)) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for call in calls:
            call.close()  # one that was cancelled before it began would be warned of
        raise


async def _carrying(call: Coroutine[object, object, T]) -> T:
    try:
        return await call
    except (KeyboardInterrupt, SystemExit) as stop:
        raise _Carried(stop) from stop


@contextmanager
def stops_released() -> Generator[None]:
    """Raise what ``together`` carried out of its tasks."""
    try:
        yield
    except _Carried as carried:
        raise carried.stop from None


def run_async(call: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end; in a thread where an event loop already runs, as in notebooks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="debate") as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, call).result()
