"""Sessions that run programs in a box: taken from a process that has the libraries ready and forks."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import tempfile
import threading
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from debate.tools import Ran
from envs.sandbox.box import Zygote, check_system, refusal
from envs.sandbox.limits import Limits
from envs.sandbox.output import read_output

AT_ONCE = 4 * (os.cpu_count() or 1)
"""Programs that run at a time; others wait, which does not count for their time."""
LIVE = 256
"""Sessions in use at a time; others wait."""
LONGEST_PROGRAM = 1 << 20
"""Characters of a program."""
STRETCH = 6
GRACE_S = 10.0
"""A session that says nothing for so many times its limit and so many seconds is given up."""
TRIAL, TRIAL_S = "print(6 * 7)", 30.0
SLICE = 1 << 16

_log = logging.getLogger(__name__)


class Sandbox:
    """Where programs run: each session in namespaces of its own, without network, files or privileges.

    Any number of tasks may use it, from any event loop; a task holds one session at a time. It starts at its
    first use, or by ``start``, and ends by ``close``, with a ``with`` block or with this process, however it
    ends. ``warm``: sessions kept ready beside those in use. ``unsafe``: no box, plain processes of this user
    with limits, for programs of one's own.
    """

    def __init__(self, limits: Limits | None = None, *, warm: int = 4, unsafe: bool = False) -> None:
        self.limits = limits or Limits()
        self._warm_size, self._unsafe = warm, unsafe
        self._lock = threading.Lock()
        self._pool: _Pool | None = None
        self._queues: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Queues] = (
            weakref.WeakKeyDictionary()
        )

    def start(self) -> None:
        """Start now, and run a first program; SandboxRefused, with what to install or to set."""
        box = _Box(self._open().zygote)
        try:
            answer = box.ask_at_once(TRIAL)
            output = box.output(100)
        finally:
            box.close()
        if output.strip() != "42":
            raise refusal(answer.get("refused") or self._complaint() or str(answer.get("error", "")))

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[SandboxSession]:
        """Take a fresh session; at the end of the block nothing is left of it."""
        session = SandboxSession(self)
        try:
            yield session
        finally:
            await session.close()

    def close(self) -> None:
        """End every session; a later use starts anew."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> _Pool:
        """Return what forks sessions; a new one where there is none, or it has died."""
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
                weakref.finalize(self, pool.close)
            return pool

    def _complaint(self) -> str:
        with self._lock:
            return self._pool.zygote.complaint() if self._pool else ""

    def _of_this_loop(self) -> _Queues:
        return self._queues.setdefault(asyncio.get_running_loop(), _Queues())


class _Queues:
    """Who waits, first come first served: for a session, and for a turn to run a program."""

    def __init__(self) -> None:
        self.sessions, self.turns = asyncio.Semaphore(LIVE), asyncio.Semaphore(AT_ONCE)


class SandboxSession:
    """A session: it takes its process at its first program, and another where that has died."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._box: _Box | None = None
        self._place: asyncio.Semaphore | None = None

    async def run(self, code: str) -> Ran:
        """Run a program; never raises on what it does. SandboxRefused where nothing can run here."""
        if len(code) > LONGEST_PROGRAM:
            error = f"ProgramTooLong: {len(code):,} characters, of at most {LONGEST_PROGRAM:,}"
            return Ran("error", error, error)
        queues = self._sandbox._of_this_loop()
        if self._place is None:
            await queues.sessions.acquire()
            self._place = queues.sessions
        async with queues.turns:
            if self._box is None:
                self._box = self._sandbox._open().take()
            box, began_anew = self._box, False
            answer = await box.ask(code, self._patience())
            if "refused" in answer:
                raise refusal(answer["refused"])
            output = box.output(self._sandbox.limits.output_chars)
            if not answer["alive"]:
                self._box, began_anew = None, True
                await box.end()
        return _ran(answer, output, began_anew)

    async def close(self) -> None:
        """End it; the next program would begin anew."""
        box, self._box = self._box, None
        place, self._place = self._place, None
        try:
            if box is not None:
                await box.end()
        finally:
            if place is not None:
                place.release()

    def _patience(self) -> float:
        return STRETCH * self._sandbox.limits.seconds + GRACE_S


def _ran(answer: dict[str, Any], output: str, lost: bool) -> Ran:
    error = answer["error"]
    if error and not output.rstrip().endswith(error):
        output += ("\n" if output and not output.endswith("\n") else "") + error + "\n"
    if lost:
        output += "[the session ended: nothing that was defined in it is left]\n"
    return Ran(answer["status"], output, error, answer["seconds"])


class _Pool:
    """The process that forks sessions, and those that it has forked ahead."""

    def __init__(self, limits: Limits, size: int, *, unsafe: bool) -> None:
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
        self._output = _memory_file()
        with theirs, suppress(OSError):  # a zygote that has died is seen when the session is asked
            zygote.ask(theirs, self._output)
        self._socket.setblocking(False)

    async def ask(self, code: str, seconds: float) -> dict[str, Any]:
        """Run a program and return what the guard says of it; a session that says nothing has died."""
        loop, said = asyncio.get_running_loop(), b""
        try:
            os.ftruncate(self._output, 0)
            async with asyncio.timeout(seconds):
                await loop.sock_sendall(self._socket, _framed(code))
                while not said.endswith(b"\n"):
                    part = await loop.sock_recv(self._socket, SLICE)
                    if not part:
                        break
                    said += part
        except (OSError, TimeoutError):
            pass
        return _answer(said)

    def ask_at_once(self, code: str) -> dict[str, Any]:
        """Do the same without an event loop."""
        self._socket.settimeout(TRIAL_S)
        said = b""
        with suppress(OSError):
            self._socket.sendall(_framed(code))
            while not said.endswith(b"\n") and (part := self._socket.recv(SLICE)):
                said += part
        self._socket.setblocking(False)
        return _answer(said)

    def output(self, longest: int) -> str:
        """Return what the program wrote, and forget it."""
        text = read_output(self._output, longest)
        os.ftruncate(self._output, 0)
        return text

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
        if self._output >= 0:
            os.close(self._output)
            self._output = -1


def _memory_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("output")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _framed(code: str) -> bytes:
    body = code.encode("utf-8", "replace")
    return len(body).to_bytes(4) + body


def _answer(said: bytes) -> dict[str, Any]:
    if said.endswith(b"\n"):
        return json.loads(said)
    return {"status": "died", "error": "the session ended", "seconds": 0.0, "alive": False}
