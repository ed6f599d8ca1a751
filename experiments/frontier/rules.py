"""The decision rules of ``README.md``: from cells to "holds", "not shown", "fails" or "not tested".

A rule holds where the intervals of all its cells say so, and fails where one of them says the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

import numpy as np

from debate_rl.formatting import counted
from debate_rl.metrics.intervals import Estimate, clustered_mean
from experiments.frontier.results import Cell, difference, less, shortest
from experiments.frontier.start import Judged

Verdict = Literal["holds", "not shown", "fails", "not tested"]
JUDGES, MISLED = 0.65, 0.5
"""Rule A is about cells with at least this p_v, and less than this p_c."""
EVEN = 0.5
COIN = (0.45, 0.55)
NOTHING = 0.02
"""A gain whose whole interval is so near to 0 counts as none."""
LEAST_CELLS, CALLED = 24, 0.9
CONTROLS = ("shuffled", "random", "own_answer")
MAJORITIES = ("ttrl", "ttrl_debate", "last_majority")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and what it came to. ``tested``: a line for each of its cells; ``against``: what fails it;
    ``unsure``: those whose intervals are too wide to say either.
    """

    name: str
    claim: str
    tested: tuple[str, ...]
    against: tuple[str, ...]
    unsure: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Whether it holds; a rule about no cell was not tested."""
        if not self.tested:
            return "not tested"
        return "fails" if self.against else "not shown" if self.unsure else "holds"


Told = tuple[str, bool | None]
"""A line about a cell, and whether it bears the rule out; None if its interval is too wide to say."""


def _rule(name: str, claim: str, lines: Sequence[Told]) -> Rule:
    against, unsure = (tuple(line for line, good in lines if good is wanted) for wanted in (False, None))
    return Rule(name, claim, tuple(line for line, _ in lines), against, unsure)


def above(found: Estimate) -> bool | None:
    """Return whether a figure is above 0: None if its interval holds 0.

    >>> above(Estimate(0.1, 0.05, 0.15, 5, 5)), above(Estimate(0.1, -0.05, 0.25, 5, 5))
    (True, None)
    """
    return found.value > 0 if found.excludes_zero else None


def judged_rules(cells: Sequence[Cell]) -> list[Rule]:
    """Return all rules in order."""
    short = shortest(cells)
    return [
        votes_beat_majorities(short),
        a_coin_pays_nothing(short),
        shared_errors_harm(short),
        majorities_beat_worse_votes(short),
        controls_gain_nothing(short),
        signs_are_called(short),
        the_winner_holds(cells),
        margins_call_signs(short),
    ]


def votes_beat_majorities(cells: Sequence[Cell]) -> Rule:
    """Rule A: where p_v >= .65 and p_c < .5, votes gain more than TTRL, on every seed and clearly."""

    def wanted(cell: Cell) -> bool:
        return at_least(cell.p_v(), JUDGES) and below(cell.p_c(), MISLED)

    def good(found: Estimate, values: Sequence[float]) -> bool | None:
        return above(found) if min(values) > 0 or found.high < 0 else None

    return _beside_ttrl("A", "votes beat majorities where p_v >= .65 and p_c < .5", cells, wanted, good)


def majorities_beat_worse_votes(cells: Sequence[Cell]) -> Rule:
    """Rule B3: where p_c > p_v, votes gain less than TTRL."""

    def wanted(cell: Cell) -> bool:
        votes, crowd = cell.p_v(), cell.p_c()
        return votes is not None and crowd is not None and crowd > votes

    def good(found: Estimate, _: Sequence[float]) -> bool | None:
        return found.value < 0 if found.excludes_zero else None

    return _beside_ttrl("B3", "votes lose to majorities where p_c > p_v", cells, wanted, good)


def _beside_ttrl(
    name: str,
    claim: str,
    cells: Sequence[Cell],
    wanted: Callable[[Cell], bool],
    good: Callable[[Estimate, Sequence[float]], bool | None],
) -> Rule:
    lines: list[Told] = []
    for cell in cells:
        other = ttrl_of(cell, cells)
        if other is None or not of_votes(cell) or not wanted(cell):
            continue
        values, found = difference(cell, other), less(cell, other)
        if found is None:
            continue
        line = f"{described(cell)}: votes less TTRL {told(found)}, above 0 on {_above(values)} seeds"
        lines.append((line, good(found, [one.value for one in values.values()])))
    return _rule(name, claim, lines)


def _above(values: dict[int, Estimate]) -> str:
    return f"{sum(one.value > 0 for one in values.values())} of {len(values)}"


def a_coin_pays_nothing(cells: Sequence[Cell]) -> Rule:
    """Rule B1: where p_v is .45 to .55, votes gain nothing."""
    about = [one for one in cells if of_votes(one) and COIN[0] <= (one.p_v() or 0.0) <= COIN[1]]
    return _of_gains("B1", "votes gain nothing where p_v is .45 to .55", about, nothing)


def shared_errors_harm(cells: Sequence[Cell]) -> Rule:
    """Rule B2: where judges err together and p_v < .45, votes harm."""
    about = [one for one in cells if one.control == "shared_errors" and below(one.p_v(), COIN[0])]

    def good(gain: Estimate) -> bool | None:
        return gain.value < 0 if gain.excludes_zero else None

    return _of_gains("B2", "votes harm where judges err together and p_v < .45", about, good)


def controls_gain_nothing(cells: Sequence[Cell]) -> Rule:
    """Rule B4: shuffled votes, random rewards and votes by the judge's own answer gain nothing.

    The last is no control: it taught first answers as much as votes did, without any judging
    (README.md). So each line has what votes gain more than it.
    """
    lines: list[Told] = []
    for cell in cells:
        if cell.signal not in CONTROLS or (gain := cell.gain) is None:
            continue
        votes = next((one for one in cells if (one.prior, one.signal) == (cell.prior, "votes")), None)
        beside = None if votes is None else less(votes, cell)
        more = "" if beside is None else f"; votes less it {told(beside)}"
        lines.append((f"{described(cell)}: gain {told(gain)}{more}", nothing(gain)))
    return _rule("B4", "controls gain nothing", lines)


def the_winner_holds(cells: Sequence[Cell]) -> Rule:
    """Rule D: where p_v >= .65 the voted winner does not fall below its start, by more than .02."""
    lines: list[Told] = []
    for cell in cells:
        if of_votes(cell) and at_least(cell.p_v(), JUDGES) and (found := cell.winner_gain) is not None:
            line = f"{described(cell)}, {cell.steps} steps: winner {told(found)}"
            falls = found.high < 0
            holds = False if falls else True if found.low >= -NOTHING else None
            lines.append((f"{line}: costs the judge" if falls else line, holds))
    return _rule("D", "votes do not cost the winner where p_v >= .65", lines)


def _of_gains(name: str, claim: str, cells: Sequence[Cell], good: Callable[[Estimate], bool | None]) -> Rule:
    known = [(f"{described(one)}: gain {told(found)}", good(found)) for one in cells if (found := one.gain)]
    return _rule(name, claim, known)


def signs_are_called(cells: Sequence[Cell]) -> Rule:
    """Rule C: lines fitted on every other cell call the sign of the others' gains in at least 90%."""
    points = [(cell, point) for cell in cells if (point := _point(cell)) is not None]
    if len(points) < LEAST_CELLS:
        return Rule("C", _CLAIM, (), ())
    lines = {kind: fitted([one for _, one in points[::2] if one.kind == kind]) for kind in KINDS}
    calls = [
        Call(one.name, cell.prior, one.kind, line[0] + line[1] * one.share, gain)
        for cell, one in points[1::2]
        if (line := lines[one.kind]) is not None and (gain := cell.gain) is not None
    ]
    figures = {"cells": float(len(points))}
    for kind, line in lines.items():
        if line is not None:
            figures |= {f"{kind}_intercept": line[0], f"{kind}_slope": line[1]}
    return of_calls("C", _CLAIM, calls, figures)


