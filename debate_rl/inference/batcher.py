"""Batches of concurrent debates' requests that timing cannot change: it waits until everybody waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

OTHER_LOOP = (
    "this policy answers debates of another event loop or thread: wait for them to end, or give each its own "
    "policy"
)
Request = TypeVar("Request")
Result = TypeVar("Result")


class Batcher(Generic[Request, Result]):
    """Collects requests and answers them together once every live seat has one pending.

    ``key`` gives a request's (debate, round, agent): the order in a batch, and how debates are distinguished.
    Requests from outside any seat count like one more debate; without any seat they are answered at once.
    All who use it at a time belong to one event loop: another one is refused, since it might wait for ever.
    """

    def __init__(
        self,
        answer_all: Callable[[Sequence[Request]], Sequence[Result]],
        key: Callable[[Request], tuple[str, int, int]],
    ) -> None:
        self._answer_all, self._key = answer_all, key
        self._seats = self._held = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: list[tuple[Request, asyncio.Future[Result]]] = []
        self._scheduled = False

    @contextmanager
    def seat(self) -> Generator[None]:
        """Count one debate as live until the block ends."""
        self._enter_loop()
        self._seats += 1
        try:
            yield
        finally:
            self._seats -= 1
            self._check()

    @contextmanager
    def hold(self) -> Generator[None]:
        """Answer nothing until the block has ended: who is in it will ask, or end, at once behind it."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self._check()

    async def submit(self, request: Request) -> Result:
        """Return the result of this request; an exception of the batch goes to everybody in it."""
        self._enter_loop()
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending.append((request, future))
        self._check()
        return await future

    def _enter_loop(self) -> None:
        """Serve the running event loop from now on; RuntimeError while another one is served."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # a seat taken before the loop runs
        in_use = self._seats > 0 or any(not future.done() for _, future in self._pending)
        if in_use and self._loop is not None and self._loop is not loop and not self._loop.is_closed():
            raise RuntimeError(OTHER_LOOP)
        self._loop = loop

    def _check(self) -> None:
        """Look, once in this turn of the event loop, whether anybody is left to wait for.

        ``call_soon``: the siblings of one gather are already in the loop's queue and get in before it.
        """
        if self._pending and not self._scheduled:
            self._scheduled = True
            self._pending[0][1].get_loop().call_soon(self._flush)

    def _count_waiting(self) -> int:
        """Return how many debates wait.

        A debate is in one round at a time and asks once for each agent, so two debates of one name (two
        calls running at once) show as one key that comes twice.
        """
        counts = Counter(self._key(request) for request, _ in self._pending)
        debates: dict[tuple[str, int], int] = {}
        for (name, number, _), count in counts.items():
            debates[name, number] = max(count, debates.get((name, number), 0))
        return sum(debates.values())

    def _flush(self) -> None:
        self._scheduled = False
        self._pending = [(request, future) for request, future in self._pending if not future.done()]
        if self._held or not self._pending or self._count_waiting() < self._seats:
            return  # the next request, or the next seat left, looks again
        batch = sorted(self._pending, key=lambda pair: self._key(pair[0]))
        self._pending = []
        try:
            results = self._answer_all([request for request, _ in batch])
        except Exception as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():  # a caller may have been cancelled meanwhile, by Ctrl-C for one
                future.set_result(result)
