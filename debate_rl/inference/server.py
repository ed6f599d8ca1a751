"""JSON over HTTP. Requests are sent again while the server is busy, and errors are one line."""

from __future__ import annotations

import asyncio
import json
import os
import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from debate_rl.addresses import checked_url

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECT_S = 10.0
LONGEST_WAIT_S = 60.0
LARGEST_REPLY = 32 * 2**20
"""Maximum bytes of an unpacked reply. 200,000 tokens with their log-probabilities take less."""
GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
BUSY = frozenset({408, 409, 425, 429})
UNAUTHORIZED = 401
LOCAL = ("localhost", "127.0.0.1", "::1")


class ServerError(ConnectionError):
    """A server gave no usable answer. ``status`` is 0 if there was no HTTP reply.

    ``wait_s``: the seconds that the server asks to wait before the next try; None if a retry is useless.
    """

    def __init__(self, message: str, status: int = 0, *, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.status, self.wait_s = status, wait_s


RETRIES = 4
"""Number of retries after a timeout, 429 or 5xx, with doubling waits."""


class Server:
    """A server at ``base_url``, with at most ``concurrency`` running requests in an event loop.

    ``api_key`` is sent as a bearer token and never appears in messages. A try may take ``timeout_s`` seconds,
    and a request is sent again at most ``retries`` times, after doubling waits.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        concurrency: int = 64,
        timeout_s: float = 600.0,
        retries: int = RETRIES,
        first_wait_s: float = 0.5,
    ) -> None:
        import httpx

        self.base_url = checked_url(base_url)
        if concurrency < 1 or retries < 0 or not timeout_s > 0:
            raise ValueError(
                f"concurrency {concurrency} must be 1 or more, retries {retries} 0 or more, "
                f"timeout_s {timeout_s} positive"
            )
        self._key = api_key or ""
        if self._key and not (self._key.isascii() and self._key.isprintable() and " " not in self._key):
            raise ValueError(
                f"{OPENAI.name}: contains a character that keys cannot have, such as a space or a line break"
            )
        # A compressed answer could be huge when unpacked, and answers are small.
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        self._headers["accept-encoding"] = "identity"
        if self._key:
            self._headers["authorization"] = f"Bearer {self._key}"
        self._concurrency, self._retries = concurrency, retries
        self._timeout_s, self._first_wait_s = timeout_s, first_wait_s
        secure = self.base_url.startswith("https")
        self._tls: ssl.SSLContext | bool = httpx.create_ssl_context() if secure else True
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def post(self, path: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return the JSON object of the reply. ServerError if there is none."""
        return self._object(path, await self._ask(path, body))

    async def get(self, path: str) -> Mapping[str, object]:
        """Return the JSON object at a path. ServerError if there is none."""
        return self._object(path, await self._ask(path, None))

    async def tell(self, path: str, body: Mapping[str, object]) -> None:
        """Post a request and ignore the reply. ServerError if it failed."""
        await self._ask(path, body)

    async def _ask(self, path: str, body: Mapping[str, object] | None) -> bytes:
        """Return the answer to a POST of ``body``, or to a GET if ``body`` is None."""
        url = self.base_url + path
        data = None if body is None else json.dumps(body).encode()  # ASCII: half a character cannot break it
        gate = self._gates.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._concurrency))
        async with gate:
            for attempt in count():
                try:
                    return await self._send(url, data)
                except ServerError as failure:
                    if failure.wait_s is None:
                        raise
                    if attempt == self._retries:
                        tries = f" ({attempt + 1} tries)" if attempt else ""
                        raise ServerError(f"{failure}{tries}", failure.status) from failure
                    doubled = self._first_wait_s * 2.0**attempt  # spreads requests that were refused together
                    wait = max(failure.wait_s, doubled * random.uniform(0.75, 1.25))
                await asyncio.sleep(min(wait, LONGEST_WAIT_S))
        raise AssertionError

    async def _send(self, url: str, data: bytes | None) -> bytes:
        """Send the request once, over a new connection."""
        import httpx

        limits = httpx.Timeout(self._timeout_s, connect=CONNECT_S)
        method = "GET" if data is None else "POST"
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                httpx.AsyncClient(verify=self._tls, timeout=limits) as client,
                client.stream(method, url, content=data, headers=self._headers) as response,
            ):
                return self._read(url, response, await _body(url, response))
        except TimeoutError as error:
            raise ServerError(f"{url}: no answer in {self._timeout_s:g} s", wait_s=0) from error
        except httpx.RequestError as error:
            why = self._clean(str(error) or type(error).__name__)
            raise ServerError(f"{url}: {why}", wait_s=0) from error

    def _object(self, path: str, data: bytes) -> Mapping[str, object]:
        url = self.base_url + path
        try:
            answer: object = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ServerError(f"{url}: HTTP 200, but the answer is not JSON", 200) from error
        if not isinstance(answer, dict):
            raise ServerError(f"{url}: HTTP 200, but the answer is not a JSON object", 200)
        if answer.get("error"):  # as some relays report a failure of the server after them
            raise ServerError(f"{url}: HTTP 200, but: {self._clean(_complaint(data))}", 200)
        return cast("dict[str, object]", answer)

    def _read(self, url: str, response: httpx.Response, data: bytes) -> bytes:
        status = response.status_code
        if status == 200:
            return data
        line = f"{url}: HTTP {status} {response.reason_phrase}".rstrip()
        if complaint := self._clean(_complaint(data)):
            line = f"{line}: {complaint}"
        if status == UNAUTHORIZED:
            line += _why_without_key(self.base_url)
        may_pass = status in BUSY or status >= 500
        wait_s = _seconds(response.headers.get("retry-after", "")) if may_pass else None
        raise ServerError(line, status, wait_s=wait_s)

    def _clean(self, text: str) -> str:
        """Return the text on one line, without the key."""
        text = text.replace(self._key, "***") if self._key else text
        return " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())[:300]


