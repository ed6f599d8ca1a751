"""The pages as an ASGI application: access control, routes, and errors as pages."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from debate_rl.inspector.blocks import Line
from debate_rl.inspector.views.replays import ReplayError
from debate_rl.inspector.web.json_lines import Mistake
from debate_rl.inspector.web.page import PageRequest, address, show
from debate_rl.inspector.web.pages import FORMS, PAGES, Page
from debate_rl.inspector.web.rendering import HERE
from debate_rl.inspector.web.site import Busy, NotFound, Site
from transcripts import FilterError, TranscriptError
from transcripts.errors import FieldError

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every response. Without a referrer, a browser would not say where a form comes from."""
MOST_BYTES = 1 << 18
"""Maximum size of a form."""
KINDS = {
    **dict.fromkeys(("style.css", "uplot.css"), "text/css"),
    **dict.fromkeys(("inspect.js", "charts.js", "uplot.js"), "text/javascript"),
    "icon.svg": "image/svg+xml",
}
MISSING = (": no debate ", " is not a debate", ": there is no such folder", ": No such file or directory")
"""Parts of messages about a debate or a folder that does not exist (any more)."""


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The accepted host names, whether any IP address is accepted, and the required token, if any."""

    hosts: frozenset[str]
    any_address: bool = False
    token: str | None = None

    @classmethod
    def of(cls, host: str, token: str | None = None) -> AccessPolicy:
        """Return the policy of a server bound to ``host``. Unless ``host`` is loopback, it has a token."""
        names = {"localhost", "127.0.0.1", "::1", host.lower()}
        wildcard = host in ("", "0.0.0.0", "::")
        if wildcard:
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        if token is not None and not re.fullmatch("[A-Za-z0-9_-]{16,}", token):
            raise ValueError("token: must have at least 16 letters, digits, - and _")
        return cls(frozenset(names - {""}), wildcard, token)

    def knows(self, header: str) -> bool:
        """Return whether a Host header names this server. Others may resolve to its address too."""
        name = host_of(header)
        return name in self.hosts or (self.any_address and _address(name) is not None)

    @property
    def cookie(self) -> str:
        """The name of the token's cookie, which differs between inspectors on one machine."""
        return f"inspector-{hashlib.sha256((self.token or '').encode()).hexdigest()[:8]}"

    def opens(self, given: Iterable[str]) -> bool:
        """Return whether any of these is the token. All are compared, each in constant time."""
        wanted = (self.token or "").encode()
        return any(hmac.compare_digest(text.encode("utf-8", "replace"), wanted) for text in given)


def is_own_form(headers: Headers) -> bool:
    """Return whether a request was made by a page of this server, by the headers that browsers always send.

    >>> is_own_form(Headers({"host": "localhost:8123", "origin": "http://localhost:8123"}))
    True
    >>> is_own_form(Headers({"host": "localhost:8123", "origin": "http://localhost:9000"}))
    False
    """
    origin = headers.get("origin", "").partition("://")[2]
    return origin == headers.get("host") and headers.get("sec-fetch-site", "same-origin") == "same-origin"


def host_of(header: str) -> str:
    """Return the name in a Host header, without port and brackets.

    >>> [host_of(h) for h in ("LocalHost:8123", "[::1]:80", "127.0.0.1", "[::1]evil")]
    ['localhost', '::1', '127.0.0.1', '']
    """
    if header.startswith("["):
        name, _, rest = header[1:].partition("]")
        return name.lower() if rest == "" or rest.startswith(":") else ""
    return header.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server bound to this host.

    >>> [is_loopback(h) for h in ("localhost", "127.0.0.5", "::1", "0.0.0.0", "box.example")]
    [True, True, True, False, False]
    """
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class AccessControl:
    """Refuses foreign hosts, missing tokens, unknown methods and forms of other sites. Adds headers."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy) -> None:
        self._app, self._policy = app, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                own = headers.get("Content-Security-Policy")
                headers.update(HEADERS if own is None else HEADERS | {"Content-Security-Policy": own})
                headers.setdefault("Cache-Control", "no-store")
                headers["Server-Timing"] = f"page;dur={1000 * (time.perf_counter() - began):.2f}"
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, answer)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, policy = Headers(scope=scope), self._policy
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("only GET, HEAD and POST\n", 405, {"Allow": "GET, HEAD, POST"})
        if not policy.knows(headers.get("host", "")):
            return PlainTextResponse("this server does not accept that host name\n", 421)
        if scope["method"] == "POST" and not is_own_form(headers):
            return PlainTextResponse("this form does not come from a page of this server\n", 403)
        if policy.token is None:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if policy.opens(value for key, value in query if key == "token"):
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            path = "/" + scope["raw_path"].decode("latin-1").partition("?")[0].lstrip("/")
            answer = RedirectResponse(path + ("?" + rest if rest else ""), 303)
            answer.set_cookie(policy.cookie, policy.token, httponly=True, samesite="strict")
            return answer
        # cookies of other servers on the host may have any form
        cookies = (text.partition("=") for text in headers.get("cookie", "").split(";"))
        if policy.opens(value.strip() for key, _, value in cookies if key.strip() == policy.cookie):
            return None
        return PlainTextResponse("open the address that the command printed: it ends in ?token=...\n", 401)


