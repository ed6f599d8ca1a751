"""What is new since a page was made, as rows: it asks every two seconds while a run is written."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from inspector.web.page import Asked
from inspector.web.rendering import render
from inspector.web.runs import step_of

MOST = 200
"""Rows in one answer; where there are more, the page is behind and says so."""


def new_debates(asked: Asked) -> Response:
    """Answer with the debates of the filter after the cursor, newest first, and the next cursor.

    ``back``: the run is now behind the cursor, as after a resume from an earlier checkpoint.
    """
    links, cursor = asked.links, asked.query.get("after") or None
    store = asked.site.searchable(asked.name or "", links.filter)
    newest = store.debates(newest=True, limit=1)
    last = newest[0].id if newest else ""
    rows = store.debates(links.filter, after=cursor, limit=MOST + 1)
    more = len(rows) > MOST
    rows = [] if more else rows[::-1]
    return _answer(
        asked,
        count=len(rows),
        more=more,
        cursor=last,
        back=cursor is not None and _place(last) < _place(cursor),
        html=render("_rows.html", rows=rows, links=links) if rows else "",
        total=store.count(links.filter) if rows else None,
    )


def new_steps(asked: Asked) -> Response:
    """Answer with the steps from the cursor on, which may have grown, newest first."""
    links = asked.links
    store = asked.site.searchable(asked.name or "", links.filter)
    cursor = asked.whole_number("after")
    rows = store.steps(links.within(f"step:>={cursor or 0}"))[::-1]
    last = step_of(rows[0]) if rows else -1
    return _answer(
        asked,
        count=sum(step_of(row) > (-1 if cursor is None else cursor) for row in rows),
        more=len(rows) > MOST,
        cursor=str(last) if rows else "",
        back=cursor is not None and last < cursor,
        html=render("_steps.html", rows=rows[:MOST], links=links),
        total=store.count(links.filter),
        steps=len(store.steps()),
    )


def _answer(asked: Asked, **values: object) -> Response:
    return JSONResponse({**values, "live": asked.is_live})


def _place(id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in id.split(".")) if id else ()
