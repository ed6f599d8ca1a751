"""The decision rules of ``docs/frontier.md``: from cells to "holds", "fails" or "not tested"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

import numpy as np

from debate_rl.frontier.results import Cell, difference, less, shortest
from debate_rl.statistics import Estimate

Verdict = Literal["holds", "fails", "not tested"]
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
    """A rule and what it came to. ``tested``: a line for each of its cells; ``against``: what fails it."""

    name: str
    claim: str
    tested: tuple[str, ...]
    against: tuple[str, ...]
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Whether it holds; a rule about no cell was not tested."""
        return "not tested" if not self.tested else "fails" if self.against else "holds"


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

    def good(found: Estimate, values: Sequence[float]) -> bool:
        return min(values) > 0 and found.low > 0

    return _beside_ttrl("A", "votes beat majorities where p_v >= .65 and p_c < .5", cells, wanted, good)


def majorities_beat_worse_votes(cells: Sequence[Cell]) -> Rule:
    """Rule B3: where p_c > p_v, votes gain less than TTRL."""

    def wanted(cell: Cell) -> bool:
        votes, crowd = cell.p_v(), cell.p_c()
        return votes is not None and crowd is not None and crowd > votes

    return _beside_ttrl(
        "B3", "votes lose to majorities where p_c > p_v", cells, wanted, lambda found, _: found.value < 0
    )


def _beside_ttrl(
    name: str,
    claim: str,
    cells: Sequence[Cell],
    wanted: Callable[[Cell], bool],
    good: Callable[[Estimate, Sequence[float]], bool],
) -> Rule:
    tested, against = list[str](), list[str]()
    for cell in cells:
        other = ttrl_of(cell, cells)
        if other is None or not of_votes(cell) or not wanted(cell):
            continue
        values, found = difference(cell, other), less(cell, other)
        if found is None:
            continue
        line = f"{described(cell)}: votes less TTRL {told(found)}, above 0 on {_above(values)} seeds"
        tested.append(line)
        against += [] if good(found, [one.value for one in values.values()]) else [line]
    return Rule(name, claim, tuple(tested), tuple(against))


def _above(values: dict[int, Estimate]) -> str:
    return f"{sum(one.value > 0 for one in values.values())} of {len(values)}"


def a_coin_pays_nothing(cells: Sequence[Cell]) -> Rule:
    """Rule B1: where p_v is .45 to .55, the interval of the votes' gain holds 0, or lies within .02."""
    about = [one for one in cells if of_votes(one) and COIN[0] <= (one.p_v() or 0.0) <= COIN[1]]
    return _of_gains("B1", "votes gain nothing where p_v is .45 to .55", about, nothing)


def shared_errors_harm(cells: Sequence[Cell]) -> Rule:
    """Rule B2: where judges err together and p_v < .45, votes harm."""
    about = [one for one in cells if one.control == "shared_errors" and below(one.p_v(), COIN[0])]
    return _of_gains("B2", "votes harm where judges err together and p_v < .45", about, lambda e: e.high < 0)


def controls_gain_nothing(cells: Sequence[Cell]) -> Rule:
    """Rule B4: shuffled votes, random rewards and votes by the judge's own answer gain nothing."""
    about = [one for one in cells if one.signal in CONTROLS]
    return _of_gains("B4", "controls gain nothing", about, nothing)


def the_winner_holds(cells: Sequence[Cell]) -> Rule:
    """Rule D: where p_v >= .65 the voted winner does not fall below its start."""
    about = [one for one in cells if of_votes(one) and at_least(one.p_v(), JUDGES)]
    tested, against = list[str](), list[str]()
    for cell in about:
        if (found := cell.winner_gain) is not None:
            line = f"{described(cell)}, {cell.steps} steps: winner {told(found)}"
            tested.append(line)
            against += [f"{line}: costs the judge"] if found.high < 0 else []
    return Rule("D", "votes do not cost the winner where p_v >= .65", tuple(tested), tuple(against))


