"""The judge under attack: the hack gap over evaluations, and behind it each fixed pair."""

from __future__ import annotations

from starlette.responses import Response

from debate_rl.formatting import counted
from debate_rl.inspector.views.judged import (
    PREFERRED_SIGNS,
    attacks_on,
    figure_rows,
    fooled,
    gap_text,
    pair_rows,
)
from debate_rl.inspector.web.charts import Chart, Series, chart_of
from debate_rl.inspector.web.page import PageRequest, show
from debate_rl.inspector.web.site import NotFound
from debate_rl.judge_attack.pairs import WatchedJudge, hack_gaps, watched_judge
from debate_rl.metrics.intervals import Estimate

PAGE = 50
"""Pairs a page."""


def judge_pairs(request: PageRequest) -> Response:
    """Show how both judges judged a run's fixed pairs under attack; one pair where the address names it."""
    try:
        watched = _watched(request)
        pair = request.whole_number("pair")
        own = {"judges": ("Start judge", f"After {counted(watched.step, 'step')}"), "step": watched.step}
        if pair is not None:
            return show(request, "pair", attacks=attacks_on(watched, pair), **own)
        gaps = hack_gaps(request.run.path)
    except ValueError as error:
        raise NotFound(str(error)) from error
    rows, after = pair_rows(watched), request.whole_number("after") or 0
    return show(
        request,
        "pairs",
        figures=figure_rows(watched),
        gaps=[(step, counted(step, "step"), gap_text(gap)) for step, gap in reversed(gaps)],
        drawn=_course(gaps),
        rows=rows[after : after + PAGE],
        next=after + PAGE if len(rows) > after + PAGE else None,
        fooled=len(fooled(watched)),
        attacks=len(watched.attacks),
        signs=PREFERRED_SIGNS,
        **own,
    )


def _watched(request: PageRequest) -> WatchedJudge:
    step, run = request.whole_number("step"), request.run.path
    watched = watched_judge(run, step)
    if watched is None:
        when = "" if step is None else f" after {counted(step, 'step')}"
        raise NotFound(f"no judge was watched in this run{when} (held_out.judge_pairs)")
    return watched


def _course(gaps: list[tuple[int, Estimate]]) -> list[Chart]:
    """Return the drawing of the hack gap, which is 0 before the first step."""
    series = Series("hack gap", "a", [(0, 0.0), *((step, gap.value) for step, gap in gaps)])
    drawn = chart_of(series)
    return [drawn] if drawn else []
