"""SIGINT (Ctrl-C) and SIGTERM while a run is open: what is given up, what is finished, and what is kept.

before the first step    the start ends at once; a warm start begins again
while debates are held   they are given up at once (``interruptible``), and random generators are put back to
                         where they were before them (``generators_kept_on_error`` in ``train_step``)
in the rest of a step    grading, learning, writing and evaluating continue to the step's end (``deferred``)
then                     the finished steps are saved (``Session.keep``), and Stopped says how to go on
at a second signal       the run leaves wherever it is, and saves nothing
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep
WAITING = "the step that is being learnt from is finished and saved first; a second signal leaves at once"


class Stopped(KeyboardInterrupt):
    """A run that a signal stopped.

    ``at_once``: by a second signal, wherever it was, so that nothing may be saved of what it held.
    ``kept`` says what a resumed run begins from.
    """

    def __init__(self, signum: int, *, at_once: bool = False) -> None:
        super().__init__(signum)
        self.signum, self.at_once = signum, at_once
        self.kept = "the same command resumes from the newest checkpoint, if any"

    @property
    def exit_code(self) -> int:
        """128 and the signal's number, as shells have it: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signum

    def __str__(self) -> str:
        how = "left at once" if self.at_once else "stopped"
        return f"{how} by {signal.Signals(self.signum).name}; {self.kept}"


class Stops:
    """Raises Stopped at the first signal: at once, or within ``deferred`` when that block ends.

    The second signal raises wherever it comes. Python runs this between two of its instructions in the main
    thread, so a signal waits for the kernel or the system call under way. Within asyncio's own code the first
    one waits for the loop's next turn (``raise_from_signal``).
    """

    def __init__(self) -> None:
        self._defers = False
        self._signal: int | None = None

    def handle(self, signum: int, frame: FrameType | None = None) -> None:
        """Take a signal."""
        if self._signal is not None:
            raise Stopped(signum, at_once=True)
        self._signal = signum
        if not self._defers:
            raise_from_signal(frame, self._raise_unless_deferred)
            return
        line = f"debate: {signal.Signals(signum).name}: {WAITING}\n"
        os.write(2, line.encode())  # print is not safe: the signal may have come in the middle of another

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Let a signal wait until the end of this block."""
        with self._deferring(True):
            yield
        self._raise_unless_deferred()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within ``deferred``: a block that may be left in the middle."""
        with self._deferring(False):
            self._raise_unless_deferred()
            yield
            self._raise_unless_deferred()  # one whose exception was lost, in a destructor for instance

    @contextmanager
    def _deferring(self, defers: bool) -> Iterator[None]:
        before, self._defers = self._defers, defers
        try:
            yield
        finally:
            self._defers = before

    def _raise_unless_deferred(self) -> None:
        if self._signal is not None and not self._defers:
            raise Stopped(self._signal)


def raise_from_signal(frame: FrameType | None, stop: Callable[[], object]) -> None:
    """Call ``stop``, which raises, for a signal that came in this frame; in asyncio's own code, a turn later.

    An exception out of that code takes with it the task whose turn it was, and whoever closes the loop waits
    for that task for ever.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    if loop is None or frame is None or not frame.f_code.co_filename.startswith(ASYNCIO):
        stop()
    else:
        loop.call_soon_threadsafe(stop)


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
