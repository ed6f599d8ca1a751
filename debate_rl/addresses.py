"""URLs of servers in a configuration or a command."""

from __future__ import annotations

from urllib.parse import urlsplit


def checked_url(url: str, key: str = "base_url") -> str:
    """Return a server's URL without a final slash.

    Raises ValueError, whose message begins with ``key``, if the URL is invalid or contains a secret.

    >>> checked_url("http://localhost:8000/v1/")
    'http://localhost:8000/v1'
    >>> checked_url("localhost:8000/v1")
    Traceback (most recent call last):
        ...
    ValueError: base_url: 'localhost:8000/v1' must begin with http:// or https:// and name a host
    """
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(f"{key}: this is not a URL; write it as http://host:port/v1") from None
    if "@" in parts.netloc:
        raise ValueError(f"{key}: contains a user name or password; remove them, and set OPENAI_API_KEY")
    if not whole or not url.isprintable() or " " in url:
        raise ValueError(f"{key}: {url!r} must begin with http:// or https:// and name a host")
    if parts.query or parts.fragment:
        raise ValueError(f"{key}: must end with the path, as in http://host:port/v1, without ? or #")
    return url.rstrip("/")
