"""The process that runs math-verify: a guard that imports it once, and a forked child that does the work.

Run as a script (``python -I worker.py``), never imported by the package. The guard (one thread, no model
text) reads requests from a pipe, hands each to its child, and kills and replaces a child that is late, too
large or dead: a fork takes milliseconds where a fresh start takes a second. Messages are JSON. The guard ends
with its parent, however that ends, and the child with it.

Request: {"pairs": [[gold, answer], ...], "limit_s": 3.0}. Reply: {"status": S, "detail": "..."} where S is
"equal" (every pair is), "different", "timeout" or "crash".
"""

from __future__ import annotations

import json
import os
import signal
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

RECYCLE_AFTER = 2000  # calls of one child: sympy's caches grow
PARENT_CHECK_S = 1.0


def main() -> None:
    """Serve requests until the pipe closes or the parent is gone."""
    pipe, memory_mb, parent = Connection(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    sys.path.extend(json.loads(sys.argv[4]))
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group, they are the parent's business
        signal.signal(number, signal.SIG_IGN)
    _import_everything()
    pipe.send_bytes(_reply("ready"))
    child = Child(memory_mb)
    while (request := _next_request(pipe, parent)) is not None:
        reply = child.ask(request, gone=pipe)
        if reply is None:
            break
        unwell = json.loads(reply)["status"] in ("timeout", "crash")
        if unwell or child.calls >= RECYCLE_AFTER:
            child.kill()
            child = Child(memory_mb)
        pipe.send_bytes(reply)
    child.kill()


def _reply(status: str, detail: str = "") -> bytes:
    return json.dumps({"status": status, "detail": detail}).encode()


def _import_everything() -> None:
    """Load math-verify in the guard, so that every child has it from its first moment."""
    import logging

    logging.disable(logging.CRITICAL)
    verdict([["x+1", "1+x"]])  # parsers and sympy load parts of themselves on first use


def _next_request(pipe: Connection, parent: int) -> bytes | None:
    while not pipe.poll(PARENT_CHECK_S):
        if os.getppid() != parent:  # another process may hold our pipe open
            return None
    try:
        return pipe.recv_bytes()
    except (EOFError, OSError):
        return None


def verdict(pairs: list[list[str]]) -> bool:
    """Whether math-verify finds every (gold, answer) pair equal. May take for ever: call in a child."""
    from math_verify import parse, verify

    no_limit: Any = None  # its own limit is SIGALRM for each stage; the guard's covers the whole call
    for pair in pairs:
        gold, answer = (
            parse(f"${text}$", fallback_mode="no_fallback", parsing_timeout=no_limit) for text in pair
        )
        if not gold or not answer or not verify(gold, answer, timeout_seconds=None):
            return False
    return True


class Child:
    """One forked process that grades; at most one request is under way."""

    def __init__(self, memory_mb: int) -> None:
        self.calls = 0
        self._pipe, theirs = Pipe()
        guard = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._pipe.close()
            _serve(theirs, memory_mb, guard)
        theirs.close()

    def ask(self, request: bytes, *, gone: Connection) -> bytes | None:
        """Return the child's reply, or what became of it; None when ``gone`` closed while it worked."""
        self.calls += 1
        try:
            self._pipe.send_bytes(request)
            ready = wait([self._pipe, gone], json.loads(request)["limit_s"])
            if self._pipe in ready:
                return self._pipe.recv_bytes()
        except (EOFError, OSError):
            return _reply("crash", "the grading process died")
        return None if gone in ready else _reply("timeout")  # a parent sends one request at a time

    def kill(self) -> None:
        """End the child and free its pipe."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._pipe.close()


def _serve(pipe: Connection, memory_mb: int, guard: int) -> None:
    """Answer requests in the child until the pipe closes; never returns."""
    try:
        _confine(memory_mb, guard)
        while True:
            request = json.loads(pipe.recv_bytes())
            try:
                reply = _reply("equal" if verdict(request["pairs"]) else "different")
            except BaseException as error:  # MemoryError and RecursionError as well: all are the library's
                reply = _reply("crash", type(error).__name__)
            pipe.send_bytes(reply)
    finally:
        os._exit(0)


def _confine(memory_mb: int, guard: int) -> None:
    """Bound memory, files and processes, and tie this process's life to the guard's."""
    import resource

    sys.dont_write_bytecode = True
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    if os.getppid() != guard:
        os._exit(0)


if __name__ == "__main__":
    main()
