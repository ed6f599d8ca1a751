"""A run that is open, and the full text that is built beside it when words are searched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from transcripts import RunStore, compile_filter

if TYPE_CHECKING:
    from inspector.terminal.face import Face

SLICE_S = 0.4
"""The full text is built in slices of so many seconds, between which the application can be left."""
PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Matches:
    """What a list of debates shows: a filter, in the order of the run or newest first."""

    filter: str = ""
    newest: bool = False


class Leaving(Exception):
    """The application is being left: stop building an index."""


class Opened:
    """An open run. ``closed`` stops what is being built in threads."""

    def __init__(self, store: RunStore, name: str) -> None:
        self.store, self.name = store, name
        self.closed = Event()
        self.taken_in = (0, 0)

    @classmethod
    def of(cls, path: Path, name: str) -> Opened:
        """Open a run without taking in anything yet."""
        return cls(RunStore.open(path, refresh=False), name)

    def refresh(self) -> int:
        """Take in what the run wrote since; return how many debates came."""

        def tell(done: int, whole: int) -> None:
            self.taken_in = (done, whole)
            if self.closed.is_set():
                raise Leaving

        try:
            return self.store.refresh(tell=tell)
        except Leaving:
            return 0

    def with_text(self, face: Face, filter: str, then: Callable[[], None]) -> None:
        """Build the full text where the filter searches words, telling how far it is; then go on."""
        if not compile_filter(filter).words:
            face.workers.cancel_group(face, "text")
            then()
            return

        async def run() -> None:
            while not self.closed.is_set():
                if await asyncio.to_thread(self.store.index_text, seconds=SLICE_S):
                    break
                read, whole = await asyncio.to_thread(self.store.text_read)
                face.say(f"reading the words of all debates: {read * 100 // max(1, whole)}%")
                await asyncio.sleep(PAUSE_S)  # where another process builds it, nothing was done
            if not self.closed.is_set():
                face.say("")
                then()

        face.run_worker(run(), group="text", exclusive=True)

    def close(self) -> None:
        """Stop what is being built, and close the run."""
        self.closed.set()
        self.store.close()
