"""Sessions that run programs in a box, forked from a process that has already imported the libraries."""

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
"""Maximum number of programs that run at once; the waiting time of others does not count as theirs."""
LONGEST_PROGRAM = 1 << 20  # maximum number of characters of a program
STRETCH = 6
GRACE_S = 10.0  # a session is given up if it is silent for STRETCH times its time limit plus GRACE_S
LOST = "[the session ended: nothing that was defined in it is left]"
TRIAL, TRIAL_S = "print(6 * 7)", 30.0
SLICE = 1 << 16

_log = logging.getLogger(__name__)


class Sandbox:
    """A sandbox for programs: each session has its own namespaces, without network, files or privileges.

    Any number of tasks may use a sandbox, from any event loop; no session waits for another to end. A sandbox
    starts at its first use or by ``start``, and ends by ``close``, with its ``with`` block or with this
    process. ``warm``: the number of idle sessions that are kept ready. ``unsafe``: there is no box, and
    programs that you trust run as plain processes of this user, with limits. ``module``: a further package
    that programs may import, with everything that is installed in the same folder.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        warm: int = 4,
        unsafe: bool = False,
        module: str | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self._warm_size, self._unsafe, self._module = warm, unsafe, module
        self._lock = threading.Lock()
        self._pool: _Pool | None = None
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def start(self) -> None:
        """Start the sandbox and run a trial program; raise SandboxRefused if this fails."""
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
        """Open a new session, and remove all of its processes and files at the end of the block."""
        session = SandboxSession(self)
        try:
            yield session
        finally:
            await session.close()

    def close(self) -> None:
        """End every session; the sandbox starts again if it is used later."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> _Pool:
        """Return the pool of the process that forks sessions; start a new one if there is none or it died."""
        with self._lock:
            pool = self._pool
            if pool is None or not (pool.is_own and pool.zygote.is_alive()):
                if self._unsafe:
                    _log.warning("sandbox.unsafe: programs run as plain processes of this user, in no box")
                else:
                    check_system()
                if pool is not None:
                    pool.close()
                pool = self._pool = _Pool(
                    Zygote(self.limits, unsafe=self._unsafe, module=self._module), self._warm_size
                )
                finalize(self, pool.close)
            return pool

    def turns(self) -> asyncio.Semaphore:
        """Return the semaphore at which this event loop's programs wait, first come, first served."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))

    def take(self) -> _Box:
        """Return a fresh session."""
        return self._open().take()


class SandboxSession:
    """A session, whose process starts with its first program and is replaced if it has died."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._box: _Box | None = None

    async def run(self, code: str) -> Ran:
        """Run a program, and never raise because of it; raise SandboxRefused if no sandbox can run here."""
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
        """End the process and wait until all of its processes are gone; the next program starts a new one."""
        box, self._box = self._box, None
        if box is not None:
            await box.end()


def _ran(answer: dict[str, Any]) -> Ran:
    """Return a program's result; its output ends with the error, and with ``LOST`` if the session ended."""
    output, error = answer["output"], answer["error"]
    lines = [error] if error and not output.rstrip().endswith(error) else []
    lines += [] if answer["alive"] else [LOST]
    if lines and output and not output.endswith("\n"):
        output += "\n"
    return Ran(answer["status"], output + "".join(f"{line}\n" for line in lines), error, answer["seconds"])


class _Pool:
    """The process that forks sessions, and the sessions that it has forked in advance."""

    def __init__(self, zygote: Zygote, size: int) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each session takes one open file
        self.zygote = zygote
        self._size, self._owner = size, os.getpid()
        self._warm: list[_Box] = []
        self._lock = threading.Lock()

    @property
    def is_own(self) -> bool:
        """Whether this process started the pool, not the process of which it is a fork."""
        return self._owner == os.getpid()

    def take(self) -> _Box:
        """Return the oldest warm session, and request another one in its place."""
        with self._lock:
            while len(self._warm) <= self._size:
                self._warm.append(_Box(self.zygote))
            return self._warm.pop(0)

    def close(self) -> None:
        if self.is_own:
            for box in self._warm:
                box.close()
            self._warm.clear()
            self.zygote.close()


class _Box:
    """The host's side of a session."""

    def __init__(self, zygote: Zygote) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs, suppress(OSError):  # a dead zygote is noticed when the session is used
            zygote.ask(theirs)

    async def ask(self, code: str, seconds: float) -> dict[str, Any]:
        """Run a program and return the guard's answer; a session without an answer counts as dead."""
        loop, said = asyncio.get_running_loop(), bytearray()
        body = code.encode("utf-8", "replace")
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                await loop.sock_sendall(self._socket, len(body).to_bytes(4) + body)
                while not said.endswith(b"\n") and (part := await loop.sock_recv(self._socket, SLICE)):
                    said += part
        with suppress(OSError):  # the event loop may have been blocked while the answer arrived
            while not said.endswith(b"\n") and (part := self._socket.recv(SLICE)):
                said += part
        if said.endswith(b"\n"):
            return json.loads(said)
        return {"status": "died", "error": "the session ended", "seconds": 0.0, "alive": False, "output": ""}

    async def end(self) -> None:
        """End the session and wait until its processes are gone."""
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
