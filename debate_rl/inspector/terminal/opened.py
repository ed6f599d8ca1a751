"""A run that is open, and what a list of its debates shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Event

from transcripts import RunStore


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

    def close(self) -> None:
        """Stop what is being built, and close the run."""
        self.closed.set()
        self.store.close()
