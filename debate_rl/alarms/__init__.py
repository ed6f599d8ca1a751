"""Collapse detectors, which read a run's figures by step.

detectors.toml lists the figures that each detector reads and the changes that it proposes. Detectors do
not depend on training or reports.
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
"""The simulated healthy runs for the false-alarm rates; ``ANY``: the number of runs with any alarm."""


@dataclass(frozen=True, slots=True)
class Detector:
    """A row of detectors.toml. ``detect`` returns an alarm at a step, from values up to that step only."""

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
        """The fraction of simulated healthy runs with an alarm of this detector, with Wilson's interval."""
        share = self.fired / RUNS
        return "{} [{}, {}]".format(*map(percent, (share, *wilson(share, RUNS))))


DETECTORS: dict[str, Detector] = {}
"""Detectors by name, in the order of the report."""
for _name, _row in TABLE["detector"].items():
    _reads = GRADERS[1:] if _row["reads"] == ["accuracy [mode]"] else tuple(_row["reads"])
    _detect = getattr(rules, "format_collapse" if _name == "format" else _name)
    DETECTORS[_name] = Detector(_name, _detect, **(_row | {"reads": _reads}))


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one detector on a run: an alarm, no alarm, or too few values.

    ``values``: the number of values of the figure that has the most.
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
    """Return the reading of every detector, in the order of the table."""
    with np.errstate(all="ignore"):  # figures of a foreign file may be of any size
        return [
            Reading(one, one.detect(curves), max(len(curves.of(name)[1]) for name in one.reads))
            for one in DETECTORS.values()
        ]


def alarms(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings with an alarm, earliest first."""
    return sorted((one for one in readings if one.alarm), key=lambda one: one.alarm.step if one.alarm else 0)
