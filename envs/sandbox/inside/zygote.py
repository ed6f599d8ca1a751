"""The first process of the outer box: it has the libraries imported, and forks a session whenever asked."""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
from contextlib import suppress
from typing import Any

from . import guard, kernel
from .processes import plain_processes


def main(words: str) -> None:
    """Serve the host until it is gone; all ends with this process.

    ``words``: JSON with the limits, ``control`` (the host's socket), ``host`` (the host as a pidfd, or -1),
    ``boxed`` and ``modules``, which are imported while there is nothing else to do.
    """
    settings = json.loads(words)
    control, host = socket.socket(fileno=settings["control"]), settings["host"]
    boxed, modules = settings["boxed"], settings["modules"]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a session
    home = os.open("/proc/self/ns/pid", os.O_RDONLY) if boxed else -1
    watched = [control] if host < 0 else [control, host]
    while True:
        ready = select.select(watched, [], [], 0 if modules else None)[0]
        if host in ready:
            return
        if control in ready:
            message, files, _, _ = socket.recv_fds(control, 1, 2)
            if not message or len(files) != 2:
                return
            _fork(settings, files, home)
        elif modules:
            with suppress(Exception):  # a program that wants it will be told
                importlib.import_module(modules.pop(0))
            gc.collect()
            gc.freeze()


def _fork(settings: dict[str, Any], files: list[int], home: int) -> None:
    """Fork a session, as the first process of a pid namespace."""
    if home >= 0:
        kernel.unshare(kernel.NEW_PID)
    if os.fork() == 0:
        try:
            for one in (settings["control"], settings["host"], home):
                if one >= 0:
                    os.close(one)
            _serve(socket.socket(fileno=files[0]), files[1], settings)
        finally:
            os._exit(0)
    if home >= 0:
        kernel.setns(home, kernel.NEW_PID)
    for one in files:
        os.close(one)


def _serve(host: socket.socket, output: int, settings: dict[str, Any]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    try:
        processes = guard.isolate(settings) if settings["boxed"] else plain_processes()
        session = guard.Guard(host, output, settings, processes)
    except (OSError, ValueError) as error:
        host.sendall(json.dumps({"refused": str(error)}).encode() + b"\n")
        return
    session.serve()
