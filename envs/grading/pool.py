"""A small pool of grading processes: thread-safe, bounded in time, and ended with this process.

Who ends a process that hangs, and when:

LIMIT_S          after the call began, the guard (worker.py) kills its child, says "timeout" and forks another
+ GRACE_S        ``_Worker.ask`` kills a guard that has not replied by then; the child dies with it
START_LIMIT_S    the time that a guard has to start, with math-verify imported; else ``_Worker`` kills it
PARENT_CHECK_S   how often an idle guard (worker.py) looks whether this process is still there; else it ends

Processes are started with ``subprocess`` as clean interpreters of the worker script, so it does not matter
whether the caller is a script without a ``__main__`` guard, a notebook, a thread or a coroutine.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import weakref
from multiprocessing import Pipe
from pathlib import Path
from typing import NamedTuple

if sys.platform == "win32":  # a grading process is forked and bounded by the system: neither is there
    raise ImportError("envs grades answers with what POSIX systems have; on Windows, use it inside WSL 2")

LIMIT_S = 3.0
"""The default of ``Pool.limit_s``: seconds of one call."""
GRACE_S = 0.25
START_LIMIT_S = 60.0


class Reply(NamedTuple):
    """A worker's reply: status "equal" | "different" | "timeout" | "crash"."""

    status: str
    detail: str = ""


class Pool:
    """Up to ``size`` workers, started when first needed; the limit counts from when one takes the call."""

    def __init__(self, *, size: int, limit_s: float, memory_mb: int) -> None:
        self.limit_s = limit_s
        self._memory_mb = memory_mb
        self._seats = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._owner = os.getpid()
        _open_pools.add(self)

    def ask(self, pairs: list[tuple[str, str]]) -> Reply:
        """Return whether every (gold, answer) pair is equal. Never raises on what they hold."""
        with self._seats:
            try:
                worker = self._take()
            except (OSError, _WorkerDied) as error:
                return Reply("crash", f"no grading process: {error}")
            reply = worker.ask(pairs, self.limit_s)
            if worker.alive:
                with self._lock:
                    self._idle.append(worker)
            return reply

    def warm(self) -> None:
        """Start one worker now, so that the first call does not wait for it."""
        self.ask([("1", "1")])

    def close(self) -> None:
        """End all idle workers; the pool starts new ones if it is used again."""
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.close(ours=self._owner == os.getpid())

    def _take(self) -> _Worker:
        if self._owner != os.getpid():  # this is a fork of the process that started them
            self.close()
            self._owner = os.getpid()
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return _Worker(self._memory_mb)


class _WorkerDied(Exception):
    pass


class _Worker:
    """The parent's end of one worker process."""

    def __init__(self, memory_mb: int) -> None:
        # where this process finds packages, as absolute folders; the worker's own come first
        path = [str(Path(entry).resolve()) for entry in sys.path if entry and Path(entry).is_dir()]
        script = str(Path(__file__).with_name("worker.py"))
        self._pipe, theirs = Pipe()
        numbers = (theirs.fileno(), memory_mb, os.getpid())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", script, *map(str, numbers), json.dumps(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
            )
        self.alive = True
        if self._exchange(b"", START_LIMIT_S).status != "ready":
            raise _WorkerDied("it did not start; is math-verify installed?")

    def ask(self, pairs: list[tuple[str, str]], limit_s: float) -> Reply:
        """Return the worker's reply; a worker that does not give one is killed."""
        request = json.dumps({"pairs": pairs, "limit_s": limit_s}).encode()
        return self._exchange(request, limit_s + GRACE_S)

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
        """Close the pipe, at which the worker ends; ``ours`` also ends and reaps the process itself."""
        self.alive = False
        self._pipe.close()
        if ours:
            self._process.kill()
            self._process.wait()
        else:
            self._process.returncode = 0  # a parent's child: not ours to wait for


_open_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_open_pools):
        pool.close()
