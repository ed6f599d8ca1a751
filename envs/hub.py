"""Check once and quickly whether the hub can be reached; its own client retries for a minute."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

LIMIT_S = 3.0  # seconds in which the hub, or the proxy before it, must accept a connection


@cache
def is_reachable() -> bool:
    """Return whether the hub accepts a connection; False in offline mode (HF_HUB_OFFLINE)."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    return _takes_connection(*_first_stop(constants.ENDPOINT))


def spare_retries() -> None:
    """Make the hub's client use only its cache, without retries, if the hub cannot be reached."""
    if is_reachable():
        return
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = True
    settings: Any = sys.modules.get("datasets.config")
    if settings is not None:  # if not imported yet, datasets will read the constant
        settings.HF_HUB_OFFLINE = True


def why_not() -> str:
    """Return the end of an error message about data that is neither in the cache nor on a hub in reach."""
    from huggingface_hub import constants

    host = urlsplit(constants.ENDPOINT).hostname
    return f"it is not in the cache of this machine, and the hub ({host}) cannot be reached"


def has_model(name: str) -> bool:
    """Return whether a model is on this machine: a folder of this name, or its config in the hub's cache."""
    from huggingface_hub import try_to_load_from_cache

    if Path(name).expanduser().is_dir():
        return True
    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except ValueError:  # not an id of the hub
        return False


def _first_stop(endpoint: str) -> tuple[str, int]:
    """Return the host and port of the hub, or of the proxy before the hub.

    >>> _first_stop("http://localhost:8080/hub")
    ('localhost', 8080)
    """
    url = urlsplit(endpoint)
    proxy = getproxies().get(url.scheme)
    if proxy and not proxy_bypass(url.hostname or ""):
        url = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return url.hostname or "", url.port or (443 if url.scheme == "https" else 80)


def _takes_connection(host: str, port: int) -> bool:
    """Return whether a host accepts a connection within ``LIMIT_S`` seconds, including the DNS lookup."""
    taken = threading.Event()

    def connect() -> None:
        with suppress(OSError):
            socket.create_connection((host, port), LIMIT_S).close()
            taken.set()

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    return taken.is_set()
