"""The runs of a folder; steps, debates and replays of one, what is new of it, a problem across steps."""

from __future__ import annotations

from starlette.responses import JSONResponse, RedirectResponse, Response

from debate_rl.inspector.views.across import TurnDifference, across, compare, read
from debate_rl.inspector.views.replays import read_replay, replays
from debate_rl.inspector.web.addresses import address
from debate_rl.inspector.web.charts import Line, chart
from debate_rl.inspector.web.page import Asked, Live, show
from debate_rl.inspector.web.rendering import Clip, clip, render
from debate_rl.inspector.web.site import Busy, Unknown
from transcripts import StepRow

SHOWN_STEPS = 200


def front(asked: Asked) -> Response:
    """Show the runs, or go to the only one."""
    if asked.site.is_one_run:
        return RedirectResponse(address("run", asked.site.runs()[0].name, ""), 307)
    return show(asked, "runs", runs=asked.site.runs())


def steps(asked: Asked) -> Response:
    """Show a run step by step, the newest first, with the course of its figures."""
    store, links = asked.store, asked.links
    found = asked.look("steps", lambda store: store.steps(links.filter))
    before = asked.whole_number("before")
    rows = [row for row in reversed(found) if before is None or step_of(row) < before]
    return show(
        asked,
        "steps",
        run=asked.site.run(asked.name or ""),
        rows=rows[:SHOWN_STEPS],
        older=step_of(rows[SHOWN_STEPS - 1]) if len(rows) > SHOWN_STEPS else None,
        total=sum(row.debates for row in found),
        course=chart(lines_of(found)),
        damage=store.damage,
        live=live_of(asked, found) if asked.is_live and before is None else None,
    )


def step_of(row: StepRow) -> int:
    """Return the step of a row that is of one."""
    assert row.step is not None
    return row.step


def lines_of(rows: list[StepRow]) -> list[Line]:
    """Return what is drawn over the steps."""
    return [
        Line("accuracy, last round", "a", [(step_of(row), row.accuracy_last_round) for row in rows]),
        Line("accuracy, round 0", "b", [(step_of(row), row.accuracy_round_0) for row in rows]),
        Line("winner accuracy", "c", [(step_of(row), row.winner_accuracy) for row in rows]),
        Line("judge accuracy", "d", [(step_of(row), row.judge_accuracy) for row in rows]),
    ]


def live_of(asked: Asked, rows: list[StepRow]) -> Live:
    """Return how the page asks for steps that are new or have grown."""
    url = asked.links("live", "steps", filter=asked.links.filter)
    return Live(url, str(rows[-1].step) if rows else "", insert=True)


PAGE = 50


def debate_list(asked: Asked) -> Response:
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


MOST_NEW = 200
"""Rows in one answer; where there are more, the page is behind and says so."""


def new_debates(asked: Asked) -> Response:
    """Answer with the debates of the filter after the cursor, newest first, and the next cursor.

    ``back``: the run is now behind the cursor, as after a resume from an earlier checkpoint.
    """
    links, cursor = asked.links, asked.query.get("after") or None
    store = asked.site.searchable(asked.name or "", links.filter)
    newest = store.debates(newest=True, limit=1)
    last = newest[0].id if newest else ""
    rows = store.debates(links.filter, after=cursor, limit=MOST_NEW + 1)
    more = len(rows) > MOST_NEW
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
        more=len(rows) > MOST_NEW,
        cursor=str(last) if rows else "",
        back=cursor is not None and last < cursor,
        html=render("_steps.html", rows=rows[:MOST_NEW], links=links),
        total=store.count(links.filter),
        steps=len(store.steps()),
    )


def _answer(asked: Asked, **values: object) -> Response:
    return JSONResponse({**values, "live": asked.is_live})


def _place(id: str) -> tuple[int, ...]:
    return tuple(int(part) for part in id.split(".")) if id else ()


PIECE_LIMIT, DIFFERENCE_LIMIT = 3_000, 70_000


def same_problem(asked: Asked) -> Response:
    """Show a problem's debates, and what differs between two of them where two are chosen."""
    problem, a, b = (asked.query.get(key, "") for key in ("problem", "a", "b"))
    if not problem:
        raise Unknown("the address names no problem: problem=ID")
    store = asked.store
    found = across(store, problem)
    compared = compare(read(store, a), read(store, b), (a, b)) if a and b else None
    return show(
        asked,
        "across",
        found=found,
        a=a,
        b=b,
        compared=compared,
        texts=_texts(compared.turns) if compared else {},
    )


def _texts(turns: tuple[TurnDifference, ...]) -> dict[object, list[tuple[str, Clip]]]:
    """Return the words of each turn as marked pieces, as many characters as a page holds."""
    left, found = DIFFERENCE_LIMIT, dict[object, list[tuple[str, Clip]]]()
    for turn in turns:
        shown: list[tuple[str, Clip]] = []
        for piece in turn.pieces:
            if left <= 0:
                break
            cut = clip(piece.text, min(PIECE_LIMIT, left))
            left -= len(cut.text)
            shown.append((piece.mark, cut))
        found[turn.turn] = shown
    return found


MOST_REPLAYED = 200


def replay_list(asked: Asked) -> Response:
    """Show the replays of a run."""
    return show(asked, "replays", found=replays(asked.site.run(asked.name or "").path))


def replay(asked: Asked) -> Response:
    """Show one replay, and one debate under both schemes where the address names it."""
    run, wanted = asked.site.run(asked.name or "").path, asked.request.path_params["replay"]
    if wanted not in {one.name for one in replays(run)}:
        raise Unknown(f"there is no replay {wanted!r}")
    found, id = read_replay(run, wanted), asked.query.get("debate", "")
    debate = found.debate(id) if id else None
    if id and debate is None:
        raise Unknown(f"the replay shows no debate {id!r}")
    return show(asked, "replay", found=found, debate=debate, most=MOST_REPLAYED)
