"""The process that runs math-verify: a guard that imports it once, and a forked child that does the work.

Run as a script (``python -I worker.py``), never imported by the package. The guard (one thread, no model
text) reads requests from standard input, hands each to its child, and kills and replaces a child that is
late, too large or dead: a fork takes milliseconds where a fresh start takes a second. Frames are four bytes
of length, big-endian, then JSON. The guard ends with its parent, however that ends, and the child with it.

Request: {"pairs": [[gold, answer], ...], "limit_s": 3.0}. Reply: {"status": S, "detail": "..."} where S is
"equal" (every pair is), "different", "timeout" or "crash".
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Mapping
from typing import Any

RECYCLE_AFTER = 2000  # calls of one child: sympy's caches grow
PARENT_CHECK_S = 1.0


def main() -> None:
    """Serve requests until standard input closes or the parent is gone."""
    memory_mb, parent = int(sys.argv[1]), int(sys.argv[2])
    sys.path.extend(json.loads(sys.argv[3]))
    requests, replies = _take_over_streams()
    _import_everything()
    write_frame(replies, {"status": "ready"})
    child = Child(memory_mb)
    while (request := _next_request(requests, parent)) is not None:
        reply = child.ask(request, gone=requests)
        if reply is None:
            break
        if reply["status"] in ("timeout", "crash") or child.calls >= RECYCLE_AFTER:
            child.kill()
            child = Child(memory_mb)
        write_frame(replies, reply)
    child.kill()


def _take_over_streams() -> tuple[int, int]:
    """Return private copies of standard input and output; whatever prints now goes nowhere."""
    streams = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group, they are the parent's business
        signal.signal(number, signal.SIG_IGN)
    return streams


def _import_everything() -> None:
    """Load math-verify in the guard, so that every child has it from its first moment."""
    import logging

    logging.disable(logging.CRITICAL)
    verdict([["x+1", "1+x"]])  # parsers and sympy load parts of themselves on first use


def _next_request(requests: int, parent: int) -> dict[str, object] | None:
    while not select.select([requests], [], [], PARENT_CHECK_S)[0]:
        if os.getppid() != parent:  # another process may hold our input open
            return None
    return read_frame(requests)


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
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()
        guard = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._to)
            os.close(self._from)
            _serve(to_child, from_child, memory_mb, guard)
        os.close(to_child)
        os.close(from_child)

    def ask(self, request: dict[str, object], *, gone: int) -> dict[str, object] | None:
        """Return the child's reply, or what became of it; None when ``gone`` closed while it worked."""
        self.calls += 1
        deadline = time.monotonic() + float(str(request["limit_s"]))
        try:
            write_frame(self._to, request)
        except OSError as error:
            return {"status": "crash", "detail": repr(error)}
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([self._from, gone], [], [], left)
            if self._from in ready:
                return read_frame(self._from) or {"status": "crash", "detail": "the grading process died"}
            if gone in ready:
                return None  # a parent sends one request at a time: this is its end
        return {"status": "timeout", "detail": ""}

    def kill(self) -> None:
        """End the child and free its pipes."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._to)
        os.close(self._from)


def _serve(requests: int, replies: int, memory_mb: int, guard: int) -> None:
    """Answer requests in the child until the pipe closes; never returns."""
    try:
        _confine(memory_mb, guard)
        while (request := read_frame(requests)) is not None:
            try:
                reply = {"status": "equal" if verdict(request["pairs"]) else "different", "detail": ""}
            except BaseException as error:  # MemoryError and RecursionError as well: all are the library's
                reply = {"status": "crash", "detail": type(error).__name__}
            write_frame(replies, reply)
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


def write_frame(fd: int, message: Mapping[str, object]) -> None:
    """Write one message."""
    data = json.dumps(message).encode()
    view = memoryview(struct.pack(">I", len(data)) + data)
    while view:
        view = view[os.write(fd, view) :]


def read_frame(fd: int) -> dict[str, Any] | None:
    """Read one message; None when the other side is gone."""
    try:
        head = _read_exactly(fd, 4)
        return json.loads(_read_exactly(fd, struct.unpack(">I", head)[0]))
    except (EOFError, OSError):
        return None


def _read_exactly(fd: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


if __name__ == "__main__":
    main()
