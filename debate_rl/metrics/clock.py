"""Where a step's time goes."""

from __future__ import annotations

import time


class Clock:
    """Wall seconds by phase: ``lap`` adds the time since the last lap to a phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """End a phase."""
        now = time.perf_counter()
        self.seconds[f"seconds/{phase}"] = self.seconds.get(f"seconds/{phase}", 0.0) + now - self._last
        self._last = now
