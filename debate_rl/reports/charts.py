"""The curves of a report (listed in tables.toml), with at most 500 points each, and histograms of rewards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from debate_rl.alarms.curves import STREAMS, Curves, Steps
from debate_rl.formatting import title
from debate_rl.metrics.intervals import Numbers
from debate_rl.reports.document import Chart, Paragraph, Part, Section, Series, section_of
from debate_rl.reports.figures import TABLES
from debate_rl.reports.run import Run
from envs.types import MODES

POINTS = 500
MOST_LINES = 6
"""Maximum number of curves in a chart of several runs. Above it, each figure has its own chart."""
PHASES = ("rollout", "reward", "learn", "record", "evaluate")
BINS, MOST_VALUES = 20, 12
"""Number of bars of a histogram; maximum number of different values with one bar each."""


def expanded(names: Sequence[str], sources: Sequence[str] = ()) -> tuple[str, ...]:
    """Return figures with {mode}, {round} and {source} replaced by each grading mode, round or source.

    >>> expanded(["loss", "accuracy/round_{round}"])[:3]
    ('loss', 'accuracy/round_0', 'accuracy/round_1')
    """
    words: dict[str, Sequence[object]] = {"{mode}": MODES, "{round}": range(8), "{source}": sources}
    every: list[str] = []
    for name in names:
        word = next((word for word in words if word in name), None)
        every += [name.replace(word, str(value)) for value in words[word]] if word else [name]
    return tuple(every)


def curves_section(runs: Sequence[Run]) -> Section:
    """Return the section with all curves that have a value."""
    parts = [chart for name, spec in TABLES["chart"].items() for chart in _charts(name, spec, runs)]
    parts += [chart for run in runs for chart in _time_shares(run)]
    return section_of("curves", parts, count=len(parts))


def _charts(name: str, spec: dict[str, Any], runs: Sequence[Run]) -> list[Chart]:
    """Return the chart of a row of tables.toml, or one per figure if several runs have too many curves."""
    known = (name for run in runs for name in run.curves.values if "/source/" in name)
    figures = expanded(spec["figures"], sorted({name.rpartition("/")[2] for name in known}))
    needs = expanded(spec["needs"]) if "needs" in spec else figures
    runs = [run for run in runs if any(len(run.curves.of(name)[1]) for name in needs)]
    pairs = [(figure, run) for figure in figures for run in runs if len(run.curves.of(figure)[1])]
    held_out = [figure.startswith("eval/") for figure in figures]
    mixed = any(held_out) and not all(held_out)
    labels = {f: title(f) + (", held out" if mixed and f.startswith("eval/") else "") for f in figures}
    if len(pairs) <= MOST_LINES or len(runs) == 1:
        tail = [f", {run.name}" if len(runs) > 1 else "" for _, run in pairs]
        lines = [(labels[one] + end, one, run) for (one, run), end in zip(pairs, tail, strict=True)]
        return [_chart(f"curves/{name}", spec["title"], spec, lines)] if pairs else []
    charts: list[Chart] = []
    for figure in dict.fromkeys(figure for figure, _ in pairs):
        lines = [(run.name, figure, run) for one, run in pairs if one == figure]
        key, head = labels[figure].replace(" ", "_"), f"{spec['title']}: {labels[figure]}"
        charts.append(_chart(f"curves/{name}/{key}", head, spec, lines))
    return charts


def _chart(name: str, head: str, spec: dict[str, Any], lines: Sequence[tuple[str, str, Run]]) -> Chart:
    series = tuple(
        Series(label, *thinned(*run.curves.of(figure)), *_band(figure, run.curves))
        for label, figure, run in lines
    )
    binned = any(len(run.curves.of(figure)[1]) > POINTS for _, figure, run in lines)
    notes = (spec.get("note", ""), f"Points are means over {POINTS} equal ranges of steps." if binned else "")
    single = {run.name: run for _, _, run in lines}
    behind = next(iter(single.values())).behind() if len(single) == 1 else None
    rules = tuple((text, float(value)) for text, value in spec.get("rules", ()))
    note = " ".join(text for text in notes if text)
    return Chart(name, head, "step", spec["unit"], series, "line", rules, note, behind)


def thinned(steps: Steps, values: Numbers, most: int = POINTS) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return at most ``most`` points: the curve itself, or its means over equal parts."""
    at = steps.astype(float)
    if len(values) > most:
        edges = np.linspace(0, len(values), most + 1).astype(int)[:-1]
        sizes = np.diff([*edges, len(values)])
        at, values = (np.add.reduceat(column, edges) / sizes for column in (at, values))
    return tuple(at.tolist()), tuple(values.tolist())


