"""How often each detector fires on healthy simulated runs, as measured.

    python benchmarks/collapse_detectors.py --runs 2000 --first-seed 20000 --collapses 100

Runs of 200 steps; thresholds were set on seeds below 12000. The runs are simulated, with noise scaled beside
runs of the quick-start: the rates are of that noise, and no promise for another task.
"""

from __future__ import annotations

from typing import NamedTuple

from debate_rl.formatting import percent
from debate_rl.statistics import wilson

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
    "no_exploration": Measured(0, 1.00, 20),
    "one_sided": Measured(11, 1.00, 16),
    "wrong_consensus": Measured(0, 1.00, 12),
    "peer_truth": Measured(0, 0.96, 22),
    "votes_against_truth": Measured(0, 1.00, 16),
    "held_out": Measured(0, 0.97, 39),
    "format_only": Measured(17, 0.99, 41),
}
ANY = 62
"""Healthy runs in which some detector fired."""


def false_alarms(name: str) -> tuple[float, float, float]:
    """Return the share of healthy runs with an alarm of this detector, and its 95% interval (Wilson)."""
    share = RATES[name].fired / RUNS
    return share, *wilson(share, RUNS)


def told_rate(name: str) -> str:
    """Return a detector's rate as the report and the page have it.

    >>> told_rate("ratio")
    '0.0% [0.0%, 0.2%]'
    """
    return "{} [{}, {}]".format(*map(percent, false_alarms(name)))
