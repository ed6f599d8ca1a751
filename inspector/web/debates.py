"""The list of debates that a filter finds."""

from __future__ import annotations

from starlette.responses import Response

from inspector.web.page import Asked, Live, show

PAGE = 50


def listing(asked: Asked) -> Response:
    """Show a page of debates, 50 a page."""
    links, after = asked.links, asked.query.get("after")
    store = asked.site.searchable(asked.name or "", links.filter)
    found = store.debates(links.filter, newest=links.newest, after=after, limit=PAGE + 1)
    rows, more = found[:PAGE], len(found) > PAGE
    total = store.count()
    return show(
        asked,
        "debates",
        rows=rows,
        found=store.count(links.filter) if links.filter else total,
        total=total,
        after=after,
        next=rows[-1].id if more else None,
        live=_live(asked, first=after is None) if asked.is_live else None,
    )


def _live(asked: Asked, *, first: bool) -> Live:
    newest = asked.store.debates(newest=True, limit=1)
    url = asked.links("live", "debates", filter=asked.links.filter)
    return Live(url, newest[0].id if newest else "", asked.links.newest and first)
