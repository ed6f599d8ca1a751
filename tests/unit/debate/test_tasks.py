import asyncio
import gc
import inspect

import pytest

from debate.concurrency import together


def test_calls_that_are_cancelled_before_they_begin_are_closed():
    async def call() -> None:
        raise AssertionError("it never begins")

    calls = [call(), call()]

    async def cut_off() -> None:
        task = asyncio.create_task(together(calls))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cut_off())
    assert [inspect.getcoroutinestate(one) for one in calls] == ["CORO_CLOSED"] * 2
    gc.collect()
