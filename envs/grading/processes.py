"""Grading processes: a thread-safe pool, bounded in time and memory, that ends with this process.

A worker is a clean interpreter that runs this file as a script, so the caller may be a script without a
``__main__`` guard, a notebook, a thread or a coroutine. This interpreter is the guard: it has one thread and
parses no model text. It imports math-verify once and passes requests to a forked child. It replaces a child
that is late, too large or dead, because a fork takes milliseconds and a fresh start a second. Processes that
hang are killed by these limits:

LIMIT_S          time limit of a call; after this, the guard kills its child, says "timeout" and forks again
+ GRACE_S        after this extra time, ``_Worker.ask`` kills a guard that has not replied, with its child
START_LIMIT_S    time limit for the start of a guard; after this, ``_Worker`` kills the guard
PARENT_CHECK_S   interval at which an idle guard checks its parent; the guard exits if the parent is gone

Messages are JSON. A request is {"pairs": [[gold, answer], ...], "limit_s": 3.0}. A reply is {"status": S,
"detail": "..."} where S is "equal" (every pair is equal), "different", "timeout" or "crash".
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

if sys.platform == "win32":  # Windows has neither fork nor the resource limits of a grading process
    raise ImportError("grading needs a POSIX system; on Windows, use it inside WSL 2")

LIMIT_S = 3.0  # the default of ``Pool.limit_s``: seconds per call
GRACE_S = 0.25
START_LIMIT_S = 60.0
PARENT_CHECK_S = 1.0
RECYCLE_AFTER = 2000  # calls per child, because sympy's caches grow


class Reply(NamedTuple):
    """A worker's reply: status "equal" | "different" | "timeout" | "crash"."""

    status: str
    detail: str = ""

    def encoded(self) -> bytes:
        """Return the reply as a message."""
        return json.dumps(self._asdict()).encode()


class Pool:
    """A pool of up to ``size`` workers, which start when needed.

    The time limit of a call starts when a worker takes the call.
    """

    def __init__(self, *, size: int, limit_s: float, memory_mb: int) -> None:
        self.limit_s = limit_s
        self._memory_mb = memory_mb
        self._seats = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._owner = os.getpid()
        _open_pools.add(self)

    def ask(self, pairs: list[tuple[str, str]]) -> Reply:
        """Return whether every (gold, answer) pair is equal. Never raise, whatever the texts are."""
        with self._seats:
            if self._owner != os.getpid():  # this process is a fork of the one that started the workers
                self.close()
                self._owner = os.getpid()
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            try:
                worker = worker or _Worker(self._memory_mb)
            except OSError as error:
                return Reply("crash", f"no grading process: {error}")
            reply = worker.ask(pairs, self.limit_s)
            if worker.alive:
                with self._lock:
                    self._idle.append(worker)
            return reply

    def close(self) -> None:
        """End all idle workers; the pool starts new workers if it is used again."""
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.close(ours=self._owner == os.getpid())


class _Worker:
    """The parent's side of one worker process. Raise OSError if the process does not start."""

    def __init__(self, memory_mb: int) -> None:
        # the folders in which this process finds packages; the worker's own folders come first
        path = [str(Path(entry).resolve()) for entry in sys.path if entry and Path(entry).is_dir()]
        self._pipe, theirs = Pipe()
        numbers = (theirs.fileno(), memory_mb, os.getpid())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", __file__, *map(str, numbers), json.dumps(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
            )
        self.alive = True
        if self._exchange(b"", START_LIMIT_S).status != "ready":
            raise OSError("it did not start; is math-verify installed?")

    def ask(self, pairs: list[tuple[str, str]], limit_s: float) -> Reply:
        """Return the worker's reply; kill a worker that does not reply in time."""
        return self._exchange(json.dumps({"pairs": pairs, "limit_s": limit_s}).encode(), limit_s + GRACE_S)

    def _exchange(self, request: bytes, limit_s: float) -> Reply:
        try:
            if request:
                self._pipe.send_bytes(request)
            if self._pipe.poll(limit_s):
                return Reply(**json.loads(self._pipe.recv_bytes()))
            reply = Reply("timeout")
        except (OSError, EOFError):
            reply = Reply("crash", "the grading process died")
        self.close(ours=True)
        return reply

    def close(self, *, ours: bool) -> None:
        """Close the pipe, which ends the worker; with ``ours``, also kill and reap the process."""
        self.alive = False
        self._pipe.close()
        if ours:
            self._process.kill()
            self._process.wait()
        else:
            self._process.returncode = 0  # the parent's child, for which this process must not wait


_open_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_open_pools):
        pool.close()


def main() -> None:
    """Run as a guard: serve requests until the pipe closes or the parent is gone."""
    import logging

    pipe, memory_mb, parent = Connection(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
    sys.path.extend(json.loads(sys.argv[4]))
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; the parent handles them
        signal.signal(number, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    verdict([["x+1", "1+x"]])  # the parsers and sympy import some modules on first use
    pipe.send_bytes(Reply("ready").encoded())
    child = Child(memory_mb)
    while (request := _next_request(pipe, parent)) is not None:
        reply = child.ask(request, gone=pipe)
        if reply is None:
            break
        if json.loads(reply)["status"] in ("timeout", "crash") or child.calls >= RECYCLE_AFTER:
            child.kill()
            child = Child(memory_mb)
        pipe.send_bytes(reply)
    child.kill()


def _next_request(pipe: Connection, parent: int) -> bytes | None:
    while not pipe.poll(PARENT_CHECK_S):
        if os.getppid() != parent:  # another process may hold our pipe open
            return None
    try:
        return pipe.recv_bytes()
    except (EOFError, OSError):
        return None


def verdict(pairs: list[list[str]]) -> bool:
    """Return whether math-verify finds every (gold, answer) pair equal.

    This may never return, so call it in a child process.
    """
    from math_verify import parse, verify

    no_limit: Any = None  # math-verify limits each stage by SIGALRM; the guard limits the whole call
    for pair in pairs:
        gold, answer = (
            parse(f"${text}$", fallback_mode="no_fallback", parsing_timeout=no_limit) for text in pair
        )
        if not gold or not answer or not verify(gold, answer, timeout_seconds=None):
            return False
    return True


class Child:
    """A forked process that grades one request at a time."""

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
        """Return the child's reply, or a reply that says "timeout" or "crash".

        Return None if ``gone``, the pipe to the parent, closed in the meantime.
        """
        self.calls += 1
        try:
            self._pipe.send_bytes(request)
            ready = wait([self._pipe, gone], json.loads(request)["limit_s"])
            if self._pipe in ready:
                return self._pipe.recv_bytes()
        except (EOFError, OSError):
            return Reply("crash", "the grading process died").encoded()
        return None if gone in ready else Reply("timeout").encoded()  # a parent sends one request at a time

    def kill(self) -> None:
        """End the child and free its pipe."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._pipe.close()


def _serve(pipe: Connection, memory_mb: int, guard: int) -> None:
    """Answer requests in the child until the pipe closes. Never return.

    First limit memory, files and processes, and make this process end with the guard.
    """
    try:
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
        while os.getppid() == guard:
            request = json.loads(pipe.recv_bytes())
            try:
                reply = Reply("equal" if verdict(request["pairs"]) else "different")
            except BaseException as error:  # also MemoryError and RecursionError of the library
                reply = Reply("crash", type(error).__name__)
            pipe.send_bytes(reply.encoded())
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