@dataclass(frozen=True, slots=True)
class Call:
    """A forecast of a sign, and the gain that it was about, on a start (``prior``).

    ``sure``: the probability of the sign that is forecast, by the interval of the margin over the starts of
    the seeds; None of one seed, and where the forecast is no margin of shares.
    """

    name: str
    prior: str
    kind: str
    forecast: float
    gain: Estimate
    sure: float | None = None

    @property
    def right(self) -> bool | None:
        """Whether both are above 0, or neither is; None if the interval of the gain holds 0."""
        return (self.forecast > 0) == (self.gain.value > 0) if self.gain.excludes_zero else None

    @property
    def line(self) -> str:
        """The call in words."""
        said = {True: "right", False: "wrong", None: "the sign is not known"}[self.right]
        return f"{self.name}, {self.kind}: called {self.forecast:+.3f}, is {told(self.gain)}: {said}"


def of_calls(name: str, claim: str, calls: Sequence[Call], figures: Mapping[str, float]) -> Rule:
    """Return the rule that 90% of the signs that are known are called, from the interval of that share.

    Calls of one start hang together, so the interval is clustered by start: three starts say little.
    """
    known = [one for one in calls if one.right is not None]
    found = {**figures, "calls": float(len(calls)), "signs_known": float(len(known))}
    lines = [one.line for one in calls]
    if not known:
        return Rule(name, claim, tuple(lines), (), tuple(lines), found)
    share = clustered_mean([float(one.right is True) for one in known], [one.prior for one in known])
    found |= {"starts": float(share.clusters), "hit_rate": share.value}
    found |= {"low": max(share.low, 0.0), "high": min(share.high, 1.0)}
    for kind in dict.fromkeys(one.kind for one in known):
        own = [one.right is True for one in known if one.kind == kind]
        found |= {f"{kind}_known": float(len(own)), f"{kind}_hit_rate": fmean(own)}
    if scores := [(one.sure - float(one.right is True)) ** 2 for one in known if one.sure is not None]:
        found["brier"] = fmean(scores)
    wrong = tuple(one.line for one in known if not one.right)
    fails, unsure = share.high < CALLED, share.low < CALLED <= share.high
    return Rule(name, claim, tuple(lines), wrong if fails else (), tuple(lines) if unsure else (), found)


