"""When a batch is answered, and requests that are cancelled meanwhile."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from debate_rl.inference.local import Batcher


@pytest.mark.parametrize("fails", [False, True])
def test_a_request_cancelled_during_its_batch_disturbs_nobody(fails):
    """Ctrl-C cancels the tasks of asyncio.run wherever the program is: here, inside of the batch."""
    told: list[str] = []

    async def scene() -> list[object]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))

        def answer_all(asked):
            tasks[0].cancel()
            if fails:
                raise ValueError("no answer")
            return [10 * one for one in asked]

        batcher: Batcher[int, int] = Batcher(answer_all, lambda one: ("d", 0, one))
        with batcher.seat():
            tasks = [asyncio.create_task(batcher.submit(one)) for one in (1, 2)]
            return await asyncio.gather(*tasks, return_exceptions=True)

    first, second = asyncio.run(scene())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, ValueError) if fails else second == 20
    assert told == []


def test_a_second_event_loop_is_refused_while_the_first_one_uses_it_and_served_after_it():
    batcher: Batcher[int, int] = Batcher(lambda asked: asked, lambda one: ("d", 0, one))
    refused: list[BaseException] = []

    def elsewhere() -> None:
        try:
            asyncio.run(batcher.submit(2))
        except RuntimeError as error:
            refused.append(error)

    async def scene() -> int:
        with batcher.seat():
            thread = threading.Thread(target=elsewhere, daemon=True)
            thread.start()
            thread.join(10)
            return await asyncio.wait_for(batcher.submit(1), 10)

    assert asyncio.run(scene()) == 1
    assert "of another event loop or thread" in str(refused[0])
    assert asyncio.run(asyncio.wait_for(batcher.submit(3), 10)) == 3


def test_what_a_closed_loop_left_behind_stops_nobody():
    batcher: Batcher[int, int] = Batcher(lambda asked: asked, lambda one: ("d", 0, one))
    loop = asyncio.new_event_loop()

    async def leave() -> None:
        left.append(asyncio.ensure_future(batcher.submit(1)))
        await asyncio.sleep(0)

    left: list[asyncio.Future[int]] = []
    loop.run_until_complete(leave())
    loop.close()
    assert asyncio.run(asyncio.wait_for(batcher.submit(2), 10)) == 2


def test_nothing_is_answered_while_somebody_holds_it_and_who_asks_behind_it_is_in_the_batch():
    batches: list[list[int]] = []

    def answer_all(asked: Sequence[int]) -> Sequence[int]:
        batches.append(list(asked))
        return asked

    batcher: Batcher[int, int] = Batcher(answer_all, lambda one: ("d", 0, one))

    async def runs_a_program(number: int, seconds: float) -> int:
        await batcher.submit(number)
        with batcher.hold():
            await asyncio.sleep(seconds)
        return await batcher.submit(number)

    async def scene() -> None:
        with batcher.seat():
            await asyncio.gather(runs_a_program(1, 0.0), runs_a_program(2, 0.02), batcher.submit(3))

    asyncio.run(asyncio.wait_for(scene(), 10))
    assert batches == [[1, 2, 3], [1, 2]]
