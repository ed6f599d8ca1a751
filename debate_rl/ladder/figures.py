"""The figures of a ladder, with 95% intervals clustered by problem, and differences paired by problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from debate_rl.ladder.climbing import Beside, Budget, Climbed
from debate_rl.ladder.pool import Values
from debate_rl.metrics.intervals import Estimate, clustered_mean, ratio
from envs import DataError


@dataclass(frozen=True, slots=True)
class Compared:
    """Self-consistency at a rung's cost: its solutions, what they are worth, and the rung less it.

    ``short``: the cost would buy more of them.
    """

    samples: float
    self_consistency: Estimate
    difference: Estimate
    short: bool


@dataclass(frozen=True, slots=True)
class RungFigures:
    """What a rung is worth. ``oracle_gap``: the share of problems with any right solution, less its accuracy.

    Of agents over rounds, None where there are none: ``corrected``, of those that were wrong in a round the
    share that is right in the next; ``misled``, of those that were right the share that is wrong;
    ``conformity``, of those whose answer was not that of most others the share that then gives it.
    """

    accuracy: Estimate
    oracle_gap: Estimate
    compared: Mapping[Budget, Compared]
    corrected: Estimate | None
    misled: Estimate | None
    conformity: Estimate | None


def figures_of(one: Climbed) -> RungFigures:
    """Return the figures of a rung."""
    ids = list(one.right)
    rounds = [one.rounds[id] for id in ids]
    ways = {way: [each.flips[way] for each in rounds] for way in ("cc", "cw", "wc", "ww")}
    codes = np.arange(len(ids))

    def share(yes: Sequence[int], no: Sequence[int]) -> Estimate | None:
        return ratio(yes, np.add(yes, no), codes)

    return RungFigures(
        clustered_mean(list(one.right.values()), ids),
        gap(one.oracle, one.right),
        {budget: _compared(one, beside) for budget, beside in one.beside.items()},
        corrected=share(ways["wc"], ways["ww"]),
        misled=share(ways["cw"], ways["cc"]),
        conformity=ratio([each.followed for each in rounds], [each.pressed for each in rounds], codes),
    )


def _compared(one: Climbed, beside: Beside) -> Compared:
    worth = clustered_mean(list(beside.right.values()), list(beside.right))
    return Compared(beside.samples, worth, gap(one.right, beside.right), beside.short)


def both(one: Values, other: Values) -> Values:
    """Return the difference of each problem with a value in both."""
    return {id: one[id] - other[id] for id in one if id in other}


def gap(one: Values, other: Values) -> Estimate:
    """Return the mean difference over the problems with a value in both; DataError where there are none."""
    values = both(one, other)
    if not values:
        raise DataError("no problem has a verdict of the grader on what is compared")
    return clustered_mean(list(values.values()), list(values), signed=True)


def plain(estimate: Estimate | None) -> dict[str, object] | None:
    """Return an estimate for a JSON file; a bound that is not finite is None."""
    if estimate is None:
        return None
    low, high = (bound if isfinite(bound) else None for bound in (estimate.low, estimate.high))
    p = {} if estimate.p is None else {"p": estimate.p}
    return {"value": estimate.value, "low": low, "high": high, "n": estimate.n, **p}


def plain_rung(one: Climbed, figures: RungFigures) -> dict[str, object]:
    """Return a rung for a JSON file."""
    compared = {
        budget: {
            "samples": found.samples,
            "self_consistency": plain(found.self_consistency),
            "difference": plain(found.difference),
            "short": found.short,
        }
        for budget, found in figures.compared.items()
    }
    return {
        "rung": one.name,
        "accuracy": plain(figures.accuracy),
        "generated": one.cost["generated"],
        "read": one.read,
        "seconds": one.cost["seconds"],
        "comparisons": one.comparisons,
        "unread": one.unread,
        "missing": one.missing,
        "oracle_gap": plain(figures.oracle_gap),
        "corrected": plain(figures.corrected),
        "misled": plain(figures.misled),
        "conformity": plain(figures.conformity),
        "equal": compared,
    }
