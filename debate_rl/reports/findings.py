"""Findings of a report: differences with enough cases, a relevant size, and a small adjusted p-value.

A page makes a dozen comparisons, and one of twenty 95% intervals misses the true value. Therefore, the
p-values of all comparisons on a page are adjusted together [Holm 1979]: at most 2 in 100 pages state a false
finding. Alarms of training are false on at most 3 more in 100. Intervals are not adjusted. tables.toml lists
the kinds of finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from debate_rl.formatting import json_number, number, percent
from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Codes, Estimate, holm, thirds
from debate_rl.reports.document import (
    Behind,
    Cell,
    Judged,
    Paragraph,
    Tone,
    interval_of,
    percent_of,
    points_of,
)
from debate_rl.reports.document import row as cells
from debate_rl.reports.figures import TABLES, less_half, own_work, pair_rows
from debate_rl.reports.rows import NO_VOTE, Rows
from transcripts.filters.presets import PRESETS

LEVEL = 0.02
"""Maximum fraction of pages with a false finding; with alarms of training, the fraction is .05."""
WRONG_VOTES, WRONG_WINNER = PRESETS["wrong_vote"].filter, PRESETS["wrong_winner"].filter
MOST_IDS = 20
"""Maximum number of debates listed by id, newest first, if no filter can express them."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding in tables.toml: a comparison, tested as a difference from 0."""

    name: str
    what: str
    size: float
    up: tuple[str, Tone]
    down: tuple[str, Tone]
    advice: str
    cases: int = 30
    problems: int = 10
    detail: str = ""
    debates: str | None = None


KINDS = {name: Kind(name, **row) for name, row in TABLES["kind"].items()}
"""Kinds by name, in the order in which findings are shown."""


