"""The list of debates that a filter finds."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from inspector.web.page import Asked, Live, show
from inspector.web.site import Busy

PAGE = 50


def listing(asked: Asked) -> Response:
    """Show a page of debates, 50 a page."""
    store, links, after = asked.store, asked.links, asked.query.get("after")
    found = asked.look(
        ("rows", links.newest, after),
        lambda store: store.debates(links.filter, newest=links.newest, after=after, limit=PAGE + 1),
    )
    rows, more = found[:PAGE], len(found) > PAGE
    total = store.count()
    return show(
        asked,
        "debates",
        rows=rows,
        found=_found(asked) if links.filter else total,
        total=total,
        after=after,
        next=rows[-1].id if more else None,
        live=_live(asked, first=after is None) if asked.is_live else None,
    )


def _found(asked: Asked) -> int | None:
    """Return how many debates match, None while they are being counted."""
    try:
        return asked.look("count", lambda store: store.count(asked.links.filter))
    except Busy:
        return None


def count(asked: Asked) -> Response:
    """Answer with how many debates match, null while they are being counted."""
    return JSONResponse({"count": _found(asked)})


def _live(asked: Asked, *, first: bool) -> Live:
    newest = asked.store.debates(newest=True, limit=1)
    url = asked.links("live", "debates", filter=asked.links.filter)
    return Live(url, newest[0].id if newest else "", asked.links.newest and first)
