"""The curves of a report, at most 500 points each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from debate_rl.reports.document import Behind, Chart, Part, Section, Series
from debate_rl.reports.training.curves import Curves, thinned
from debate_rl.reports.training.files import STREAMS
from debate_rl.reports.training.loading import Run

POINTS = 500
MOST_LINES = 6
"""Curves of several runs in a chart; with more a chart is made for each figure."""


@dataclass(frozen=True, slots=True)
class Line:
    """A figure's name, its label, and what its band is: "" none, "std" one deviation, "bounds" 95%."""

    figure: str
    label: str
    band: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """One chart: its lines, and horizontal lines with a name."""

    name: str
    title: str
    y_label: str
    lines: tuple[Line, ...]
    rules: tuple[tuple[str, float], ...] = ()
    note: str = ""


def _lines(*pairs: tuple[str, str], band: str = "") -> tuple[Line, ...]:
    return tuple(Line(figure, label, band) for figure, label in pairs)


SPECS = (
    Spec(
        "curves/rewards",
        "Rewards by stream",
        "reward",
        _lines(*((f"reward/{s}/mean", s) for s in STREAMS), band="std"),
        (("0", 0.0),),
        "Band: one standard deviation over the turns of a step. Peer rewards of a debate sum to about 0.",
    ),
    Spec(
        "curves/correct",
        "Right answers in training, by round",
        "share right",
        (
            *_lines(*((f"accuracy/round_{r}", f"round {r + 1}") for r in range(8))),
            Line("winner/accuracy", "winner"),
        ),
    ),
    Spec(
        "curves/held_out",
        "Right answers on held-out problems",
        "share right",
        _lines(
            ("eval/direct/accuracy", "one answer"),
            ("eval/direct/self_consistency", "majority of as many tokens"),
            ("eval/debate/winner/accuracy", "debate's winner"),
            band="bounds",
        ),
        note="Band: 95% interval, clustered by problem.",
    ),
    Spec(
        "curves/gap",
        "Training and held-out",
        "share right",
        (
            Line("accuracy/round_0", "training, first round"),
            Line("eval/direct/accuracy", "held out, one answer", "bounds"),
        ),
    ),
    Spec(
        "curves/judge",
        "Judge accuracy",
        "share right",
        (Line("judge/accuracy", "training"), Line("eval/judge/accuracy", "held out", "bounds")),
        (("a coin", 0.5),),
    ),
    Spec(
        "curves/lift",
        "What votes add to a random answer",
        "winner less mean",
        _lines(("winner/lift", "lift")),
        (("0", 0.0),),
    ),
    Spec("curves/kl", "KL to the reference", "nats a token", _lines(("kl_mean", "mean"))),
    Spec("curves/kl_max", "Largest KL of a token", "nats", _lines(("kl_max", "maximum"))),
    Spec("curves/entropy", "Entropy of the next token", "nats", _lines(("entropy_mean", "mean"))),
    Spec(
        "curves/logprob",
        "Log-probability of the sampled tokens",
        "nats a token",
        _lines(("sample/logprob", "mean")),
        note="From the stored tokens of a debate of up to 100 steps.",
    ),
    Spec(
        "curves/ratio",
        "Ratio of new to old probability",
        "ratio",
        _lines(("ratio_mean", "mean")),
        (("1", 1.0),),
    ),
    Spec("curves/grad_norm", "Gradient's norm before it is cut", "norm", _lines(("grad_norm", "mean"))),
    Spec(
        "curves/loss",
        "Loss",
        "loss",
        _lines(("loss", "loss")),
        note="A policy gradient's loss says little about progress.",
    ),
    Spec("curves/lr", "Learning rate", "rate", _lines(("lr", "rate"))),
    Spec(
        "curves/lengths",
        "Lengths of replies",
        "tokens",
        _lines(("tokens/completion", "mean"), ("tokens/completion_max", "longest")),
    ),
    Spec(
        "curves/format",
        "Form",
        "share",
        (
            *_lines(
                ("format/valid", "valid"), ("judge/parsed_share", "due votes read"), ("truncated", "cut off")
            ),
            Line("eval/debate/valid_xml", "valid, held out", "bounds"),
        ),
    ),
    Spec(
        "curves/variety",
        "Variety",
        "share",
        _lines(
            ("completions/distinct", "distinct first answers"),
            ("advantage/zero_variance_share/truth", "groups alike in truth"),
            ("wrong_consensus", "all agree and are wrong"),
        ),
    ),
)
PHASES = ("rollout", "reward", "learn", "record", "evaluate")


