"""The runs of a folder; steps, debates and replays of one, what is new of it, a problem across steps."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import JSONResponse, RedirectResponse, Response

from debate_rl.inspector.overview import metrics_of, overviews
from debate_rl.inspector.views.across import across, read
from debate_rl.inspector.views.compared import TurnDifference, compare
from debate_rl.inspector.views.replays import read_replay, replays
from debate_rl.inspector.web.addresses import address
from debate_rl.inspector.web.charts import Chart, Series, chart, chart_of
from debate_rl.inspector.web.page import Live, PageRequest, show
from debate_rl.inspector.web.rendering import Clip, clip, render
from debate_rl.inspector.web.site import Busy, NotFound
from debate_rl.judge_attack.pairs import judged_steps
from transcripts import RunStore, StepRow

SHOWN_STEPS = 200


def front(request: PageRequest) -> Response:
    """Show the runs, or go to the only one."""
    if request.site.is_one_run:
        return RedirectResponse(address("run", request.site.runs()[0].name, ""), 307)
    return show(request, "runs", runs=overviews(request.site.runs()))


def steps(request: PageRequest) -> Response:
    """Show a run step by step, the newest first, with the course of its figures."""
    store, links, run = request.store, request.links, request.run
    all_rows = request.look("steps", lambda store: store.steps(links.filter))
    before = request.whole_number("before")
    rows = [row for row in reversed(all_rows) if before is None or step_of(row) < before]
    last = str(all_rows[-1].step) if all_rows else ""
    live = Live(links("live", "steps", filter=links.filter), last, insert=True)
    return show(
        request,
        "steps",
        run=run,
        rows=rows[:SHOWN_STEPS],
        older=step_of(rows[SHOWN_STEPS - 1]) if len(rows) > SHOWN_STEPS else None,
        total=sum(row.debates for row in all_rows),
        course=chart(series_of(all_rows)),
        training=training_charts(run.path),
        judged=len(judged_steps(run.path)) > 1,
        damage=store.damage,
        live=live if run.writing and before is None else None,
    )


def step_of(row: StepRow) -> int:
    """Return the step of a row that is of one."""
    assert row.step is not None
    return row.step


def series_of(rows: list[StepRow]) -> list[Series]:
    """Return what is drawn over the steps."""
    return [
        Series("accuracy, last round", "a", [(step_of(row), row.accuracy_last_round) for row in rows]),
        Series("accuracy, round 0", "b", [(step_of(row), row.accuracy_round_0) for row in rows]),
        Series("winner accuracy", "c", [(step_of(row), row.winner_accuracy) for row in rows]),
        Series("judge accuracy", "d", [(step_of(row), row.judge_accuracy) for row in rows]),
    ]


TRAINING = (("loss", "loss"), ("KL", "kl_mean"), ("entropy", "entropy_mean"))
"""What is drawn of metrics.jsonl: how it is called, and its name there."""


def training_charts(run: Path) -> list[Chart]:
    """Return a drawing for each of these figures that the run has, in its own range."""
    curves = metrics_of(run)
    series = (
        Series(title, "a", list(zip(*(part.tolist() for part in curves.of(name)), strict=True)))
        for title, name in TRAINING
    )
    return [drawn for one in series if (drawn := chart_of(one)) is not None]


PAGE = 50


def debate_list(request: PageRequest) -> Response:
    """Show a page of debates, 50 a page."""
    store, links, after = request.store, request.links, request.query.get("after")
    page = request.look(
        ("rows", links.newest, after),
        lambda store: store.debates(links.filter, newest=links.newest, after=after, limit=PAGE + 1),
    )
    rows, total = page[:PAGE], store.count()
    live = Live(links("live", "debates", filter=links.filter), _newest(store), links.newest and after is None)
    return show(
        request,
        "debates",
        rows=rows,
        matching=_matching(request) if links.filter else total,
        total=total,
        after=after,
        next=rows[-1].id if len(page) > PAGE else None,
        live=live if request.run.writing else None,
    )


def _matching(request: PageRequest) -> int | None:
    """Return how many debates match, None while they are being counted."""
    try:
        return request.look("count", lambda store: store.count(request.links.filter))
    except Busy:
        return None


def count(request: PageRequest) -> Response:
    """Answer with how many debates match, null while they are being counted."""
    return JSONResponse({"count": _matching(request)})


def _newest(store: RunStore) -> str:
    """Return the id of the newest debate, "" where there is none."""
    return next((row.id for row in store.debates(newest=True, limit=1)), "")


MOST_NEW = 200
"""Rows in one answer; where there are more, the page is behind and says so."""


def new_debates(request: PageRequest) -> Response:
    """Answer with the debates of the filter after the cursor, newest first, and the next cursor.

    ``back``: the run is now behind the cursor, as after a resume from an earlier checkpoint.
    """
    links, cursor = request.links, request.query.get("after") or None
    store = request.site.searchable(request.name, links.filter)
    last = _newest(store)
    rows = store.debates(links.filter, after=cursor, limit=MOST_NEW + 1)
    more = len(rows) > MOST_NEW
    rows = [] if more else rows[::-1]
    return _answer(
        request,
        count=len(rows),
        more=more,
        cursor=last,
        back=cursor is not None and _position(last) < _position(cursor),
        html=render("_rows.html", rows=rows, links=links) if rows else "",
        total=store.count(links.filter) if rows else None,
    )


def new_steps(request: PageRequest) -> Response:
    """Answer with the steps from the cursor on, which may have grown, newest first."""
    links = request.links
    store = request.site.searchable(request.name, links.filter)
    cursor = request.whole_number("after")
    rows = store.steps(links.within(f"step:>={cursor or 0}"))[::-1]
    last = step_of(rows[0]) if rows else -1
    return _answer(
        request,
        count=sum(step_of(row) > (-1 if cursor is None else cursor) for row in rows),
        more=len(rows) > MOST_NEW,
        cursor=str(last) if rows else "",
        back=cursor is not None and last < cursor,
        html=render("_steps.html", rows=rows[:MOST_NEW], links=links),
        total=store.count(links.filter),
        steps=len(store.steps()),
        course=_course(request),
    )


def _course(request: PageRequest) -> str:
    """Return the drawings of the page of steps, as they are now."""
    rows = request.look("steps", lambda store: store.steps(request.links.filter))
    training = training_charts(request.run.path)
    return render("_course.html", course=chart(series_of(rows)), training=training)


def _answer(request: PageRequest, **values: object) -> Response:
    return JSONResponse({**values, "live": request.run.writing})


def _position(id: str) -> tuple[int, ...]:
    """Return step and index of a debate, by which debates are ordered."""
    return tuple(int(part) for part in id.split(".")) if id else ()


PIECE_LIMIT, DIFFERENCE_LIMIT = 3_000, 70_000


def same_problem(request: PageRequest) -> Response:
    """Show a problem's debates, and what differs between two of them where two are chosen."""
    problem, a, b = (request.query.get(key, "") for key in ("problem", "a", "b"))
    if not problem:
        raise NotFound("the address names no problem: problem=ID")
    store = request.store
    result = across(store, problem)
    compared = compare(read(store, a), read(store, b), (a, b)) if a and b else None
    texts = _texts(compared.turns) if compared else {}
    return show(request, "across", result=result, a=a, b=b, compared=compared, texts=texts)


