"""All collapse detectors by name: rule, source, what they read, what to do, and measured false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from debate_rl.formatting import percent
from debate_rl.metrics.intervals import wilson
from debate_rl.reports.training import debate_alarms, learning_alarms, truth_alarms
from debate_rl.reports.training.alarms import Alarm, Detector
from debate_rl.reports.training.curves import Curves

RUNS, FIRST_SEED, STEPS = 2000, 20_000, 200


class Measured(NamedTuple):
    """Healthy runs with an alarm; of collapses within 20 steps the share noticed, and the median delay."""

    fired: int
    seen: float
    delay: int


RATES: dict[str, Measured] = {
    "ratio": Measured(0, 1.00, 3),
    "entropy": Measured(3, 0.99, 7),
    "logprob": Measured(0, 1.00, 0),
    "gradient": Measured(11, 1.00, 10),
    "not_finite": Measured(0, 1.00, 11),
    "kl": Measured(2, 1.00, 10),
    "mismatch": Measured(0, 1.00, 3),
    "stall": Measured(5, 1.00, 2),
    "repetition": Measured(0, 1.00, 6),
    "length": Measured(0, 1.00, 9),
    "format": Measured(13, 1.00, 10),
    "reward_explosion": Measured(0, 1.00, 11),
    "constant_truth": Measured(0, 1.00, 23),
    "no_exploration": Measured(0, 1.00, 20),
    "one_sided": Measured(11, 1.00, 16),
    "circular": Measured(11, 0.99, 10),
    "wrong_consensus": Measured(0, 1.00, 12),
    "peer_truth": Measured(0, 0.96, 22),
    "votes_against_truth": Measured(0, 1.00, 16),
    "held_out": Measured(0, 0.97, 39),
    "format_only": Measured(17, 0.99, 41),
    "grader_drift": Measured(4, 1.00, 8),
    "likelihood": Measured(3, 1.00, 14),
    "hack_gap": Measured(1, 1.00, 19),
}
"""As measured on healthy simulated runs, which promise nothing for another task:

    python benchmarks/collapse_detectors.py --runs 2000 --first-seed 20000 --collapses 100

Thresholds were set on seeds below 12000. Noise is scaled beside runs of the quick-start.
"""
ANY = 81
"""Healthy runs in which some detector fired."""


def false_alarms(name: str) -> tuple[float, float, float]:
    """Return the share of healthy runs with an alarm of this detector, and its 95% interval (Wilson)."""
    share = RATES[name].fired / RUNS
    return share, *wilson(share, RUNS)


def rate_text(name: str) -> str:
    """Return a detector's rate as the report and the page have it.

    >>> rate_text("ratio")
    '0.0% [0.0%, 0.2%]'
    """
    return "{} [{}, {}]".format(*map(percent, false_alarms(name)))


BY_NAME = {
    value.name: value
    for module in (learning_alarms, debate_alarms, truth_alarms)
    for value in vars(module).values()
    if isinstance(value, Detector)
}
DETECTORS: dict[str, Detector] = {name: BY_NAME[name] for name in RATES}
"""By name, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one detector says of a run: an alarm, or that it is quiet, or cannot say anything yet."""

    detector: Detector
    alarm: Alarm | None
    values: int

    @property
    def status(self) -> str:
        """One of "alarm", "quiet", "too few steps", "no data"."""
        if self.alarm is not None:
            return "alarm"
        if self.values == 0:
            return "no data"
        return "quiet" if self.values >= self.detector.least else "too few steps"

    @property
    def able(self) -> bool:
        """Whether the run has steps and figures enough for an alarm of it."""
        return self.status in ("alarm", "quiet")


def readings(curves: Curves) -> list[Reading]:
    """Return what every detector says, in order."""
    with np.errstate(all="ignore"):  # figures of a foreign file may be of any size
        return [Reading(d, d.detect(curves), d.known(curves)) for d in DETECTORS.values()]


def alarms(readings: Sequence[Reading]) -> list[Reading]:
    """Return those with an alarm, earliest first."""
    fired = [(reading.alarm.step, reading) for reading in readings if reading.alarm]
    return [reading for _, reading in sorted(fired, key=lambda pair: pair[0])]
