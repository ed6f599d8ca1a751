"""An object in its own process, whose methods any process with its address can call over a socket.

The process is a new interpreter, so the caller may be a script without a ``__main__`` guard, a notebook or a
thread. It reads a pipe that its owner keeps open, so it ends whenever the owner ends. It ignores signals to
its process group, and its output goes to its log. Messages are pickled; only callers with the key of the
address are accepted.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from secrets import token_bytes
from socket import SHUT_RDWR, socket
from typing import Any

PING = "ping"
CANCEL = "cancel"
AGAIN_S = 0.1
"""Time between two attempts to reach a process that is starting."""


class RemoteError(OSError):
    """An error in the remote object other than ValueError, or a process that ended before it answered."""


class Gone(RemoteError):
    """A process that ended before it answered."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an object: the path of a socket, and the key that callers must present."""

    path: str
    key: bytes


def new_address(folder: Path, name: str) -> Address:
    """Return a new address in a folder, which only this user should be able to enter."""
    return Address(str(folder / name), token_bytes(32))


class Remote:
    """A connection to an object in another process, for use from any thread or event loop."""

    def __init__(self, address: Address, *, patience_s: float = 0.0) -> None:
        self._connection = _connected(address, patience_s)
        self._waiting: dict[int, Future[Any]] = {}
        self._numbers = count()
        self._lock = threading.Lock()
        self.alive = True
        threading.Thread(target=self._read, name="remote answers", daemon=True).start()

    def call(self, method: str, *arguments: object) -> Future[Any]:
        """Call a method. The future gets its result, its ValueError, a RemoteError, or Gone."""
        return self._send(method, arguments)[1]

    async def ask(self, method: str, *arguments: object) -> Any:
        """Call a method and wait for its result. Cancelling the wait cancels the call."""
        number, future = self._send(method, arguments)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            with suppress(Gone), self._lock:
                self._put((number, CANCEL, ()))
            raise

    def close(self) -> None:
        """Close the connection. Waiting calls raise Gone."""
        with suppress(OSError), socket(fileno=os.dup(self._connection.fileno())) as end:
            end.shutdown(SHUT_RDWR)  # at which the reader ends

    def _send(self, method: str, arguments: tuple[object, ...]) -> tuple[int, Future[Any]]:
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = future
            try:
                if not self.alive:
                    raise Gone("the process has ended")
                self._put((number, method, arguments))
            except Gone as gone:
                self._waiting.pop(number)
                future.set_exception(gone)
        return number, future

    def _put(self, message: object) -> None:
        try:
            self._connection.send(message)
        except (OSError, ValueError) as error:
            raise Gone("the process has ended") from error

    def _read(self) -> None:
        with self._connection, suppress(EOFError, OSError):
            while True:
                number, fine, value = self._connection.recv()
                with self._lock:
                    future = self._waiting.pop(number, None)
                if future is not None and future.set_running_or_notify_cancel():
                    future.set_result(value) if fine else future.set_exception(value)
        with self._lock:
            self.alive, waiting, self._waiting = False, self._waiting, {}
        for future in waiting.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(Gone("the process ended before it answered"))


def _connected(address: Address, patience_s: float) -> Connection:
    until = time.monotonic() + patience_s
    while True:
        try:
            return Client(address.path, family="AF_UNIX", authkey=address.key)
        except (OSError, EOFError) as error:
            if time.monotonic() >= until:
                raise Gone(f"nothing answers at {address.path}") from error
            time.sleep(AGAIN_S)


@dataclass
class RemoteProcess:
    """A process that serves the object ``factory(**settings)``; ``factory`` is "package.module:name".

    ``environment`` is added to this process's environment. ``python`` and ``path``: another interpreter, and
    the folders in which it finds this package; ``path`` None means this process's own ``sys.path``.
    """

    factory: str
    settings: Mapping[str, Any]
    address: Address
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    python: str = sys.executable
    path: Sequence[str] | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start or restart the process, without waiting for its object."""
        self.close()
        Path(self.address.path).unlink(missing_ok=True)
        with self.log.open("ab") as log:
            entries = sys.path if self.path is None else self.path
            found = os.pathsep.join(str(Path(entry or ".").absolute()) for entry in entries)
            self._process = subprocess.Popen(
                [self.python, "-P", "-c", f"from {__name__} import serve_forever; serve_forever()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self.environment, "PYTHONPATH": found},
            )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, as ``wait`` will say
            pickle.dump((self.address, self.factory, dict(self.settings)), self._process.stdin)
            self._process.stdin.flush()

    def wait(self) -> None:
        """Wait until the object exists. Raises the ValueError of its factory, or Gone."""
        process = self._started()
        assert process.stdout is not None
        try:
            problem = pickle.load(process.stdout)
        except EOFError:
            process.wait()
            raise Gone(f"{self._ended()} before it was ready") from None
        if problem is not None:
            raise problem

    @property
    def pid(self) -> int:
        """The process id."""
        return self._started().pid

    def ended(self) -> str:
        """Return how the process ended, or "" while it runs."""
        return "" if self._started().poll() is None else self._ended()

    def close(self) -> None:
        """Kill the process, if it was started."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise Gone("the process was not started")
        return self._process

    def _ended(self) -> str:
        code = self._started().returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"process {self.pid} {how} (see {self.log})"


