"""The live page of a run: the inspector in a process of its own, for as long as another process trains."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from debate_rl.inspector.web import PORT, listen, need_packages, server_for, url_of, warm
from transcripts import TranscriptError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
TRIED = 20
"""Number of ports that are tried, from ``PORT`` on, before any free port."""
STARTING = "The run is starting: no model is loaded yet. This page reloads by itself."


@contextmanager
def live_page(run: Path, tell: Callable[[str], object]) -> Iterator[None]:
    """Serve a run, or the stages of a curriculum, on this machine while the block runs.

    ``tell`` gets one line with the address. The run need not exist yet. ImportError names the extra of a
    missing package.
    """
    need_packages()
    with listen_on_free_port(PORT) as listener:
        os.set_inheritable(fd := listener.fileno(), True)
        # python -m would import modules of the working folder that this process does not
        safe = [] if {"", os.getcwd()} & {*sys.path} else ["-P"]
        command = [sys.executable, *safe, "-m", __name__, str(run), str(fd), str(os.getpid())]
        # its own session: Ctrl-C stops training, which ends the page
        child = subprocess.Popen(command, pass_fds=[fd], stdin=subprocess.DEVNULL, start_new_session=True)
        port = listener.getsockname()[1]
    tell(f"live page: {url_of(HOST, port, '/', None)} until training ends")
    try:
        yield
    finally:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(5)
        child.kill()


def listen_on_free_port(first: int) -> socket.socket:
    """Return a socket on the first free port of several."""
    for port in range(first, first + TRIED):
        with suppress(OSError):
            return listen(HOST, port)
    return listen(HOST, 0)


def when_there_is_a_run(make: Callable[[], ASGIApp]) -> ASGIApp:
    """Return an application that says that the run is starting until ``make`` finds the run."""
    made: list[ASGIApp] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import PlainTextResponse

        if not made:
            try:
                made.append(make())
            except TranscriptError:
                answer = PlainTextResponse(STARTING, 503, {"Refresh": "2"})
                return await answer(scope, receive, send)
        return await made[0](scope, receive, send)

    return app


def _serve(run: Path, listener: socket.socket, parent: int) -> None:
    """Serve a run until the process ``parent`` ends."""
    from debate_rl.inspector.web.app import AccessPolicy, make_app
    from debate_rl.inspector.web.site import Site

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    Thread(target=follow, daemon=True).start()
    os.nice(5)  # training comes first
    Thread(target=warm, daemon=True).start()
    app = when_there_is_a_run(lambda: make_app(Site(run), AccessPolicy.of(HOST)))
    server_for(app).run(sockets=[listener])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