def curves_section(runs: Sequence[Run]) -> Section:
    """Return the section of all curves that have a value."""
    charts = [chart for spec in SPECS for chart in charts_of(spec, runs)]
    parts: list[Part] = [
        *charts,
        *(chart for place, run in enumerate(runs) for chart in time_shares(run, place)),
    ]
    return Section("curves", "Curves", tuple(parts))


def charts_of(spec: Spec, runs: Sequence[Run]) -> list[Chart]:
    """Return the chart of a spec over all runs; one for each figure where several runs make it crowded."""
    found = [(line, run) for line in spec.lines for run in runs if len(run.curves.of(line.figure)[1])]
    if len(found) <= MOST_LINES or len(runs) == 1:
        label = "{label}" if len(runs) == 1 else "{label}, {run}"
        return [_chart(spec, spec.name, spec.title, found, label)] if found else []
    charts: list[Chart] = []
    for line in spec.lines:
        of_line = [(one, run) for one, run in found if one is line]
        if of_line:
            name, title = f"{spec.name}/{line.label.replace(' ', '_')}", f"{spec.title}: {line.label}"
            charts.append(_chart(spec, name, title, of_line, "{run}"))
    return charts


def _chart(spec: Spec, name: str, title: str, found: Sequence[tuple[Line, Run]], label: str) -> Chart:
    series = tuple(_series(line, run, label) for line, run in found)
    binned = any(len(run.curves.of(line.figure)[1]) > POINTS for line, run in found)
    means = f"Means of {POINTS} equal shares of the steps." if binned else ""
    single = {run.name: run for _, run in found}
    behind = next(iter(single.values())).behind() if len(single) == 1 else None
    note = " ".join(text for text in (spec.note, means) if text)
    return Chart(name, title, "step", spec.y_label, series, "line", spec.rules, note, behind)


def _series(line: Line, run: Run, label: str) -> Series:
    curves = run.curves
    steps, values = curves.of(line.figure)
    x, y = thinned(steps, values, POINTS)
    low, high = _band(line, curves)
    named = label.replace("{label}", line.label).replace("{run}", run.name)
    return Series(named, tuple(at + 1 for at in x), y, low, high)


def _band(line: Line, curves: Curves) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    known = np.isfinite(curves.dense(line.figure))
    if line.band == "std":
        mean, std = curves.dense(line.figure), curves.dense(line.figure.replace("/mean", "/std"))
        low, high = mean - std, mean + std
    elif line.band == "bounds":
        low, high = curves.dense(f"{line.figure}/low"), curves.dense(f"{line.figure}/high")
    else:
        return (), ()
    if not np.isfinite(low[known]).any():
        return (), ()
    low, high = (_thinned_with_gaps(curves, bound[known], known) for bound in (low, high))
    return low, high


def _thinned_with_gaps(curves: Curves, values: np.ndarray, known: np.ndarray) -> tuple[float | None, ...]:
    _, thin = thinned(curves.steps[known], values, POINTS)
    return tuple(value if np.isfinite(value) else None for value in thin)


def time_shares(run: Run, place: int = 0) -> list[Chart]:
    """Return the chart of the seconds of each phase, in up to 20 bins of steps; nothing without timings."""
    columns = {phase: np.nan_to_num(run.curves.dense(f"seconds/{phase}"), nan=0.0) for phase in PHASES}
    total = np.sum([*columns.values()], axis=0)
    if not len(total) or not total.any():
        return []
    bins = [part for part in np.array_split(np.arange(len(total)), min(20, len(total))) if len(part)]
    x = tuple(float(run.curves.steps[part[0]]) + 1 for part in bins)
    series = tuple(
        Series(phase, x, tuple(_share(column[part], total[part]) for part in bins))
        for phase, column in columns.items()
        if column.any()
    )
    note = "Share of the time of each phase, from the step at x on."
    behind: Behind | None = run.behind()
    return [
        Chart(
            f"curves/time/{place + 1}",
            f"Where the time went: {run.name}",
            "step",
            "share of the time",
            series,
            "bars",
            (),
            note,
            behind,
        )
    ]


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / max(float(whole.sum()), 1e-12))
