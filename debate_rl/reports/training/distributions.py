"""Histograms of the rewards of single turns, by stream, in the first, middle and last third of the steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from debate_rl.alarms.metrics_file import STREAMS
from debate_rl.metrics.intervals import Numbers, thirds
from debate_rl.reports.cells import number_cell
from debate_rl.reports.document import Cell, Chart, Paragraph, Part, Section, Series, Table
from debate_rl.reports.training.loading import Run

BINS = 20
MOST_VALUES = 12
"""Different values up to which each has a bar of its own."""
ABOUT = "rewards of single turns by stream, early, middle and late"
THIRDS = ("early", "middle", "late")


def distributions_section(runs: Sequence[Run]) -> Section:
    """Return the section of histograms and their tables, from the sampled debates of each run."""
    parts: list[Part] = []
    for index, run in enumerate(runs):
        sample = run.sample
        if sample is None or not sample.rewards:
            parts.append(Paragraph(f"{run.name}: no stored rewards.", "warn"))
            continue
        parts.append(Paragraph(_how(run), behind=run.behind()))
        parts += [_chart(run, index, stream) for stream in STREAMS if sample.rewards.get(stream)]
        parts.append(_table(run, index))
    return Section("distributions", "Distributions of rewards", tuple(parts), ABOUT)


def _how(run: Run) -> str:
    read = run.read
    if read >= run.debates:
        return f"{run.name}: all {run.debates:,} stored debates were read."
    return (
        f"{run.name}: {read:,} of {run.debates:,} stored debates were read, evenly over the steps: the first "
        "of up to 100 steps each. The links lead to all debates of those steps."
    )


def ranges(run: Run) -> list[tuple[str, int, int]]:
    """Return (name, first step, last step) of each third of the stored steps; fewer than 3 steps are one."""
    if run.stored is None:
        return []
    low, high = run.stored
    if high - low < 2:
        return [("all", low, high)]
    return [
        (name, part[0], part[-1]) for name, part in zip(THIRDS, thirds(range(low, high + 1)), strict=True)
    ]


def _values(run: Run, stream: str, first: int, last: int) -> Numbers:
    rewards = run.sample.rewards.get(stream, []) if run.sample else []
    return np.array([value for step, value in rewards if first <= step <= last])


def _chart(run: Run, index: int, stream: str) -> Chart:
    everything = np.array([value for _, value in run.sample.rewards[stream]]) if run.sample else np.zeros(0)
    series: list[Series] = []
    x: tuple[float, ...] = ()
    for name, first, last in ranges(run):
        values = _values(run, stream, first, last)
        x, shares = histogram(values, everything)
        series.append(Series(f"{name}: steps {first} to {last}", x, shares))
    title = f"Reward of a turn, {stream}: {run.name}"
    name = f"distributions/{index + 1}/{stream}"
    return Chart(
        name, title, "reward", "share of turns", tuple(series), "bars", behind=run.behind(_filter(stream))
    )


def histogram(values: Numbers, everything: Numbers) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the positions of bars and the share of the values in each; the bars are those of ``everything``.

    Up to 12 different values have a bar each; more of them 20 bars of equal width, at their middles.

    >>> histogram(np.array([0.0, 1.0, 1.0, 1.0]), np.array([0.0, 0.5, 1.0]))
    ((0.0, 0.5, 1.0), (0.25, 0.0, 0.75))
    """
    different = np.unique(everything)
    if len(different) <= MOST_VALUES:
        counts = np.array([(values == value).sum() for value in different], dtype=float)
        x = different
    else:
        counts, edges = np.histogram(values, bins=BINS, range=(float(different[0]), float(different[-1])))
        x = (edges[:-1] + edges[1:]) / 2
    total = max(1, len(values))
    return tuple(float(at) for at in x), tuple(float(count) / total for count in counts)


def _filter(stream: str) -> str:
    return f"reward.{stream}:<0 OR reward.{stream}:>=0"


def _table(run: Run, index: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for stream in STREAMS:
        for name, first, last in ranges(run):
            values = _values(run, stream, first, last)
            if not len(values):
                continue
            numbers = [values.mean(), values.std(), *np.quantile(values, (0.0, 0.25, 0.5, 0.75, 1.0))]
            numbers.append((values == 0).mean())
            part = Cell(f"{name}: steps {first} to {last}")
            turns = number_cell(len(values), behind=run.behind(f"step:{first}..{last}"))
            rows.append((Cell(stream), part, turns, *(number_cell(float(number)) for number in numbers)))
    quantiles = ("least", "25%", "median", "75%", "most")
    columns = ("stream", "part", "turns", "mean", "std", *quantiles, "share of 0")
    return Table(f"distributions/{index + 1}/table", f"Rewards of turns: {run.name}", columns, tuple(rows))