@dataclass(frozen=True, slots=True)
class Look:
    """One comparison on one run: the difference, and the cases and problems of its smaller side.

    ``detail``: the numbers as text. ``behind``: the debates to read.
    """

    kind: str
    run: str
    estimate: Estimate | None
    cases: int
    problems: int
    detail: str
    behind: Behind | None = None

    @property
    def about(self) -> Kind:
        """The kind of the comparison."""
        return KINDS[self.kind]

    @property
    def enough(self) -> bool:
        """True if there are enough cases and problems for a finding."""
        return self.cases >= self.about.cases and self.problems >= self.about.problems


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a comparison.

    ``p``: adjusted for all comparisons of the page, or None if there are too few cases.
    """

    look: Look
    p: float | None

    @property
    def state(self) -> Literal["found", "nothing found", "too few"]:
        """Whether the difference is a finding."""
        if self.p is None or self.look.estimate is None:
            return "too few"
        large = abs(self.look.estimate.value) >= self.look.about.size
        return "found" if large and self.p <= LEVEL else "nothing found"

    @property
    def words(self) -> tuple[str, Tone]:
        """The name and the tone of the difference, if it is a finding."""
        value = self.look.estimate.value if self.look.estimate else 0.0
        return self.look.about.up if value > 0 else self.look.about.down

    @property
    def tone(self) -> Tone:
        """The tone of the finding, or "" without a finding."""
        return self.words[1] if self.state == "found" else ""

    @property
    def doubt(self) -> str:
        """Why a difference whose interval excludes 0 is no finding: chance or size; "" if it contains 0."""
        estimate = self.look.estimate
        if self.state != "nothing found" or estimate is None or not estimate.excludes_zero:
            return ""
        return "not sure" if (self.p or 0.0) > LEVEL else "too small to matter"

    def paragraph(self) -> Paragraph:
        """Return a sentence with the finding, or with the reason why there is no finding."""
        start, end = self.words[0] if self.state == "found" else self.doubt or "no clear difference", ""
        if self.doubt == "not sure":
            end = f"; without a real difference, {self.p:.0%} of reports show one of this size"
        text = f"{start[:1].upper()}{start[1:]}: {self.look.detail}{end}."
        return Paragraph(text, self.tone, self.look.behind)

    def plain(self) -> dict[str, object]:
        """Return the comparison and its result for JSON."""
        look, estimate = self.look, self.look.estimate
        return {
            "run": look.run,
            "kind": look.kind,
            "what": look.about.what,
            **{name: json_number(getattr(estimate, name, None)) for name in ("value", "low", "high", "p")},
            "p_adjusted": self.p,
            "cases": look.cases,
            "problems": look.problems,
            "state": self.state,
            "text": self.paragraph().text,
            "filter": look.behind.filter if look.behind else None,
        }

    def row(self) -> tuple[Cell, ...]:
        """Return the row of the table of comparisons."""
        look, kind, estimate = self.look, self.look.about, self.look.estimate
        value = Cell(number(estimate.value, signed=True), estimate.value) if estimate else "none"
        bounds = interval_of(estimate) if estimate else "none"
        least = f"{kind.cases}, {kind.problems}, {kind.size:g}"
        name, state = Cell(kind.name, behind=look.behind), Cell(self.state, tone=self.tone)
        return cells(name, value, bounds, look.cases, look.problems, self.p, least, state, kind.what)


def findings(looks: Sequence[Look]) -> tuple[Finding, ...]:
    """Return the results of all comparisons of a page, in the order of the kinds."""
    ordered = sorted(looks, key=lambda look: [*KINDS].index(look.kind))
    counted = [look for look in ordered if look.enough and look.estimate is not None]
    adjusted = iter(holm([chance(look.estimate) for look in counted]))
    return tuple(Finding(look, next(adjusted) if look in counted else None) for look in ordered)


def chance(estimate: Estimate | None) -> float:
    """Return the p-value of a difference, or 1 without a difference or if its numbers are too large."""
    return 1.0 if estimate is None or estimate.p is None or isnan(estimate.p) else estimate.p


def judgment_looks(judged: Judged) -> Iterator[Look]:
    """Yield the comparisons on the debates of one run."""
    study, figures = judged.study, {figure.name: figure.estimate for figure in judged.figures}
    rows = pair_rows(study)["judge/accuracy"]
    votes = rows.of(rows.counted)
    counts = {name: study.flips[name].astype(float) for name in ("cc", "cw", "wc", "ww")}
    flips = counts["wc"] - counts["cw"], sum(counts.values()), study.clusters(study.flips)
    # convert the slope per 100 steps to the change over the run
    steps, trend = study.debates["step"], figures["collusion/gap_trend"]
    by = float(np.ptp(steps)) / 100 if len(steps) else 0.0
    over_run = trend and replace(trend, value=trend.value * by, low=trend.low * by, high=trend.high * by)
    found = {"judge/coin": less_half(votes.values, votes.clusters), "collusion/gap": over_run}
    found |= {"flip/net": intervals.ratio(*flips, signed=True)}
    found |= {kind: figures[kind] for kind in KINDS if figures.get(kind)}
    for kind, about in KINDS.items():
        if about.detail:
            one = found.get(kind)
            number, problems = (one.n, one.clusters) if one else (0, 0)
            share = percent(one.value + 0.5) if one else ""
            text = about.detail.format(points=points_of(one), count=f"{number:,}", share=share)
            yield Look(kind, judged.run, one, number, problems, text, judged.behind(about.debates))
    yield from _change(judged, rows, votes)
    yield _weakest_fault(judged, rows, votes)
    chosen, mine, clusters = own_work(study)
    text = (
        f"from {int(mine.sum()):,} votes on own wrong solutions and {int((~mine).sum()):,} on those of others"
    )
    yield _compared(judged, "bias/self_preference", (chosen, mine, clusters), text, None)


def _change(judged: Judged, rows: Rows, votes: Rows) -> Iterator[Look]:
    """Yield the change of judge accuracy from the first third of the steps with votes to the last."""
    study = judged.study
    step = study.of_debate("step", study.pairs)[study.pairs["better"] != 0][rows.counted]
    early, _, late = thirds(np.unique(step))
    if not len(early) or early[-1] >= late[0]:
        return
    inside, side = np.isin(step, early) | np.isin(step, late), np.isin(step, late)
    right, side = votes.values[inside], side[inside]
    first, last = (f"step {of[0]}" if len(of) == 1 else f"steps {of[0]} to {of[-1]}" for of in (early, late))
    text = (
        f"right in {percent(float(right[~side].mean()))} of {int((~side).sum()):,} votes in {first}, "
        f"in {percent(float(right[side].mean()))} of {int(side.sum()):,} in {last}"
    )
    filter = f"step:{late[0]}..{late[-1]} {WRONG_VOTES}"
    yield _compared(judged, "judge/change", (right, side, votes.clusters[inside]), text, filter)


def _weakest_fault(judged: Judged, rows: Rows, votes: Rows) -> Look:
    """Return the comparison of the fault with the worst votes with all other faults.

    The p-value is corrected for the choice of the worst fault [Bonferroni].
    """
    study = judged.study
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
    rest = f", and {percent(float(votes.values[~side].mean()))} of all other votes" if not side.all() else ""
    text = f"{[*study.faults][code]} ({percent(float(side.mean()))} of the votes on decidable pairs); "
    text += f"{percent_of(own) if own else 'none'} of these are right{rest}"
    # blind_fault: votes on the fault are not shown to be better than chance
    kind = "judge/blind_fault" if own and own.low <= 0.5 else "judge/weak_fault"
    table = study.pairs
    wrong = (table["fault"] == code) & (table["outcome"] != NO_VOTE) & (table["outcome"] != table["better"])
    ids = [study.ids[debate] for debate in np.unique(table["debate"][wrong])[-MOST_IDS:]]
    filter = " OR ".join(f"id:{id}" for id in ids) if all(ids) and ids else WRONG_VOTES
    return _compared(judged, kind, (votes.values, side, votes.clusters), text, filter)


def _compared(
    judged: Judged, kind: str, rows: tuple[ArrayLike, NDArray[np.bool_], Codes], text: str, filter: str | None
) -> Look:
    """Return a comparison of two sides, with the cases and problems of the smaller side."""
    _, side, clusters = rows
    found = intervals.difference(*rows)
    cases = min(int(side.sum()), int((~side).sum()))
    problems = min(len(np.unique(clusters[one])) for one in (side, ~side))
    text = f"{text}, {points_of(found)}" if found else text
    return Look(kind, judged.run, found, cases, problems, text, judged.behind(filter))
