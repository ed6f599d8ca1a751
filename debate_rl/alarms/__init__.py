"""Collapse detectors: functions of a run's figures by step, with what each looks at and proposes.

detectors.toml is the table of them. They know neither training nor reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from debate_rl.alarms import rules
from debate_rl.alarms.curves import GRADERS, Alarm, Curves
from debate_rl.alarms.settings import TABLE
from debate_rl.formatting import percent
from debate_rl.metrics.intervals import wilson

__all__ = ["DETECTORS", "Alarm", "Curves", "Detector", "Reading", "alarms", "readings"]

RUNS, FIRST_SEED, STEPS, ANY = (TABLE["measured"][name] for name in ("runs", "first_seed", "steps", "any"))
"""The simulated healthy runs that rates are measured on, and in how many of them some detector fired."""


@dataclass(frozen=True, slots=True)
class Detector:
    """A row of detectors.toml; ``detect`` looks at no later step than the one it names."""

    name: str
    detect: Callable[[Curves], Alarm | None]
    reads: tuple[str, ...]
    least: int
    rule: str
    source: str
    fix: str
    fired: int
    seen: float
    delay: int
    debates: str = "step:{step}"

    @property
    def false_alarms(self) -> str:
        """The fraction of healthy runs in which this detector fires, and its 95% interval (Wilson)."""
        share = self.fired / RUNS
        return "{} [{}, {}]".format(*map(percent, (share, *wilson(share, RUNS))))


DETECTORS: dict[str, Detector] = {}
"""By name, in the order of the report."""
for _name, _row in TABLE["detector"].items():
    _reads = GRADERS[1:] if _row["reads"] == ["accuracy [mode]"] else tuple(_row["reads"])
    _detect = getattr(rules, "format_collapse" if _name == "format" else _name)
    DETECTORS[_name] = Detector(_name, _detect, **(_row | {"reads": _reads}))


@dataclass(frozen=True, slots=True)
class Reading:
    """What one detector reports on a run: an alarm, quiet, or too few values.

    ``values``: the number of values of the best known of its figures.
    """

    detector: Detector
    alarm: Alarm | None
    values: int

    @property
    def status(self) -> str:
        """One of "alarm", "quiet", "too few steps", "no data"."""
        if self.alarm is not None:
            return "alarm"
        few = "too few steps" if self.values else "no data"
        return "quiet" if self.values >= max(1, self.detector.least) else few

    @property
    def able(self) -> bool:
        """Whether the run has enough steps and figures for this detector to fire."""
        return self.status in ("alarm", "quiet")


def readings(curves: Curves) -> list[Reading]:
    """Return what every detector says, in order."""
    with np.errstate(all="ignore"):  # figures of a foreign file may be of any size
        return [
            Reading(one, one.detect(curves), max(len(curves.of(name)[1]) for name in one.reads))
            for one in DETECTORS.values()
        ]


def alarms(readings: Sequence[Reading]) -> list[Reading]:
    """Return those with an alarm, earliest first."""
    return sorted((one for one in readings if one.alarm), key=lambda one: one.alarm.step if one.alarm else 0)