def _texts(turns: tuple[TurnDifference, ...]) -> dict[object, list[tuple[str, Clip]]]:
    """Return the words of each turn as marked pieces, as many characters as a page holds."""
    left, texts = DIFFERENCE_LIMIT, dict[object, list[tuple[str, Clip]]]()
    for turn in turns:
        shown: list[tuple[str, Clip]] = []
        for piece in turn.pieces:
            if left <= 0:
                break
            cut = clip(piece.text, min(PIECE_LIMIT, left))
            left -= len(cut.text)
            shown.append((piece.mark, cut))
        texts[turn.turn] = shown
    return texts


MOST_REPLAYED = 200


def replay_list(request: PageRequest) -> Response:
    """Show the replays of a run."""
    return show(request, "replays", replays=replays(request.run.path))


def replay(request: PageRequest) -> Response:
    """Show one replay, and one debate under both schemes where the address names it."""
    run, id = request.run.path, request.query.get("debate", "")
    if request.replay not in {listed.name for listed in replays(run)}:
        raise NotFound(f"there is no replay {request.replay!r}")
    replayed = read_replay(run, request.replay)
    debate = replayed.debate(id) if id else None
    if id and debate is None:
        raise NotFound(f"the replay shows no debate {id!r}")
    return show(request, "replay", replay=replayed, debate=debate, most=MOST_REPLAYED)
