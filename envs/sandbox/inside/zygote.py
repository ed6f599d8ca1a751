"""The zygote, the first process of the outer box: it imports libraries and forks sessions on request."""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

from . import guard, kernel
from .program import open_output

IDLE_S, SESSIONS = 0.2, 8
"""The next module is imported after this many seconds without a request, or after this many sessions."""


def main(words: str) -> None:
    """Serve the host until it is gone; all sessions end with this process.

    ``words`` is JSON with the limits, ``control`` (the socket to the host), ``host`` (the host's pidfd, or
    -1), ``boxed`` and ``modules``, which are imported one by one between requests.
    """
    settings = json.loads(words)
    control, host = socket.socket(fileno=settings["control"]), settings["host"]
    boxed, modules = settings["boxed"], settings["modules"]
    if boxed:
        kernel.end_with_parent()  # the parent is bubblewrap, which the host can kill
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # this process never waits for a session
    home = os.open("/proc/self/ns/pid", os.O_RDONLY) if boxed else -1
    watched = [control] if host < 0 else [control, host]
    forked = 0
    while True:
        ready = select.select(watched, [], [], IDLE_S if modules else None)[0]
        if host in ready:
            return
        if control in ready:
            message, files, _, _ = socket.recv_fds(control, 1, 1)
            if not message or len(files) != 1:
                return
            _fork(settings, files[0], home)
            forked += 1
        if modules and (not ready or forked % SESSIONS == 0):
            with suppress(Exception):  # a program that imports the module will get the error
                importlib.import_module(modules.pop(0))
            gc.collect()
            gc.freeze()


def _fork(settings: dict[str, Any], host: int, home: int) -> None:
    """Fork a session as the first process of a new pid namespace (if there is a box)."""
    with socket.socket(fileno=host) as host_socket:
        try:
            if home >= 0:
                kernel.unshare(kernel.NEW_PID)
            if os.fork() == 0:
                _serve(settings, host_socket, home)
        except OSError as error:
            _refuse(host_socket, error)
        finally:
            if home >= 0:
                kernel.setns(home, kernel.NEW_PID)


def _serve(settings: dict[str, Any], host: socket.socket, home: int) -> NoReturn:
    try:
        for one in (settings["control"], settings["host"], home):
            if one >= 0:
                os.close(one)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        try:
            output = open_output()
            if settings["boxed"]:
                processes = guard.isolate(settings)
            else:
                processes = kernel.Descendants() if sys.platform == "linux" else kernel.Unseen(-1)
            session = guard.Guard(host, output, settings, processes)
        except (OSError, ValueError) as error:
            _refuse(host, error)
        else:
            session.serve()
    finally:
        os._exit(0)


def _refuse(host: socket.socket, error: Exception) -> None:
    with suppress(OSError):
        host.sendall(json.dumps({"refused": str(error)}).encode() + b"\n")
