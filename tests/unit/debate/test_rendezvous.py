"""Requests that are cancelled while their batch is answered."""

from __future__ import annotations

import asyncio

import pytest

from debate.policies.rendezvous import Rendezvous


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

        meeting: Rendezvous[int, int] = Rendezvous(answer_all, lambda one: ("d", 0, one))
        with meeting.seat():
            tasks = [asyncio.create_task(meeting.ask(one)) for one in (1, 2)]
            return await asyncio.gather(*tasks, return_exceptions=True)

    first, second = asyncio.run(scene())
    assert isinstance(first, asyncio.CancelledError)
    assert isinstance(second, ValueError) if fails else second == 20
    assert told == []
