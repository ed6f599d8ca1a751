"""Sessions that run programs in a box: taken from a process that has the libraries ready and forks."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary, finalize

from debate.concurrency import run_async
from debate.tools import Ran
from envs.sandbox.box import Limits, Zygote, check_system, refusal

AT_ONCE = 4 * (os.cpu_count() or 1)
"""Programs that run at a time; others wait, which does not count for their time."""
LONGEST_PROGRAM = 1 << 20  # characters of a program
STRETCH = 6
GRACE_S = 10.0  # a session that is silent for this many times its limit plus this many seconds is given up
LOST = "[the session ended: nothing that was defined in it is left]"
TRIAL, TRIAL_S = "print(6 * 7)", 30.0
SLICE = 1 << 16

_log = logging.getLogger(__name__)


class Sandbox:
    """Where programs run: each session in namespaces of its own, without network, files or privileges.

    Any number of tasks may use it, from any event loop; a session taken waits for no other. It starts at its
    first use, or by ``start``, and ends by ``close``, with a ``with`` block or with this process, however it
    ends. ``warm``: sessions kept ready besides those in use. ``unsafe``: no box, plain processes of this user
    with limits, for programs of one's own.
    """

    def __init__(self, limits: Limits | None = None, *, warm: int = 4, unsafe: bool = False) -> None:
        self.limits = limits or Limits()
        self._warm_size, self._unsafe = warm, unsafe
        self._lock = threading.Lock()
        self._pool: _Pool | None = None
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def start(self) -> None:
        """Start now, and run a first program; SandboxRefused, with what to install or to set."""
        zygote = self._open().zygote
        box = _Box(zygote)
        try:
            answer = run_async(box.ask(TRIAL, TRIAL_S))
        finally:
            box.close()
        if answer.get("output", "").strip() != "42":
            raise refusal(answer.get("refused") or zygote.complaint() or str(answer.get("error", "")))

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[SandboxSession]:
        """Take a fresh session; at the end of the block nothing is left of it."""
        session = SandboxSession(self)
        try:
            yield session
        finally:
            await session.close()

    def close(self) -> None:
        """End every session; a later use restarts."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> _Pool:
        """Return the process that forks sessions, a new one if there is none or it has died."""
        with self._lock:
            pool = self._pool
            if pool is None or not pool.is_usable():
                if self._unsafe:
                    _log.warning("sandbox.unsafe: programs run as plain processes of this user, in no box")
                else:
                    check_system()
                if pool is not None:
                    pool.close()
                pool = self._pool = _Pool(self.limits, self._warm_size, unsafe=self._unsafe)
                finalize(self, pool.close)
            return pool

    def turns(self) -> asyncio.Semaphore:
        """Return where programs of this event loop wait for their turn, first come first served."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))

    def take(self) -> _Box:
        """Return a fresh session."""
        return self._open().take()


class SandboxSession:
    """A session: it takes its process at its first program, and another where that has died."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._box: _Box | None = None

    async def run(self, code: str) -> Ran:
        """Run a program; never raises on what it does. SandboxRefused where nothing can run here."""
        if len(code) > LONGEST_PROGRAM:
            error = f"ProgramTooLong: {len(code):,} characters, of at most {LONGEST_PROGRAM:,}"
            return Ran("error", error, error)
        async with self._sandbox.turns():
            if self._box is None:
                self._box = self._sandbox.take()
            answer = await self._box.ask(code, STRETCH * self._sandbox.limits.seconds + GRACE_S)
            if "refused" in answer:
                raise refusal(answer["refused"])
            if not answer["alive"]:
                await self.close()
        return _ran(answer)

    async def close(self) -> None:
        """End it, and wait until its processes are gone; the next program starts a new one."""
        box, self._box = self._box, None
        if box is not None:
            await box.end()


def _ran(answer: dict[str, Any]) -> Ran:
    """Return the result of a program: where it did not say itself how it ended, its output does."""
    output, error = answer["output"], answer["error"]
    lines = [error] if error and not output.rstrip().endswith(error) else []
    lines += [] if answer["alive"] else [LOST]
    if lines and output and not output.endswith("\n"):
        output += "\n"
    return Ran(answer["status"], output + "".join(f"{line}\n" for line in lines), error, answer["seconds"])


class _Pool:
    """The process that forks sessions, and those that it has forked ahead."""

    def __init__(self, limits: Limits, size: int, *, unsafe: bool) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a session is an open file here
        self.zygote = Zygote(limits, unsafe=unsafe)
        self._size, self._owner = size, os.getpid()
        self._warm: list[_Box] = []
        self._lock = threading.Lock()

    def is_usable(self) -> bool:
        """Return whether the process lives, and is this process's own."""
        return self._owner == os.getpid() and self.zygote.is_alive()

    def take(self) -> _Box:
        """Return the session that has waited longest, and let another come in its place."""
        with self._lock:
            while len(self._warm) <= self._size:
                self._warm.append(_Box(self.zygote))
            return self._warm.pop(0)

    def close(self) -> None:
        """End all of them; of a fork of their process, nothing."""
        if self._owner == os.getpid():
            for box in self._warm:
                box.close()
            self._warm.clear()
            self.zygote.close()


class _Box:
    """Our end of a session."""

    def __init__(self, zygote: Zygote) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs, suppress(OSError):  # a zygote that has died is seen when the session is asked
            zygote.ask(theirs)

    async def ask(self, code: str, seconds: float) -> dict[str, Any]:
        """Run a program and return what the guard says of it; a session that says nothing has died."""
        loop, said = asyncio.get_running_loop(), bytearray()
        body = code.encode("utf-8", "replace")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                await loop.sock_sendall(self._socket, len(body).to_bytes(4) + body)
                while not said.endswith(b"\n") and (part := await loop.sock_recv(self._socket, SLICE)):
                    said += part
        with suppress(OSError):  # the loop may have stood still while the answer came
            while not said.endswith(b"\n") and (part := self._socket.recv(SLICE)):
                said += part
        if said.endswith(b"\n"):
            return json.loads(said)
        return {"status": "died", "error": "the session ended", "seconds": 0.0, "alive": False, "output": ""}

    async def end(self) -> None:
        """End the session, and wait until its processes are gone."""
        try:
            with suppress(OSError, TimeoutError):
                self._socket.shutdown(socket.SHUT_WR)
                async with asyncio.timeout(GRACE_S):
                    while await asyncio.get_running_loop().sock_recv(self._socket, SLICE):
                        pass
        finally:
            self.close()

    def close(self) -> None:
        """End the session without waiting."""
        self._socket.close()
