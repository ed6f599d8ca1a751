"""What a report looks for in the debates of a run: each look with its difference, cases and problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate_rl.formatting import percent
from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Codes, Estimate, thirds
from debate_rl.reports.cells import Judged, combined_filter, percent_of, points_of
from debate_rl.reports.document import Behind
from debate_rl.reports.figures.bias import less_half, own_work
from debate_rl.reports.figures.figure import Figure
from debate_rl.reports.figures.judging import pair_rows
from debate_rl.reports.figures.rows import NO_VOTE
from debate_rl.reports.figures.study import Rows
from debate_rl.reports.findings import Look, chance

WRONG_VOTES = "judge.accuracy:<0.5"
MOST_IDS = 20
"""Debates that are named, the newest, where no filter has words for what they have in common."""


def judgment_looks(judged: Judged) -> Iterator[Look]:
    """Yield the looks at the debates of one run."""
    yield from judge_change(judged)
    figures = {figure.name: figure for figure in judged.figures}
    accuracy = figures["judge/accuracy"].estimate
    rows = pair_rows(judged.study)["judge/accuracy"]
    coin = less_half(rows.values[rows.counted], rows.clusters[rows.counted])
    yield _look(judged, "judge/coin", coin, _right(accuracy), WRONG_VOTES)
    yield _weakest_fault(judged)
    lift = figures["winner/lift"].estimate
    text = f"{_points(lift)} against an answer of its round drawn at random"
    yield _look(judged, "winner/lift", lift, text, "winner:wrong accuracy.last_round:>0")
    yield _net_flips(judged)
    for name, filter in (("position", None), ("length", None)):
        yield _bias(judged, figures[f"bias/{name}"], filter)
    yield _own_work(judged)
    followed = figures["cascade/first_listed"].estimate
    text = f"{_points(followed)} against a random other, of {_count(followed):,} answers taken over"
    yield _look(judged, "cascade/first_listed", followed, text, None)
    yield _praise(judged, figures["collusion/gap_trend"].estimate)


def _weakest_fault(judged: Judged) -> Look:
    """Return the look at the kind of wrong solution on which votes are worst, against those on all others.

    Its p is that of the worst of so many kinds [Bonferroni].
    """
    study, rows = judged.study, pair_rows(judged.study)["judge/accuracy"]
    votes = rows.of(rows.counted)
    codes = study.pairs["fault"][study.pairs["better"] != 0][rows.counted]
    looks = [_fault(judged, votes, codes, code) for code in np.unique(codes).tolist()]
    enough = [(look, look.estimate) for look in looks if look.enough and look.estimate]
    if not enough:
        few = max(looks, key=lambda look: look.cases, default=None)
        return few or Look("judge/weak_fault", judged.run, None, 0, 0, "no votes")
    look, worst = min(enough, key=lambda one: (one[1].value >= 0, chance(one[1])))
    p = len(enough) * chance(worst) if worst.value < 0 else 1.0
    return replace(look, estimate=replace(worst, p=min(1.0, p)))


def _fault(judged: Judged, votes: Rows, codes: NDArray[np.int16], code: int) -> Look:
    study, side = judged.study, codes == code
    own = intervals.mean(votes.values[side], votes.clusters[side])
    rest = f", against {percent(float(votes.values[~side].mean()))} of all others" if not side.all() else ""
    text = f"{[*study.faults][code]} ({percent(float(side.mean()))} of the votes on decidable pairs); "
    text += f"{percent_of(own) if own else 'none'} of these are right{rest}"
    # another kind of finding where votes on it are not shown to be right more often than a coin
    kind = "judge/blind_fault" if own and own.low <= 0.5 else "judge/weak_fault"
    table = study.pairs
    wrong = (table["fault"] == code) & (table["outcome"] != NO_VOTE) & (table["outcome"] != table["better"])
    ids = [study.ids[debate] for debate in np.unique(table["debate"][wrong])[-MOST_IDS:]]
    filter = " OR ".join(f"id:{id}" for id in ids) if all(ids) and ids else WRONG_VOTES
    return _compared(judged, kind, (votes.values, side, votes.clusters), text, filter)


def judge_change(judged: Judged) -> Iterator[Look]:
    """Yield how judge accuracy moved from the first third of the steps with votes to the last."""
    study, rows = judged.study, pair_rows(judged.study)["judge/accuracy"]
    step = study.of_debate("step", study.pairs)[study.pairs["better"] != 0][rows.counted]
    early, _, late = thirds(np.unique(step))
    if not len(early) or early[-1] >= late[0]:
        return
    inside = np.isin(step, early) | np.isin(step, late)
    of = rows.of(rows.counted)
    right, side = of.values[inside], np.isin(step, late)[inside]
    text = (
        f"right in {percent(float(right[~side].mean()))} of {int((~side).sum()):,} votes in {_steps(early)}, "
        f"in {percent(float(right[side].mean()))} of {int(side.sum()):,} in {_steps(late)}"
    )
    filter = f"step:{late[0]}..{late[-1]} {WRONG_VOTES}"
    yield _compared(judged, "judge/change", (right, side, of.clusters[inside]), text, filter)


def _steps(steps: NDArray[np.int64]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"


def _net_flips(judged: Judged) -> Look:
    table = judged.study.flips
    counts = {name: table[name].astype(float) for name in ("cc", "cw", "wc", "ww")}
    net = intervals.ratio(
        counts["wc"] - counts["cw"], sum(counts.values()), judged.study.clusters(table), signed=True
    )
    text = f"{_points(net)} of {_count(net):,} steps of an agent from a round to the next"
    return _look(judged, "flip/net", net, text, "flip:CW")


def _bias(judged: Judged, figure: Figure, filter: str | None) -> Look:
    text = f"{_points(figure.estimate)} of {_count(figure.estimate):,} votes between solutions equal in truth"
    return _look(judged, figure.name, figure.estimate, text, filter)


def _own_work(judged: Judged) -> Look:
    chosen, mine, clusters = own_work(judged.study)
    text = f"of {int(mine.sum()):,} votes on own wrong work and {int((~mine).sum()):,} on that of others"
    return _compared(judged, "bias/self_preference", (chosen, mine, clusters), text, None)


def _praise(judged: Judged, trend: Estimate | None) -> Look:
    """The slopes of a run are over 100 steps; what matters is what they come to over the run."""
    steps = judged.study.debates["step"]
    spans = float(np.ptp(steps)) / 100 if len(steps) else 0.0
    gained = trend and replace(
        trend, value=trend.value * spans, low=trend.low * spans, high=trend.high * spans
    )
    text = f"{_points(gained)} over the run, of the winners of {_count(gained):,} debates"
    return _look(judged, "collusion/gap", gained, text, "winner:wrong")


def _compared(
    judged: Judged, kind: str, rows: tuple[ArrayLike, NDArray[np.bool_], Codes], text: str, filter: str | None
) -> Look:
    """Return a look at the difference of two sides, with the cases and the problems of the smaller one."""
    _, side, clusters = rows
    found = intervals.difference(*rows)
    cases = min(int(side.sum()), int((~side).sum()))
    problems = min(len(np.unique(clusters[one])) for one in (side, ~side))
    text = f"{text}, {points_of(found)}" if found else text
    return Look(kind, judged.run, found, cases, problems, text, _behind(judged, filter))


def _look(judged: Judged, kind: str, found: Estimate | None, text: str, filter: str | None) -> Look:
    problems = found.clusters if found else 0
    return Look(kind, judged.run, found, _count(found), problems, text, _behind(judged, filter))


def _behind(judged: Judged, filter: str | None) -> Behind | None:
    found = combined_filter(judged.filter, filter)
    return None if found is None else Behind(judged.run, found)


def _right(accuracy: Estimate | None) -> str:
    return f"{percent(accuracy.value)} of {accuracy.n:,} votes are right" if accuracy else "no votes"


def _points(estimate: Estimate | None) -> str:
    return points_of(estimate) if estimate else "no cases"


def _count(estimate: Estimate | None) -> int:
    return estimate.n if estimate else 0
