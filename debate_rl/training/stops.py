"""Signals and stalls while a run is open.

SIGINT (Ctrl-C) and SIGTERM:

before the first step    the command ends at once; the next launch repeats a warm start from its beginning
while debates are held   they are dropped at once (``interruptible``), and random generators are restored to
                         their states before the step (``Run.finished_steps_saved``)
in the rest of a step    grading, learning, writing and evaluating continue to the step's end (``deferred``)
then                     the finished steps are saved (``Run.end_recorded``), and Stopped says how to resume
at a second signal       the run ends at once and saves nothing

While a phase takes over ten minutes, a thread prints the phase's name (``StallWatch``); it never ends
anything. The detector ``stall`` reports such a step when the step is over.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

from debate_rl.formatting import duration

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ASYNCIO = os.path.dirname(asyncio.__file__) + os.sep
STALLED_S, LOOK_S = 600.0, 5.0
NEXT = {"": "rollout", "rollout": "reward", "reward": "learn", "verify": "reward", "learn": "record"}
"""The phase that follows each phase. If a step holds more debates, ``rollout`` also follows ``reward``."""
HOME = Path(__file__).parents[2]
OURS = tuple(
    f"{HOME / name}/" for name in ("debate", "debate_rl", "envs", "learner", "rewards", "transcripts")
)
WAITING = "the current step is finished and saved first; a second signal ends the run at once"


class Stopped(KeyboardInterrupt):
    """Raised in a run that a signal stops.

    ``at_once``: a second signal ended the run, and nothing is saved. ``kept``: from where the run resumes.
    """

    def __init__(self, signum: int, *, at_once: bool = False) -> None:
        super().__init__(signum)
        self.signum, self.at_once = signum, at_once
        self.kept = "the same command resumes from the newest checkpoint, if any"

    @property
    def exit_code(self) -> int:
        """128 plus the signal's number, as in shells: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.signum

    def __str__(self) -> str:
        how = "ended at once" if self.at_once else "stopped"
        return f"{how} by {signal.Signals(self.signum).name}; {self.kept}"


class RankError(ValueError):
    """Ranks that cannot continue; the message says why, and what is saved."""


class Stops:
    """Raises Stopped at the first signal: at once, or at the end of a ``deferred`` block.

    The second signal always raises at once. Python handles signals between two bytecode instructions of the
    main thread, so a signal waits for a running kernel or system call. Within asyncio's own code the first
    signal waits for the loop's next turn (``raise_from_signal``).
    """

    def __init__(self) -> None:
        self._defers = False
        self._signal: int | None = None

    def handle(self, signum: int, frame: FrameType | None = None) -> None:
        """Handle a signal, as a handler for ``signal.signal``."""
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
        """Defer signals to the end of this block."""
        with self._deferring(True):
            yield
        self._raise_unless_deferred()

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within ``deferred``: a block that a signal may interrupt."""
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
    """Call ``stop``, which raises, after a signal in this frame; in asyncio's code, one loop turn later.

    An exception raised in asyncio's own code loses the current task, and closing the loop then waits for
    that task forever.
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
    """Handle SIGINT and SIGTERM within this block; do nothing outside the main thread."""
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


class StallWatch:
    """Prints a line if no phase (``lap``) ends within ``stalled_s`` seconds, and again after twice that."""

    def __init__(
        self, say: Callable[[str], None], *, stalled_s: float = STALLED_S, look_s: float = LOOK_S
    ) -> None:
        self._say, self._stalled_s, self._look_s = say, stalled_s, look_s
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="stall watch", daemon=True)
        self._main = threading.get_ident()
        self._note("", None)

    def begin(self, step: int) -> None:
        """Note that a step begins."""
        self._note("", step)

    def lap(self, phase: str) -> None:
        """Note that a phase of the step has ended."""
        self._note(phase, self._step)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _note(self, phase: str, step: int | None) -> None:
        with self._lock:
            self._phase, self._step = phase, step
            self._since, self._limit = time.monotonic(), self._stalled_s

    def _watch(self) -> None:
        while not self._over.wait(self._look_s):
            if line := self._line():
                self._say(line)

    def _line(self) -> str:
        """Return the stall message that is due now, or "" if none is."""
        with self._lock:
            silent = time.monotonic() - self._since
            if self._step is None or silent < self._limit:
                return ""
            self._limit *= 2
            step, phase = self._step, self._phase
        under_way = NEXT.get(phase, "evaluating or saving")
        where = innermost(sys._current_frames().get(self._main))
        at = f", at {where}" if where else ""
        return f"step {step}: no phase has ended for {duration(silent)}; current phase: {under_way}{at}"


def innermost(frame: FrameType | None) -> str:
    """Return file:line and function of the innermost frame in our packages, or ""."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            name = Path(frame.f_code.co_filename).relative_to(HOME)
            return f"{name}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return ""
