"""A watch over the steps of a run: a phase that takes over ten minutes is named while it lasts.

It is a thread that looks and says, and never ends anything. The detector ``stall`` of the report sees such a
step when it is over.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Self

from debate_rl.formatting import duration

STALLED_S, LOOK_S = 600.0, 5.0
NEXT = {"": "rollout", "rollout": "reward", "reward": "learn", "verify": "reward", "learn": "record"}
"""The phase that follows another; of further debates in a step, ``reward`` stands before ``rollout``."""
HOME = Path(__file__).parents[2]
OURS = tuple(
    f"{HOME / name}/" for name in ("debate", "debate_rl", "envs", "learner", "rewards", "transcripts")
)


class StallWatch:
    """``begin`` notes that a step began and ``lap`` that a phase ended; a silence of ``stalled_s`` is said.

    Again after twice the time, and so on.
    """

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
        """Return what is to be said now; "" while there is nothing."""
        with self._lock:
            silent = time.monotonic() - self._since
            if self._step is None or silent < self._limit:
                return ""
            self._limit *= 2
            step, phase = self._step, self._phase
        under_way = NEXT.get(phase, "evaluating or saving")
        where = innermost(sys._current_frames().get(self._main))
        at = f", at {where}" if where else ""
        return f"step {step}: no phase has ended for {duration(silent)}; under way: {under_way}{at}"


def innermost(frame: FrameType | None) -> str:
    """Return where a thread stands in our packages, as file:line and function; "" outside of them."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            name = Path(frame.f_code.co_filename).relative_to(HOME)
            return f"{name}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return ""