def margins_call_signs(cells: Sequence[Cell]) -> Rule:
    """Rule E: p_v - 1/2, p_m - 1/2 and p_v - p_m call the signs of what votes and majorities gain.

    It was written after runs of the others, and is tested on runs of its own (README.md).
    """
    calls = [call for cell in cells for call in _margins(cell, cells)]
    claim = "p_v - 1/2, p_m - 1/2 and p_v - p_m call the sign of a gain in 90%"
    return of_calls("E", claim, calls, {}) if len(calls) >= LEAST_CELLS else Rule("E", claim, (), ())


def _margins(cell: Cell, cells: Sequence[Cell]) -> Iterator[Call]:
    """Yield the calls about a cell: the margin of its start, and the gain whose sign that calls."""
    round_, gain = _round_of(cell), cell.gain
    if gain is None or cell.p_v() is None or cell.p_m(round_) is None:
        return

    def call(kind: str, of: Callable[[Mapping[int, Judged]], float], gain: Estimate) -> Call:
        margins = [of(one) for one in cell.starts if {0, round_} <= one.keys()]
        return Call(described(cell), cell.prior, kind, of(cell.start), gain, certainty(margins))

    if cell.signal in MAJORITIES:
        yield call("majorities", lambda start: start[round_].p_m - EVEN, gain)
    elif of_votes(cell):
        yield call("votes", lambda start: start[0].p_v - EVEN, gain)
        other = ttrl_of(cell, cells)
        if other is not None and (beside := less(cell, other)) is not None:
            yield call("votes less TTRL", lambda start: start[0].p_v - start[round_].p_m, beside)


def certainty(margins: Sequence[float]) -> float | None:
    """Return the probability by Student's t that the mean of margins has the sign that it shows; None of one.

    >>> round(certainty([0.1, 0.3]), 3)  # t = 2 at one degree of freedom
    0.852
    """
    if len(margins) < 2:
        return None
    found = clustered_mean(margins, range(len(margins)), signed=True)
    return None if found.p is None else 1 - found.p / 2


def call_lines(rules: Sequence[Rule]) -> list[str]:
    """Return for each rule that calls signs how many of those that are known it called, and how surely."""
    return [_call_line(one) for one in rules if "hit_rate" in one.figures]