def serve_forever() -> None:
    """Create the object that the owner names on standard input, and serve it until the owner ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    said = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints goes to the log
    owner = sys.stdin.buffer
    address, factory, settings = pickle.load(owner)
    threading.Thread(target=lambda: (owner.read(), os._exit(0)), name="owner", daemon=True).start()
    module, _, name = factory.partition(":")
    try:
        served = getattr(import_module(module), name)(**settings)
        listener = Listener(address.path, family="AF_UNIX", authkey=address.key, backlog=64)
    except BaseException as error:
        pickle.dump(_crossing(error), said)
        said.close()
        raise
    pickle.dump(None, said)
    said.close()
    asyncio.run(_answer_all(served, listener))


def answer(served: object, address: Address, *, ready: Callable[[], None], left: Callable[[], None]) -> None:
    """Serve an object in this thread to one caller, until the caller disconnects.

    ``ready`` is called when the caller connects. ``left`` is called in another thread when the caller
    disconnects, even while the object is busy.
    """
    with Listener(address.path, family="AF_UNIX", authkey=address.key) as listener:
        connection = listener.accept()
    ready()

    async def answer_one() -> None:
        caller = _Caller(connection, served, asyncio.get_running_loop())
        await asyncio.to_thread(lambda: (caller.read(), left()))

    asyncio.run(answer_one())


async def _answer_all(served: object, listener: Listener) -> None:
    loop = asyncio.get_running_loop()

    def accept() -> None:
        while True:
            with suppress(OSError, EOFError, AuthenticationError):  # a caller that disconnected or has no key
                caller = _Caller(listener.accept(), served, loop)
                threading.Thread(target=caller.read, name="calls", daemon=True).start()

    threading.Thread(target=accept, name="accept", daemon=True).start()
    await asyncio.Event().wait()


class _Caller:
    """The server side of one connection to the served object."""

    def __init__(self, connection: Connection, served: object, loop: asyncio.AbstractEventLoop) -> None:
        self._connection, self._served, self._loop = connection, served, loop
        self._lock = threading.Lock()
        self._calls: dict[int, Future[None]] = {}

    def read(self) -> None:
        """Take calls until the caller disconnects. Unfinished calls are then cancelled."""
        with suppress(EOFError, OSError):
            while True:
                number, method, arguments = self._connection.recv()
                if method == PING:  # at once, in this thread, however busy the loop is
                    state = getattr(self._served, "state", None)
                    self._reply(number, True, None if state is None else state())
                elif method == CANCEL:
                    self._cancel(number)
                else:
                    call = self._answer(number, method, arguments)
                    self._calls[number] = asyncio.run_coroutine_threadsafe(call, self._loop)
                    self._calls[number].add_done_callback(lambda _, number=number: self._calls.pop(number))
        for number in list(self._calls):
            self._cancel(number)

    def _cancel(self, number: int) -> None:
        call = self._calls.get(number)  # it may have ended meanwhile
        if call is not None:
            call.cancel()

    async def _answer(self, number: int, method: str, arguments: tuple[object, ...]) -> None:
        try:
            value = await getattr(self._served, method)(*arguments)
        except Exception as error:
            self._reply(number, False, _crossing(error))
        else:
            self._reply(number, True, value)

    def _reply(self, number: int, fine: bool, value: object) -> None:
        with suppress(OSError), self._lock:
            self._connection.send((number, fine, value))


def _crossing(error: BaseException) -> Exception:
    """Return a picklable error: ValueError for a ValueError, else RemoteError with the error's name."""
    if isinstance(error, ValueError):
        return ValueError(str(error))
    return RemoteError(f"{type(error).__name__}: {error}")
