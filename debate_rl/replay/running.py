"""A whole run replayed: which steps are read, and which debates are shown."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from debate_rl.replay.comparing import DebateChange, compare_steps
from debate_rl.replay.scheme import Scheme
from transcripts import Record, RunStore


def replay_run(
    store: RunStore,
    own: Scheme,
    other: Scheme,
    *,
    filter: str = "",
    first: int = 0,
    last: int | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Iterator[DebateChange]:
    """Yield what changes in the debates of a filter in steps ``first`` to ``last``; FilterError as ever.

    The filter and the steps choose what is shown. Advantages are of whole steps all the same, and with
    running means the steps before ``first`` are gone through as well. ``tell`` is called
    for each debate read.
    """
    wanted = _ids(store, filter) if filter.strip() else None
    begin = 0 if own.remembers or other.remembers else first
    read = _read(store, begin, last, tell)
    for change in compare_steps(read, own, other):
        if change.step >= first and (wanted is None or change.id in wanted):
            yield change


@contextmanager
def no_collections() -> Iterator[None]:
    """Keep Python from looking for cycles, a fifth of a replay's time: its values have none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _ids(store: RunStore, filter: str) -> set[str]:
    found: set[str] = set()
    after: str | None = None
    while page := store.debates(filter, after=after, limit=1000):
        found.update(row.id for row in page)
        after = page[-1].id
    return found


def _read(
    store: RunStore, first: int, last: int | None, tell: Callable[[], None]
) -> Iterator[tuple[str, Record]]:
    for item in store.records(steps_filter(first, last)):
        tell()
        yield item


def steps_filter(first: int, last: int | None) -> str:
    """Return the filter that finds some steps.

    >>> steps_filter(3, None), steps_filter(0, 5)
    ('step:3..', 'step:0..5')
    """
    return f"step:{first}..{'' if last is None else last}"
