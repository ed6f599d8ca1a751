"""math-verify alone in a process that stays: what the grader is measured against.

Run as a script it reads ``[gold, answer]`` as JSON lines and replies ``[equal, seconds]``; math-verify's
own time limits are on, as its users have them. ``MathVerify`` is the other end; it kills what is late.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

LIMIT_S = 20.0


class MathVerify:
    """A persistent math-verify; use it with ``with``."""

    def __init__(self) -> None:
        self._process = self._start()

    def ask(self, gold: str, answer: str) -> tuple[bool | None, float]:
        """Return (equal, seconds); equal is None where the process hung or died."""
        started = time.perf_counter()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([gold, answer]).encode() + b"\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], LIMIT_S)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self._restart()
            return None, time.perf_counter() - started
        return json.loads(line)[0], time.perf_counter() - started

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._process = process
        self.ask("$x+1$", "$1+x$")  # it loads parts of itself at the first use
        return process

    def _restart(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process = self._start()


def serve() -> None:
    """Answer until standard input closes."""
    import logging

    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        gold, answer = json.loads(line)
        started = time.perf_counter()
        try:
            equal = bool(verify(parse(gold), parse(answer)))
        except Exception:
            equal = False
        print(json.dumps([equal, time.perf_counter() - started]), flush=True)


if __name__ == "__main__":
    serve()
