"""The inspector in a browser: one process for the user who started it."""

from __future__ import annotations

import errno
import gc
import socket
import webbrowser
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import quote

from debate.settings import install_hint

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn import Server

__all__ = ["serve"]

PORT = 8123
"""The port if none is given."""


def serve(
    path: Path | str,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    filter: str = "",
    open_browser: bool = False,
    token: str | None = None,
) -> None:
    """Serve a run or a folder of runs to a browser until interrupted. ``port`` 0 takes a free port.

    Pages change nothing but the stars, labels and notes of a run. Unless ``host`` is loopback, pages need a
    token, which is part of the printed address. ImportError names the extra of a missing package, OSError why
    the port is unavailable.
    """
    need_packages()
    from debate_rl.inspector.web.app import AccessPolicy, make_app
    from debate_rl.inspector.web.page import Links
    from debate_rl.inspector.web.site import Site

    Thread(target=warm, daemon=True).start()
    site, policy = Site(Path(path)), AccessPolicy.of(host, token)
    start = Links(site.runs()[0].name, filter).debates() if filter and site.is_one_run else "/"
    try:
        with listen(host, port) as listener:
            url = url_of(host, listener.getsockname()[1], start, policy.token)
            print(f"Open {url} (Ctrl-C stops the server)", flush=True)
            if open_browser:
                webbrowser.open(url)
            server_for(make_app(site, policy)).run(sockets=[listener])
    finally:
        site.close()


def server_for(app: ASGIApp) -> Server:
    """Return a server for an application. It logs only errors."""
    from uvicorn import Config, Server

    return Server(Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off"))


def warm() -> None:
    """Before the first request, import the packages that pages need; scipy alone takes half a second."""
    for name in ("debate_rl.reports.rows", "debate_rl.inspector.views.why", "debate_rl.config"):
        import_module(name)
    gc.collect()
    gc.freeze()  # exclude loaded modules from garbage collection


def need_packages() -> None:
    """Raise ImportError, in one line, if the browser's packages are not installed."""
    for name in ("jinja2", "starlette", "uvicorn"):
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise ImportError(f"the package {name!r} is not installed: {install_hint('inspect')}") from error


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. OSError says in one line why the address is unavailable."""
    listener = None
    try:
        where = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = where[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
    except (OSError, OverflowError) as error:
        if listener is not None:
            listener.close()
        why = f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}"
        known = {
            errno.EADDRINUSE: f"port {port} is in use; choose another with --port (0: a free port)",
            errno.EACCES: f"port {port} needs more privileges; choose --port 1024 or above",
        }
        raise OSError(known.get(getattr(error, "errno", None) or 0, why)) from error
    return listener


def url_of(host: str, port: int, path: str, token: str | None) -> str:
    """Return the address to open.

    >>> url_of("127.0.0.1", 8123, "/", None)
    'http://127.0.0.1:8123/'
    >>> url_of("0.0.0.0", 80, "/run/a/debates?filter=x", "t").replace(socket.gethostname(), "HOST")
    'http://HOST:80/run/a/debates?filter=x&token=t'
    """
    name = socket.gethostname() if host in ("", "0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    rest = f"{'&' if '?' in path else '?'}token={quote(token, safe='')}" if token else ""
    return f"http://{name}:{port}{path}{rest}"
