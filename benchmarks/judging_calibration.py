"""Do the intervals of the judgment report hold what they say? Simulated votes of known truth, many times.

Problems have a few votes each, alike within a problem by a known intraclass correlation. Printed: the share
of replications whose 95% interval holds the truth, clustered by problem, and with votes taken as independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from report import Figure, parser, report

from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Estimate, wilson
from debate_rl.reports.estimators import NotEstimable, logistic


@dataclass(frozen=True, slots=True)
class Setting:
    """``accuracy`` and ``position`` as the report tells them: P(right) and P(first | equal) - 1/2."""

    accuracy: float = 0.7
    position: float = 0.05
    icc: float = 0.05
    problems: int = 120
    votes: int = 8

    @property
    def coefficients(self) -> tuple[float, float]:
        """Log-odds of the first, and those added by its being right; exact for decidable pairs."""
        first, second = self.accuracy + self.position, self.accuracy - self.position
        odds = [log(p / (1 - p)) for p in (first, 1 - second)]
        return (odds[0] + odds[1]) / 2, (odds[0] - odds[1]) / 2


SETTINGS = [
    Setting(a, icc=icc, problems=p) for a in (0.6, 0.7, 0.8) for icc in (0.05, 0.25) for p in (100, 200)
]
FIGURES: tuple[str, ...] = ("accuracy", "position", "regression/position", "regression/correctness")


@dataclass(frozen=True, slots=True)
class Votes:
    """Rows of one replication; ``better``: +1 first right, -1 second, 0 equal; ``won``: the first."""

    better: NDArray[np.int8]
    won: NDArray[np.bool_]
    problem: NDArray[np.int64]


def simulate(setting: Setting, rng: np.random.Generator) -> Votes:
    """Return votes on problems of which each has 1 to 2 ``votes`` - 1, so that problems differ in weight.

    With chance sqrt(icc) a vote takes the problem's draw, else one of its own: two votes of a problem
    correlate by ``icc`` exactly [Lunn and Davies 1998].
    """
    sizes = rng.integers(1, 2 * setting.votes, setting.problems)
    problem = np.repeat(np.arange(setting.problems), sizes)
    better = rng.choice(np.array([-1, 1, 0, 0], dtype=np.int8), len(problem))
    shared = rng.random((2, setting.problems))[:, problem]
    drawn = np.where(rng.random((2, len(problem))) < setting.icc**0.5, shared, rng.random((2, len(problem))))
    right = drawn[0] < setting.accuracy + better * setting.position
    won = np.where(better == 0, drawn[1] < 0.5 + setting.position, right == (better == 1))
    return Votes(better, won, problem)


def estimates(votes: Votes, problem: NDArray[np.int64]) -> dict[str, Estimate | None]:
    """Return the figures of the report, with ``problem`` as the cluster of each vote."""
    decidable = votes.better != 0
    right = (votes.won == (votes.better == 1))[decidable]
    equal = votes.won[~decidable] - 0.5
    found = {
        "accuracy": intervals.mean(right, problem[decidable]),
        "position": intervals.mean(equal, problem[~decidable], signed=True),
    }
    columns = [np.ones(int(decidable.sum())), votes.better[decidable]]
    try:
        return found | dict(
            zip(FIGURES[2:], logistic(columns, votes.won[decidable], problem[decidable]), strict=True)
        )
    except NotEstimable:
        return found


def coverage(setting: Setting, replications: int, *, seed: int) -> dict[tuple[str, str], float]:
    """Return by (figure, "clustered" or "naive") the share of intervals that hold the truth."""
    rng = np.random.default_rng(seed)
    truth = dict(zip(FIGURES, (setting.accuracy, setting.position, *setting.coefficients), strict=True))
    hits: Counter[tuple[str, str]] = Counter()
    for _ in range(replications):
        votes = simulate(setting, rng)
        for way, problem in (("clustered", votes.problem), ("naive", np.arange(len(votes.problem)))):
            for name, found in estimates(votes, problem).items():
                hits[name, way] += found is not None and found.low <= truth[name] <= found.high
    return {(name, way): hits[name, way] / replications for name in FIGURES for way in ("clustered", "naive")}


def _named(setting: Setting) -> str:
    return f"accuracy {setting.accuracy}, ICC {setting.icc}, {setting.problems} problems"


def main(measure: Callable[..., dict[tuple[str, str], float]] = coverage) -> None:
    command = parser(__doc__ or "")
    command.add_argument("--replications", type=int, default=2000)
    chosen = command.parse_args()
    figures: list[Figure] = []
    start = perf_counter()
    for place, setting in enumerate(SETTINGS):
        for (name, way), share in measure(setting, chosen.replications, seed=place).items():
            low, high = wilson(share, chosen.replications)
            title = f"{_named(setting)}: {name}, {way}"
            figures.append(Figure(title, share, "covered", chosen.replications, low, high))
    figures.append(Figure("time", perf_counter() - start, "s", len(SETTINGS)))
    report("Coverage of the 95% intervals of the judgment report", figures, chosen.json)


if __name__ == "__main__":
    main()
