"""Waiting until everybody waits: requests of concurrent debates become batches that timing cannot change."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


class Rendezvous(Generic[Ask, Answer]):
    """Collects requests and answers them together once every live seat has one pending.

    ``place`` gives a request its (debate, round, agent): the batch's order, and what tells debates apart.
    Requests from outside any seat count like one more debate; without any seat they are answered at once.
    All who meet at a time belong to one event loop: another one is refused, since it might wait for ever.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Ask]], Sequence[Answer]],
        place: Callable[[Ask], tuple[str, int, int]],
    ) -> None:
        self._answer_all, self._place = answer_all, place
        self._seats = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: list[tuple[Ask, asyncio.Future[Answer]]] = []
        self._scheduled = False

    @contextmanager
    def seat(self) -> Generator[None]:
        """Count one debate as live until the block ends."""
        self._meet()
        self._seats += 1
        try:
            yield
        finally:
            self._seats -= 1
            self._check()

    async def ask(self, request: Ask) -> Answer:
        """Return the answer to this request; an exception of the batch goes to everybody in it."""
        self._meet()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending.append((request, future))
        self._check()
        return await future

    def _meet(self) -> None:
        """Let the running event loop be the one that meets here; RuntimeError while another one does."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # a seat taken before the loop runs
        meets = self._seats > 0 or any(not future.done() for _, future in self._pending)
        if meets and self._loop is not None and self._loop is not loop and not self._loop.is_closed():
            raise RuntimeError(
                "this policy answers debates of another event loop or thread: wait for them to end, "
                "or give each its own policy"
            )
        self._loop = loop

    def _check(self) -> None:
        """Look, once in this turn of the event loop, whether anybody is left to wait for.

        ``call_soon``: the siblings of one gather are already in the loop's queue and get in before it.
        """
        if self._pending and not self._scheduled:
            self._scheduled = True
            self._pending[0][1].get_loop().call_soon(self._flush)

    def _waiting(self) -> int:
        """Return how many debates wait. A debate is in one round at a time and asks once for each agent,

        so equal names (two calls running at once) show as one place taken twice.
        """
        places = Counter(self._place(request) for request, _ in self._pending)
        debates: dict[tuple[str, int], int] = {}
        for (name, number, _), count in places.items():
            debates[name, number] = max(count, debates.get((name, number), 0))
        return sum(debates.values())

    def _flush(self) -> None:
        self._scheduled = False
        self._pending = [(request, future) for request, future in self._pending if not future.done()]
        if not self._pending or self._waiting() < self._seats:
            return  # the next request, or the next seat left, looks again
        batch = sorted(self._pending, key=lambda pair: self._place(pair[0]))
        self._pending = []
        try:
            answers = self._answer_all([request for request, _ in batch])
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():  # a caller may have been cancelled meanwhile, by Ctrl-C for one
                future.set_result(answer)