def make_app(site: Site, policy: AccessPolicy) -> ASGIApp:
    """Return the application that shows a site's runs under the policy."""
    routes = [Route(path, _endpoint(site, page), methods=["GET"]) for path, page in PAGES.items()]

    def to_run(request: Request) -> Response:
        return RedirectResponse(address("run", request.path_params["name"], ""), 308)

    routes += [Route(path, _form_endpoint(site, do), methods=["POST"]) for path, do in FORMS.items()]
    routes += [Route("/static/{file}", static), Route("/run/{name}", to_run)]

    def failed(request: Request, error: Exception) -> Response:  # the server prints the traceback
        if isinstance(error, HTTPException):
            status, title, problem = error.status_code, "Not found", "there is no such page"
        else:
            status, title, problem = 500, "This page failed", f"{type(error).__name__}: {error}"
        return _problem(PageRequest(site, request), status, title, problem)

    app = Starlette(routes=routes, exception_handlers={HTTPException: failed, 500: failed})
    return AccessControl(app, policy)


def _endpoint(site: Site, page: Page) -> Callable[[Request], Response]:
    """Return an endpoint that runs in a thread, and shows errors as pages."""

    def endpoint(http_request: Request) -> Response:
        request = PageRequest(site, http_request)
        try:
            return page(request)
        except Busy as busy:
            percent = busy.percent if busy.total else None
            if request.is_json:
                return JSONResponse({"busy": busy.what, "percent": percent}, 202)
            wait = (1000, busy.what, percent)
            return show(request, "busy", "One moment", [], status=202, progress=wait)
        except FilterError as error:
            return _problem(request, 400, "Invalid filter", error.problem, error.shown())
        except Mistake as error:
            return _problem(request, 400, "Invalid address", str(error))
        except NotFound as error:
            return _problem(request, 404, "Not found", str(error))
        except (ReplayError, FieldError, TranscriptError) as error:  # the file cannot be shown
            missing = isinstance(error, TranscriptError) and any(words in str(error) for words in MISSING)
            return _problem(request, 404 if missing else 422, "This cannot be shown", str(error))
        except FileNotFoundError as error:
            return _problem(request, 404, "Not found", f"{error.filename}: {error.strerror}")
        except OSError as error:
            return _problem(request, 503, "This cannot be read", error.strerror or str(error))

    return endpoint


def _form_endpoint(
    site: Site, do: Callable[[PageRequest, Mapping[str, str]], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that reads a form, acts in a thread, and shows errors as pages."""

    async def endpoint(http_request: Request) -> Response:
        body = b""
        async for part in http_request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return PlainTextResponse(f"a form has at most {MOST_BYTES:,} bytes\n", 413)
        try:
            form = dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=10))
        except ValueError:
            return PlainTextResponse("this is not a form\n", 400)
        acting = _endpoint(site, lambda request: do(request, form))
        return await run_in_threadpool(acting, http_request)

    return endpoint


def _problem(request: PageRequest, status: int, title: str, problem: str, caret: str = "") -> Response:
    if request.is_json:
        return JSONResponse({"error": problem}, status)
    return show(request, "error", title, [Line(problem, name="error")], status=status, problem=caret or " ")


def static(request: Request) -> Response:
    """Return a static file."""
    name = request.path_params["file"]
    if name not in KINDS:
        raise HTTPException(404)
    content = (HERE / "static" / name).read_bytes()
    return Response(content, media_type=KINDS[name], headers={"Cache-Control": "max-age=86400"})
