"""The runs of a server, opened at the first request and updated as they grow."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from debate_rl.inspector.runs import FoundRun, find_runs, run_at
from transcripts import RunStore, TranscriptError, compile_filter
from transcripts.filters.presets import PRESETS

FRESH_S, PATIENCE_S, LOOK_S = 1.0, 0.5, 0.1
"""Minimum seconds between checks for new files; maximum seconds to wait for an index, and for a search."""
KEPT_ANSWERS = 256
SMALL_BYTES = 24 << 20
"""Up to this size, text is indexed while the page waits; larger text is indexed in the background."""
Result = TypeVar("Result")


class NotFound(LookupError):
    """The run, replay or turn does not exist."""


class Busy(Exception):
    """The page must wait for ``what``; ``percent`` of it is done. ``total`` 0: unknown."""

    def __init__(self, what: str, done: int = 0, total: int = 0) -> None:
        super().__init__(what)
        self.what, self.total = what, total
        self.percent = 100 * done // total if total else 0


@dataclass(slots=True)
class _Served:
    """An open run: its store, the progress of indexing, and the index of its words."""

    path: Path
    store: Future[RunStore]
    progress: list[int]
    refreshed: float = 0.0
    indexing: Future[None] | None = None
    lock: Lock = field(default_factory=Lock)


def _counted(store: RunStore, within: str, version: tuple[int, ...]) -> list[int]:
    """Return how many debates match each preset filter in a version of the store."""
    return store.counts([preset.filter for preset in PRESETS.values()], within)


class Site:
    """The runs at a path, by name. ``is_one_run``: the path is a single run."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        self._runs: tuple[FoundRun, ...] = ()
        self._looked = -FRESH_S
        self._seen: dict[str, tuple[float, FoundRun]] = {}
        self._open: dict[str, _Served] = {}
        self._closed = False
        self._answers: dict[tuple[object, ...], Future[Any]] = {}
        self._counted = lru_cache(KEPT_ANSWERS)(_counted)
        self._workers, self._openers = ThreadPoolExecutor(3, "search"), ThreadPoolExecutor(8, "open")
        self.is_one_run = run_at(path, self.runs()) is not None  # raises now if the path is wrong

    def runs(self) -> tuple[FoundRun, ...]:
        """Return the runs. TranscriptError if the path has none (any more)."""
        with self._lock:
            if time.monotonic() - self._looked >= FRESH_S:
                self._runs = tuple(find_runs(self._path))
                self._looked = time.monotonic()
            return self._runs

    def run(self, name: str) -> FoundRun:
        """Return a run by its name. NotFound if there is no such run."""
        with self._lock:
            known = self._seen.get(name)
        if known is not None and time.monotonic() - known[0] < FRESH_S:
            return known[1]
        found = None
        if known is not None:  # reads no other run
            with suppress(TranscriptError):
                found = replace(find_runs(known[1].path)[0], name=name)
        found = found or next((run for run in self.runs() if run.name == name), None) or self._part(name)
        if found is None:
            raise NotFound(f"there is no run {name!r} here")
        with self._lock:
            self._seen[name] = time.monotonic(), found
        return found

    def _part(self, name: str) -> FoundRun | None:
        """Return a part of an evaluation, which has the name RUN:EVALUATION:PART, as a run."""
        run, *rest = name.rsplit(":", 2)
        base = next((one for one in self.runs() if one.name == run), None)
        if (
            base is None
            or len(rest) != 2
            or any(part in ("", "..") or Path(part).name != part for part in rest)
        ):
            return None
        with suppress(TranscriptError):
            return replace(find_runs(base.path.joinpath("evaluations", *rest))[0], name=name)
        return None

    def store(self, name: str) -> RunStore:
        """Return the store of a run, up to date. Busy while its index is built; NotFound; TranscriptError."""
        path = self.run(name).path
        with self._lock:
            served = self._open.get(name)
            if served is None or served.path != path or (served.store.done() and served.store.exception()):
                served = self._open[name] = self._opened(path)
        try:
            store = served.store.result(PATIENCE_S)
        except TimeoutError:
            raise Busy("reading the run", *served.progress) from None
        with served.lock:
            if time.monotonic() - served.refreshed >= FRESH_S:
                store.refresh()
                served.refreshed = time.monotonic()
        return store

    def _opened(self, path: Path) -> _Served:
        progress = [0, 0]

        def tell(done: int, total: int) -> None:
            progress[:] = done, total
            if self._closed:  # a server that stops does not wait for an index
                raise InterruptedError

        return _Served(path, self._openers.submit(lambda: RunStore.open(path, tell=tell)), progress)

    def searchable(self, name: str, filter: str) -> RunStore:
        """Return the store when it can apply a filter. Busy while a large run is indexed; FilterError."""
        store = self.store(name)
        if not compile_filter(filter).words:
            return store
        served = self._open[name]
        with served.lock:
            if served.indexing is None or served.indexing.done():
                done, total = store.text_read()
                if total - done <= SMALL_BYTES:
                    return store
                served.indexing = self._openers.submit(self._index, store)
        try:
            served.indexing.result(PATIENCE_S)
        except TimeoutError:
            raise Busy("indexing the words", *store.text_read()) from None
        return store

    def look(self, name: str, filter: str, key: object, work: Callable[[RunStore], Result]) -> Result:
        """Return the result of ``work`` on a store for a filter. ``key`` distinguishes kinds of work.

        A search of words has its own store and thread, and raises Busy until the search is done.
        """
        store = self.searchable(name, filter)
        if not compile_filter(filter).words:
            return work(store)

        def alone() -> Result:
            with RunStore.open(store.run) as own:
                return work(own)

        known = (name, filter, key, store.version())
        with self._lock:
            if known not in self._answers:
                while len(self._answers) >= KEPT_ANSWERS:
                    self._answers.pop(next(iter(self._answers)))
                self._answers[known] = self._workers.submit(alone)
            answer = self._answers[known]
        try:
            return answer.result(LOOK_S)
        except TimeoutError:
            raise Busy("searching the texts") from None

    def counts(self, name: str, within: str) -> list[int] | None:
        """Return how many debates of a filter match each of ``PRESETS``; None if it searches words."""
        if compile_filter(within).words:
            return None
        store = self.store(name)
        return self._counted(store, within, store.version())

    def _index(self, store: RunStore) -> None:
        """Index the words in small steps, so that the server can stop at any time."""
        before = -1
        while not self._closed and not store.index_text(seconds=1.0):
            done, _ = store.text_read()
            if done == before:  # another process indexes
                time.sleep(PATIENCE_S)
            before = done

    def close(self) -> None:
        """Close all stores."""
        self._closed = True
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._openers.shutdown(cancel_futures=True)
        for served in self._open.values():
            with suppress(Exception):  # the run may have failed to open
                served.store.result().close()
        self._open.clear()