@dataclass(frozen=True, slots=True)
class ServerKey:
    """The environment variables of an API key and of the URLs it belongs to, and the default URL."""

    name: str
    urls_name: str
    default_url: str

    def urls(self) -> list[str]:
        """Return the URLs of the hosts that may receive the key."""
        urls = [url.strip() for url in os.environ.get(self.urls_name, "").split(",")]
        return list(filter(None, urls)) or [self.default_url]


OPENAI = ServerKey("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1")


def key_for(base_url: str, key: ServerKey = OPENAI) -> str | None:
    """Return the API key ($OPENAI_API_KEY by default) if it belongs to this server, else None.

    The key belongs to servers on this machine and on the hosts of $OPENAI_BASE_URL, a list with commas (by
    default OpenAI's host). So a recipe from elsewhere cannot choose who receives the key.
    """
    server = urlsplit(checked_url(base_url))
    hosts = [(own.scheme, own.netloc) for own in map(urlsplit, key.urls())]
    belongs = server.hostname in LOCAL or (server.scheme, server.netloc) in hosts
    return os.environ.get(key.name) if belongs else None


def _why_without_key(base_url: str) -> str:
    """Return advice if a key is set but was not sent, because it belongs to other servers; else ""."""
    if not os.environ.get(OPENAI.name) or key_for(base_url) is not None:
        return ""
    own = ", ".join(urlsplit(url).netloc.rpartition("@")[2] for url in OPENAI.urls())
    return (
        f"; {OPENAI.name} was not sent, since it is the key of {own}: if it is this server's, add "
        f"{base_url} to {OPENAI.urls_name} (commas between several)"
    )


async def _body(url: str, response: httpx.Response) -> bytes:
    """Return the unpacked bytes of the answer. ServerError beyond LARGEST_REPLY."""
    status, data = response.status_code, bytearray()
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "", "gzip", "deflate"):
        raise ServerError(f"{url}: the answer has the unknown encoding {coding[:40]!r}", status)
    async for piece in response.aiter_raw():
        data += piece
        if len(data) > LARGEST_REPLY:
            break
    try:
        unpack = zlib.decompressobj(GZIP_OR_ZLIB).decompress
        body = bytes(data) if coding in ("identity", "") else unpack(data, LARGEST_REPLY + 1)
    except zlib.error as error:
        raise ServerError(f"{url}: the answer cannot be unpacked: {error}", status) from error
    if max(len(data), len(body)) > LARGEST_REPLY:
        raise ServerError(f"{url}: the answer has more than {LARGEST_REPLY} bytes", status)
    return body


def _complaint(data: bytes) -> str:
    """Return the message in an error's body: the usual field of its JSON, or the body's beginning.

    >>> _complaint(b'{"error": {"message": "no such model"}}'), _complaint(b"<h1>Bad gateway</h1>")
    ('no such model', '<h1>Bad gateway</h1>')
    """
    text = data[:20_000].decode("utf-8", "replace")
    try:
        message: object = json.loads(text)
        for key in ("error", "message"):
            if isinstance(message, dict):
                message = cast("dict[str, object]", message).get(key, cast(object, message))
    except (ValueError, RecursionError):
        return text
    return message if isinstance(message, str) else text


def _seconds(header: str) -> float:
    """Return the seconds of a Retry-After header; 0 if it is not a positive number.

    >>> _seconds("3"), _seconds("Wed, 21 Oct 2026 07:28:00 GMT"), _seconds("-1"), _seconds("nan")
    (3.0, 0.0, 0.0, 0.0)
    """
    try:
        return max(0.0, float(header))  # of 0 and nan it is 0
    except ValueError:
        return 0.0