def _of_gains(name: str, claim: str, cells: Sequence[Cell], good: Callable[[Estimate], bool]) -> Rule:
    known = [(f"{described(one)}: gain {told(found)}", found) for one in cells if (found := one.gain)]
    return Rule(
        name,
        claim,
        tuple(line for line, _ in known),
        tuple(line for line, found in known if not good(found)),
    )


def signs_are_called(cells: Sequence[Cell]) -> Rule:
    """Rule C: lines fitted on every other cell call the sign of the others' gains in at least 90%."""
    points = [point for one in cells if (point := _point(one)) is not None]
    if len(points) < LEAST_CELLS:
        return Rule("C", _CLAIM, (), ())
    lines = {kind: fitted([one for one in points[::2] if one.kind == kind]) for kind in KINDS}
    calls = [
        Call(one.name, one.kind, line[0] + line[1] * one.share, one.gain)
        for one in points[1::2]
        if (line := lines[one.kind]) is not None
    ]
    figures = {"cells": float(len(points))}
    for kind, line in lines.items():
        if line is not None:
            figures |= {f"{kind}_intercept": line[0], f"{kind}_slope": line[1]}
    return _of_calls("C", _CLAIM, calls, figures)


@dataclass(frozen=True, slots=True)
class Call:
    """A forecast and what it was about: its sign is right where that of the gain is the same."""

    name: str
    kind: str
    forecast: float
    gain: float

    @property
    def right(self) -> bool:
        """Whether both are above 0, or neither is."""
        return (self.forecast > 0) == (self.gain > 0)

    @property
    def line(self) -> str:
        """The call in words."""
        said = "right" if self.right else "wrong"
        return f"{self.name}, {self.kind}: called {self.forecast:+.3f}, is {self.gain:+.3f}: {said}"


def _of_calls(name: str, claim: str, calls: Sequence[Call], figures: Mapping[str, float]) -> Rule:
    """Return the rule that holds where 90% of the calls are right, with the share that are, by kind too."""
    rate = fmean(one.right for one in calls) if calls else 0.0
    found = {**figures, "called": float(len(calls)), "hit_rate": rate}
    for kind in dict.fromkeys(one.kind for one in calls):
        own = [one.right for one in calls if one.kind == kind]
        found |= {f"{kind}_called": float(len(own)), f"{kind}_hit_rate": fmean(own)}
    against = () if rate >= CALLED else tuple(one.line for one in calls if not one.right)
    return Rule(name, claim, tuple(one.line for one in calls), against, found)


def margins_call_signs(cells: Sequence[Cell]) -> Rule:
    """Rule E: p_v - 1/2, p_m - 1/2 and p_v - p_m call the signs of what votes and majorities gain.

    It was written after runs of the others, and is tested on runs of its own (docs/frontier.md).
    """
    calls = [call for cell in cells for call in _margins(cell, cells)]
    claim = "p_v - 1/2, p_m - 1/2 and p_v - p_m call the sign of a gain in 90%"
    return _of_calls("E", claim, calls, {}) if len(calls) >= LEAST_CELLS else Rule("E", claim, (), ())


def _margins(cell: Cell, cells: Sequence[Cell]) -> Iterator[Call]:
    votes, majority, gain = cell.p_v(), cell.p_m(_round_of(cell)), cell.gain
    if votes is None or majority is None or gain is None:
        return
    name = described(cell)
    if cell.signal in MAJORITIES:
        yield Call(name, "majorities", majority - EVEN, gain.value)
    elif of_votes(cell):
        yield Call(name, "votes", votes - EVEN, gain.value)
        other = ttrl_of(cell, cells)
        if other is not None and (beside := less(cell, other)) is not None:
            yield Call(name, "votes less TTRL", votes - majority, beside.value)


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


def nothing(gain: Estimate) -> bool:
    """Return whether a gain counts as none: its interval holds 0, or lies within .02 of it.

    >>> [nothing(Estimate(value, value - 0.01, value + 0.01, 5, 5)) for value in (0.005, 0.02, -0.04)]
    [True, False, False]
    >>> nothing(Estimate(0.01, 0.005, 0.015, 5, 5))
    True
    """
    return gain.low <= 0 <= gain.high or max(abs(gain.low), abs(gain.high)) <= NOTHING


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