def _call_line(rule: Rule) -> str:
    of = rule.figures
    known = round(of["signs_known"])
    brier = f"; Brier score {of['brier']:.3f} (0.25: a coin)" if "brier" in of else ""
    return (
        f"{rule.name}: {round(of['hit_rate'] * known)} of {known} known signs called, {of['hit_rate']:.2f} "
        f"({of['low']:.2f} to {of['high']:.2f}, clustered by {counted(round(of['starts']), 'start')}), of "
        f"{counted(round(of['calls']), 'call')}{brier}"
    )


_CLAIM = "lines over p_v - 1/2 and p_c - 1/2 call the sign of a gain in 90%"
Kind = Literal["votes", "majorities"]
KINDS: tuple[Kind, ...] = ("votes", "majorities")


@dataclass(frozen=True, slots=True)
class Point:
    """A cell on a line of gains: its kind, the share that the line is over (p - 1/2 in rule C), its gain."""

    name: str
    kind: Kind
    share: float
    gain: float


def _point(cell: Cell) -> Point | None:
    """Return p_v of votes, and p_c of majorities of the round that they are taken from."""
    kind: Kind = "votes" if of_votes(cell) else "majorities"
    share = cell.p_v() if kind == "votes" else cell.p_c(_round_of(cell))
    if share is None or cell.gain is None or not (kind == "votes" or cell.signal in MAJORITIES):
        return None
    return Point(described(cell), kind, share - EVEN, cell.gain.value)


def _round_of(cell: Cell) -> int:
    """Return the round whose answers a cell learns from first: the last of ``last_majority``, else 0."""
    return max(cell.start, default=0) if cell.signal == "last_majority" else 0


def fitted(points: Sequence[Point]) -> tuple[float, float] | None:
    """Return intercept and slope of the least-squares line; None of fewer than two different shares.

    >>> line = fitted([Point("", "votes", x, 2 * x + 1) for x in (0.0, 0.5, 1.0)])
    >>> [round(value, 6) for value in line or ()]
    [1.0, 2.0]
    """
    if len({one.share for one in points}) < 2:
        return None
    slope, intercept = np.polyfit([one.share for one in points], [one.gain for one in points], 1)
    return float(intercept), float(slope)


def of_votes(cell: Cell) -> bool:
    """Return whether a cell learns from votes alone, as they are or with errors put in."""
    return cell.signal == "votes" or cell.control in ("flipped_votes", "shared_errors")


def ttrl_of(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """Return the cell of TTRL with the same prior and steps."""
    same = (one for one in cells if (one.prior, one.steps, one.signal) == (cell.prior, cell.steps, "ttrl"))
    return next(same, None)


def nothing(gain: Estimate) -> bool | None:
    """Return whether a gain counts as none: its interval lies within .02 of 0; None if it only holds 0.

    >>> [nothing(Estimate(value, value - 0.01, value + 0.01, 5, 5)) for value in (0.005, -0.04)]
    [True, False]
    >>> nothing(Estimate(0.005, -0.1, 0.11, 5, 5)) is None
    True
    """
    if max(abs(gain.low), abs(gain.high)) <= NOTHING:
        return True
    return None if gain.low <= 0 <= gain.high else False


def at_least(share: float | None, least: float) -> bool:
    """Return whether a share is known and at least this."""
    return share is not None and share >= least


def below(share: float | None, bound: float) -> bool:
    """Return whether a share is known and below this."""
    return share is not None and share < bound


def described(cell: Cell) -> str:
    """Return a cell in words, with its p_v, p_c and p_m."""
    shares = ", ".join(
        f"{name} {value:.2f}"
        for name, value in (("p_v", cell.p_v()), ("p_c", cell.p_c()), ("p_m", cell.p_m()))
        if value is not None
    )
    return " ".join(word for word in (cell.prior, cell.signal, f"({shares})" if shares else "") if word)


def told(estimate: Estimate) -> str:
    """Return a difference with its interval.

    >>> told(Estimate(0.125, 0.1, 0.15, 5, 5))
    '+0.125 (+0.100 to +0.150)'
    """
    return f"{estimate.value:+.3f} ({estimate.low:+.3f} to {estimate.high:+.3f})"
