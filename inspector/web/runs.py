"""The runs of a folder, and the steps of one."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from inspector.web.addresses import address
from inspector.web.charts import Line, chart
from inspector.web.page import Asked, Live, show
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
        Line("right, last round", "a", [(step_of(row), row.correct_last) for row in rows]),
        Line("right, first round", "b", [(step_of(row), row.correct_first) for row in rows]),
        Line("voted winner right", "c", [(step_of(row), row.winner_right) for row in rows]),
        Line("judge", "d", [(step_of(row), row.judge) for row in rows]),
    ]


def live_of(asked: Asked, rows: list[StepRow]) -> Live:
    """Return how the page asks for steps that are new or have grown."""
    url = asked.links("live", "steps", filter=asked.links.filter)
    return Live(url, str(rows[-1].step) if rows else "", insert=True)