def _band(figure: str, curves: Curves) -> tuple[tuple[float | None, ...], ...]:
    """Return the band of a figure: one standard deviation of a reward, or a held-out 95% interval, if any."""
    steps, values = curves.of(figure)
    if figure.startswith("reward/"):
        std = curves.dense(figure.replace("/mean", "/std"))[np.isfinite(curves.dense(figure))]
        ends = values - std, values + std
    else:
        ends = curves.bounds(figure)
    if not figure.startswith(("reward/", "eval/")) or not np.isfinite(ends[0]).any():
        return ()
    thin = (thinned(steps, end)[1] for end in ends)
    return tuple(tuple(value if np.isfinite(value) else None for value in end) for end in thin)


def _time_shares(run: Run) -> Iterator[Chart]:
    """Yield the chart of seconds by phase, in up to 20 bins of steps, if there are timings."""
    columns = {phase: np.nan_to_num(run.curves.dense(f"seconds/{phase}"), nan=0.0) for phase in PHASES}
    total = np.sum([*columns.values()], axis=0)
    if not len(total) or not total.any():
        return
    bins = [part for part in np.array_split(np.arange(len(total)), min(20, len(total))) if len(part)]
    x = tuple(float(run.curves.steps[part[0]]) for part in bins)
    series = tuple(
        Series(phase, x, tuple(float(column[p].sum() / max(float(total[p].sum()), 1e-12)) for p in bins))
        for phase, column in columns.items()
        if column.any()
    )
    note = "Share of time per phase, over the range of steps that begins at x."
    name, head = f"curves/time/{run.index}", f"Time by phase: {run.name}"
    yield Chart(name, head, "step", "share of time", series, "bars", note=note, behind=run.behind())


def distributions_section(runs: Sequence[Run]) -> Section:
    """Return the section with histograms of the rewards of single turns, for each third of the steps."""
    parts: list[Part] = []
    for run in runs:
        rewards = run.sample.rewards if run.sample else {}
        if not any(rewards.values()):
            parts.append(Paragraph(f"{run.name}: no stored rewards.", "warn"))
            continue
        text = f"{run.name}: all {run.debates:,} stored debates were read."
        if run.read < run.debates:
            text = (
                f"{run.name}: {run.read:,} of {run.debates:,} stored debates were read: the first debates of "
                "up to 100 evenly spaced steps. Links lead to all debates of those steps."
            )
        parts.append(Paragraph(text, behind=run.behind()))
        for stream in STREAMS:
            if values := rewards.get(stream):
                name, head = f"distributions/{run.index}/{stream}", f"Reward of a turn, {stream}: {run.name}"
                behind = run.behind(f"reward.{stream}:<0 OR reward.{stream}:>=0")
                bars = tuple(_histograms(run, values))
                parts.append(Chart(name, head, "reward", "share of turns", bars, "bars", behind=behind))
    return section_of("distributions", parts)


def _histograms(run: Run, rewards: Sequence[tuple[int, float]]) -> Iterator[Series]:
    everything = np.array([value for _, value in rewards])
    for name, first, last in run.thirds:
        values = np.array([value for step, value in rewards if first <= step <= last])
        yield Series(f"{name}: steps {first} to {last}", *histogram(values, everything))


def histogram(values: Numbers, everything: Numbers) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the positions of the bars of ``everything``, and the fraction of ``values`` in each bar.

    Up to 12 different values have one bar each. More values are divided into 20 bins of equal width, whose
    position is their middle.
    """
    x = np.unique(everything)
    if len(x) <= MOST_VALUES:
        counts = np.array([(values == value).sum() for value in x], dtype=float)
    else:
        counts, edges = np.histogram(values, bins=BINS, range=(float(x[0]), float(x[-1])))
        x = (edges[:-1] + edges[1:]) / 2
    total = max(1, len(values))
    return tuple(x.tolist()), tuple(float(count) / total for count in counts)
