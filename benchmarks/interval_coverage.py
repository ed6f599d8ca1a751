"""Do the 95% intervals of gains and differences hold the truth, with few problems and values nearly alike?

Printed: the share of replications whose interval holds the truth, by kind of difference, by what is drawn and
by problems. "gain": paired by problem, a value for each. "sides": two runs on problems of their own, three
values for each; "paired": the same, on problems that both share. "change": the last third of the steps of a
training figure less the first, its noise autocorrelated. "intervals": of two intervals alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from report import Figure, parser, report
from scipy.signal import lfilter

from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import apart, wilson
from debate_rl.reports.run import change

Numbers = NDArray[np.float64]
Drawn = tuple[float, float, float]
"""The bounds of an interval, and the truth."""
Draw = Callable[[np.random.Generator], Drawn]
PROBLEMS = (3, 5, 10, 30)
GAINS = (
    *((f"+1 in {up:.0%}, else -1", (up, 0.0, 1 - up)) for up in (0.5, 0.7, 0.85, 0.97)),
    *((f"+1 in {up:.0%}, -1 in 10%, else 0", (up, 0.9 - up, 0.1)) for up in (0.1, 0.3, 0.6, 0.85)),
    *((f"+1 in {up:.0%}, else 0", (up, 1 - up, 0.0)) for up in (0.02, 0.1, 0.3)),
)
RATES = ((0.5, 0.5), (0.9, 0.5), (0.95, 0.9), (0.98, 0.02))
EACH = 3
"""Values of a problem on a side."""
MEAN_GAIN = 0.1
SPREADS = ((0.0, 0.01), (0.1, 0.01), (0.2, 0.01), (0.3, 0.01), (0.1, 0.05), (0.3, 0.05))
"""Standard deviations of the gain between problems and between seeds."""


def gain(shares: tuple[float, float, float], problems: int, rng: np.random.Generator) -> Drawn:
    """A mean gain of so many problems."""
    values = rng.choice([1.0, 0.0, -1.0], problems, p=shares)
    found = intervals.mean(values, np.arange(problems), signed=True)
    assert found is not None
    return found.low, found.high, shares[0] - shares[2]


def sides(
    rates: tuple[float, float], problems: int, rng: np.random.Generator, *, shared: bool = False
) -> Drawn:
    """A difference of two runs whose problems differ in difficulty, as a beta distribution does."""
    hard = rng.random(problems) if shared else None
    chances = [_chances(rate, problems, hard, rng) for rate in rates]
    values = (rng.random(2 * EACH * problems) < np.repeat(np.concatenate(chances), EACH)).astype(float)
    clusters = np.repeat(np.arange(2 * problems) % (problems if shared else 2 * problems), EACH)
    found = intervals.difference(values, np.arange(len(values)) < EACH * problems, clusters)
    assert found is not None
    return found.low, found.high, rates[0] - rates[1]


def _chances(rate: float, problems: int, hard: Numbers | None, rng: np.random.Generator) -> Numbers:
    """The chance of a right value for each problem: 0, the rate or 1, its mean the rate."""
    place = rng.random(problems) if hard is None else hard
    certain = 0.3
    return np.select([place < certain * rate, place > 1 - certain * (1 - rate)], [1.0, 0.0], rate)


def steps(keep: float, count: int, rng: np.random.Generator) -> Drawn:
    """A change of a training figure that does not change; its noise at a step keeps a part of the last."""
    noise = np.asarray(lfilter([1.0], [1.0, -keep], rng.normal(0, 0.05, count + 100)), dtype=float)[100:]
    found = change(0.5 + noise)
    assert found is not None
    return found.low, found.high, 0.0


def from_intervals(rates: tuple[float, float], problems: int, rng: np.random.Generator) -> Drawn:
    """A difference of which only the two figures and their intervals are known."""
    bounded: list[intervals.Bounded] = []
    for rate in rates:
        found = intervals.mean((rng.random(problems) < rate).astype(float), np.arange(problems))
        assert found is not None
        bounded.append((found.value, found.low, found.high))
    _, low, high = apart(*bounded)
    return low, high, rates[0] - rates[1]


def seeds(
    of_problems: float,
    of_seeds: float,
    count: int,
    problems: int,
    rng: np.random.Generator,
    *,
    binary: bool,
    crossed: bool,
    own: bool = False,
) -> Drawn:
    """A mean gain of seeds on problems that they share, or on their own; ``binary``: of one answer a problem.

    A gain that is not binary has a residual of .3, about as much as one answer before and one after have.
    """
    effects = of_problems * rng.choice([-1.0, 1.0], (count if own else 1, problems))
    effects = MEAN_GAIN + effects + rng.normal(0, of_seeds, (count, 1))
    if binary:
        start = rng.uniform(0.35, 0.5, (1, problems))
        after = np.clip(start + effects, 0, 1)
        gains = 1.0 * (rng.random(after.shape) < after) - (rng.random(after.shape) < start)
    else:
        gains = effects + rng.normal(0, 0.3, effects.shape)
    if crossed:
        runs = [
            {(number if own else 0, problem): (value, 1.0) for problem, value in enumerate(row)}
            for number, row in enumerate(gains)
        ]
        found = intervals.crossed_mean(runs, signed=True)
    else:
        found = intervals.mean(gains.mean(axis=1), np.arange(count), signed=True)
    assert found is not None
    return found.low, found.high, MEAN_GAIN


def settings() -> Iterator[tuple[str, Draw]]:
    """Yield every setting by name."""
    for name, shares in GAINS:
        for problems in PROBLEMS:
            yield f"gain, {name}, {problems} problems", partial(gain, shares, problems)
    for rates in RATES:
        of = f"{rates[0]:.0%} against {rates[1]:.0%}"
        for problems in PROBLEMS:
            yield f"sides, {of}, {problems} problems each", partial(sides, rates, problems)
            yield f"paired, {of}, {problems} problems", partial(sides, rates, problems, shared=True)
            yield f"intervals, {of}, {problems} problems each", partial(from_intervals, rates, problems)
    for of_problems, of_seeds in SPREADS:
        for count, problems in product((2, 3, 5, 10), (50, 300)):
            for kind, binary in (("", False), ("binary, ", True)):
                of = f"{kind}sd {of_problems:g} and {of_seeds:g}, {count} seeds x {problems} problems"
                draw = partial(seeds, of_problems, of_seeds, count, problems, binary=binary)
                yield f"seeds, {of}", partial(draw, crossed=True)
                yield f"seeds alone, {of}", partial(draw, crossed=False)
                if of_problems == SPREADS[-1][0]:
                    yield f"seeds on their own problems, {of}", partial(draw, crossed=True, own=True)
    for keep in (0.0, 0.5, 0.9):
        for count in (12, 60, 200):
            yield f"change, noise keeps {keep:.0%}, {count} steps", partial(steps, keep, count)


def main() -> None:
    """Print the coverage of every setting."""
    command = parser(__doc__ or "")
    command.add_argument("--replications", type=int, default=1000)
    command.add_argument("--only", default="", metavar="TEXT", help="the settings whose name begins so")
    chosen = command.parse_args()
    figures: list[Figure] = []
    start = perf_counter()
    for place, (name, draw) in enumerate(settings()):
        if not name.startswith(chosen.only):
            continue
        rng = np.random.default_rng(place)
        drawn = [draw(rng) for _ in range(chosen.replications)]
        share = sum(low - 1e-9 <= truth <= high + 1e-9 for low, high, truth in drawn) / len(drawn)
        figures.append(Figure(name, share, "covered", len(drawn), *wilson(share, len(drawn))))
    figures.append(Figure("time", perf_counter() - start, "s", len(figures)))
    report("Coverage of the 95% intervals of gains and differences", figures, chosen.json)


if __name__ == "__main__":
    main()
