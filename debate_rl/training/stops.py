"""SIGINT and SIGTERM while a run is open: it leaves where nothing is half done, and says what is kept."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
WAITING = "the step that is being learnt from is finished and saved first; a second signal leaves at once"


class Stopped(KeyboardInterrupt):
    """A run that was told to stop by a signal, and did.

    ``at_once``: by a second signal, wherever it was, so that nothing may be saved of what it held.
    ``kept`` says what there is to go on from.
    """

    def __init__(self, signum: int, *, at_once: bool = False) -> None:
        super().__init__(signum)
        self.signum, self.at_once = signum, at_once
        self.kept = "the same command goes on from the newest checkpoint, if any"

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as shells have it: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signum

    def __str__(self) -> str:
        how = "left at once" if self.at_once else "stopped"
        return f"{how} by {signal.Signals(self.signum).name}; {self.kept}"


class Stops:
    """Raises Stopped at the first signal: at once, or within ``held`` when that block ends.

    The second signal raises wherever it comes. Python runs this between two of its instructions in the main
    thread, so a signal waits for the kernel or the system call under way.
    """

    def __init__(self) -> None:
        self._waits = False
        self._asked: int | None = None

    def handle(self, signum: int, _frame: FrameType | None = None) -> None:
        """Take a signal."""
        if self._asked is not None:
            raise Stopped(signum, at_once=True)
        self._asked = signum
        self._raise_or_tell(signum)

    def _raise_or_tell(self, signum: int) -> None:
        if not self._waits:
            raise Stopped(signum)
        told = f"debate: {signal.Signals(signum).name}: {WAITING}\n"
        os.write(
            2, told.encode()
        )  # print is not safe here: the signal may have come in the middle of another

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait until the end of this block."""
        with self._waiting(True):
            yield
        self._raise_asked()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Within ``held``: a block that may be left in the middle."""
        with self._waiting(False):
            self._raise_asked()
            yield
            self._raise_asked()  # one whose exception was lost, in a destructor for instance

    @contextmanager
    def _waiting(self, waits: bool) -> Iterator[None]:
        before, self._waits = self._waits, waits
        try:
            yield
        finally:
            self._waits = before

    def _raise_asked(self) -> None:
        if self._asked is not None and not self._waits:
            raise Stopped(self._asked)


@contextmanager
def catch_stops() -> Iterator[Stops]:
    """Take SIGINT and SIGTERM over for a while; outside the main thread, where none arrive, do nothing."""
    stops = Stops()
    if threading.current_thread() is not threading.main_thread():
        yield stops
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number in SIGNALS if before[number] is not signal.SIG_IGN]  # as for a job with nohup
    try:
        for number in taken:
            signal.signal(number, stops.handle)
        yield stops
    finally:
        for number in taken:
            signal.signal(number, before[number] or signal.SIG_DFL)
