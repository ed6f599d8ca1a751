"""What a collapse detector says, and the few shapes that detectors share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from debate_rl.reports.training.curves import Curves, Numbers, Steps

MARKOVIAN = "markovian run analysis"
RLVR = "RLVR experiment notes"
DEBATE = "debate training analysis"
BASE = 10
"""Values at the beginning of a run that later ones are compared with."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """The first step after which a detector fires, the value that it fired on, its threshold, and why."""

    step: int
    value: float
    threshold: float
    why: str


Detect = Callable[[Curves], Alarm | None]


@dataclass(frozen=True, slots=True)
class Detector:
    """One detector; ``detect`` looks at no later step than the one it names.

    ``reads``: the figures that it needs, one of them at least. ``least``: values below which it
    cannot fire. ``filter``: the debates to open, with ``{step}`` for the step of the alarm.
    """

    name: str
    rule: str
    source: str
    reads: tuple[str, ...]
    least: int
    detect: Detect
    fix: str
    filter: str = "step:{step}"

    def known(self, curves: Curves) -> int:
        """Return how many values the best known of its figures has."""
        return max((len(curves.of(name)[1]) for name in self.reads), default=0)


def detector(
    *, source: str, reads: tuple[str, ...], least: int, fix: str, name: str = "", filter: str = "step:{step}"
) -> Callable[[Detect], Detector]:
    """Return a decorator that makes a detector of a function, named after it; its docstring is the rule."""

    def make(detect: Detect) -> Detector:
        rule = " ".join((detect.__doc__ or "").split()).removesuffix(".")
        rule = rule[:1].lower() + rule[1:]
        return Detector(name or detect.__name__, rule, source, reads, least, detect, fix, filter)

    return make


def first(
    steps: Steps, fires: NDArray[np.bool_], values: Numbers, threshold: float, why: str
) -> Alarm | None:
    """Return the alarm of the first index (n,) where ``fires`` holds.

    >>> first(np.array([3, 4]), np.array([False, True]), np.array([1.0, 7.0]), 5.0, "high").step
    4
    """
    at = np.flatnonzero(fires)
    if not len(at):
        return None
    return Alarm(int(steps[at[0]]), float(values[at[0]]), threshold, why)


def earliest(*alarms: Alarm | None) -> Alarm | None:
    """Return the alarm of the lowest step; of equal ones the first."""
    fired = [alarm for alarm in alarms if alarm is not None]
    return min(fired, key=lambda alarm: alarm.step, default=None)


def ends_from(known: int, count: int, width: int = 1) -> NDArray[np.bool_]:
    """Return (count,): does each trailing window of ``width`` end at index ``known`` or later?

    What is compared with the first values of a run can only be judged once these are all there.

    >>> ends_from(2, 3).tolist(), ends_from(3, 2, 3).tolist()
    ([False, False, True], [False, True])
    """
    return np.arange(count) + width - 1 >= known


def sustained(condition: NDArray[np.bool_], times: int, among: int) -> NDArray[np.bool_]:
    """Return (n,): does the condition hold here, and at ``times`` of the last ``among`` values?

    >>> sustained(np.array([True, False, True, True]), 2, 3).tolist()
    [False, False, True, True]
    """
    counts = np.cumsum(condition)
    before = np.concatenate([np.zeros(min(among, len(counts)), int), counts[: max(0, len(counts) - among)]])
    return condition & (counts - before >= times)
