"""The pages as an ASGI application: routes, errors as pages, and access control."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from debate_rl.inspector.blocks import Line
from debate_rl.inspector.views.replays import ReplayError
from debate_rl.inspector.web.access import AccessControl, AccessPolicy
from debate_rl.inspector.web.page import PageRequest, address, show
from debate_rl.inspector.web.pages import PAGES, Page
from debate_rl.inspector.web.rendering import HERE
from debate_rl.inspector.web.site import Busy, NotFound, Site
from transcripts import FilterError, TranscriptError
from transcripts.errors import FieldError

KINDS = {"style.css": "text/css", "inspect.js": "text/javascript", "icon.svg": "image/svg+xml"}
MISSING = (": no debate ", " is no debate", ": there is no such folder", ": No such file or directory")
"""The message for a debate or a folder that does not exist, or no longer."""


def make_app(site: Site, policy: AccessPolicy) -> ASGIApp:
    """Return the application that shows a site's runs, as the policy allows."""
    routes = [Route(path, _endpoint(site, page), methods=["GET"]) for path, page in PAGES.items()]
    routes += [
        Route("/static/{file}", static, methods=["GET"]),
        Route("/run/{name}", _slash, methods=["GET"]),
    ]

    def not_found(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return _problem(PageRequest(site, request), status, "Not here", "there is no such page")

    def failed(request: Request, error: Exception) -> Response:  # the server prints the trace
        problem = f"{type(error).__name__}: {error}"
        return _problem(PageRequest(site, request), 500, "This page could not be made", problem)

    app = Starlette(routes=routes, exception_handlers={HTTPException: not_found, 500: failed})
    return AccessControl(app, policy)


def _endpoint(site: Site, page: Page) -> Callable[[Request], Response]:
    """Return an endpoint; it runs in a thread, and what is wrong becomes a page."""

    def endpoint(http_request: Request) -> Response:
        request = PageRequest(site, http_request)
        try:
            return page(request)
        except Busy as busy:
            told = busy.progress
            wait = (1000, told.what, told.percent if told.total else None)
            return show(request, "busy", "One moment", [], status=202, progress=wait)
        except FilterError as error:
            return _problem(request, 400, "This filter cannot be read", error.problem, error.shown())
        except NotFound as error:
            return _problem(request, 404, "Not here", str(error))
        except (ReplayError, FieldError) as error:  # of files that can be read, and yet not be shown
            return _problem(request, 422, "This cannot be shown", str(error))
        except TranscriptError as error:
            missing = any(words in str(error) for words in MISSING)
            return _problem(request, 404 if missing else 422, "This cannot be shown", str(error))
        except FileNotFoundError as error:
            return _problem(request, 404, "Not here any more", f"{error.filename}: {error.strerror}")
        except OSError as error:
            return _problem(request, 503, "This cannot be read", error.strerror or str(error))

    return endpoint


def _problem(request: PageRequest, status: int, title: str, problem: str, caret: str = "") -> Response:
    return show(request, "error", title, [Line(problem, name="error")], status=status, problem=caret or " ")


def _slash(request: Request) -> Response:
    return Response(status_code=308, headers={"Location": address("run", request.path_params["name"], "")})


def static(request: Request) -> Response:
    """Return one of our own files."""
    name = request.path_params["file"]
    if name not in KINDS:
        raise HTTPException(404)
    content = (HERE / "static" / name).read_bytes()
    return Response(content, media_type=KINDS[name], headers={"Cache-Control": "max-age=86400"})
