"""The curves of a report, at most 500 points each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from debate_rl.alarms.curves import Curves, Steps
from debate_rl.alarms.metrics_file import FORMS, GRADERS, STREAMS
from debate_rl.formatting import title
from debate_rl.metrics.intervals import Numbers
from debate_rl.reports.document import Chart, Part, Section, Series
from debate_rl.reports.training.files import ROUNDS, VERIFIER
from debate_rl.reports.training.loading import Run

POINTS = 500
MOST_LINES = 6
"""Curves of several runs in a chart; with more a chart is made for each figure."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One chart: the names of its figures, and horizontal lines with a name.

    ``needs``: figures of which one has to be known; without them others show all there is.
    """

    name: str
    title: str
    y_label: str
    figures: tuple[str, ...]
    rules: tuple[tuple[str, float], ...] = ()
    note: str = ""
    needs: tuple[str, ...] = ()

    def label(self, figure: str) -> str:
        """Return a figure's title, with "held out" where the chart has figures of training too."""
        held_out = [name.startswith("eval/") for name in self.figures]
        mixed = any(held_out) and not all(held_out)
        return title(figure) + (", held out" if mixed and figure.startswith("eval/") else "")


SPECS = (
    Spec(
        "curves/rewards",
        "Rewards by stream",
        "reward",
        tuple(f"reward/{stream}/mean" for stream in STREAMS),
        (("0", 0.0),),
        "Band: one standard deviation over the turns of a step. Peer rewards of a debate sum to about 0.",
    ),
    Spec(
        "curves/accuracy",
        "Accuracy in training, by round",
        "accuracy",
        (*(f"accuracy/round_{r}" for r in ROUNDS), "winner/accuracy"),
    ),
    Spec(
        "curves/held_out",
        "Accuracy on held-out problems",
        "accuracy",
        ("eval/direct/accuracy", "eval/direct/self_consistency", "eval/debate/winner/accuracy"),
        note="Band: 95% interval, clustered by problem.",
    ),
    Spec(
        "curves/labels",
        "Pseudo-labels and votes that are right",
        "share right",
        ("audit/pseudo_right", "judge/accuracy"),
        (("a coin", 0.5),),
        "By the gold answers, which rewarded nothing of it where problems have no label.",
        needs=("audit/pseudo_right",),
    ),
    Spec(
        "curves/graders",
        "The same solutions under several graders",
        "share right",
        (
            *GRADERS,
            "reward/truth/mean",
            "eval/direct/accuracy",
            *(f"eval/direct/{one}" for one in GRADERS[1:]),
        ),
        note="Without brackets: the grader that rewards. Where one climbs alone, it is not the answers that "
        "get better.",
        needs=(*GRADERS[1:], *(f"eval/direct/{one}" for one in GRADERS[1:])),
    ),
    Spec(
        "curves/missing",
        "Solutions without an answer in the form that a grader wants",
        "share missing",
        (*FORMS, *(f"eval/direct/{one}" for one in FORMS)),
    ),
    Spec("curves/gap", "Training and held-out", "accuracy", ("accuracy/round_0", "eval/direct/accuracy")),
    Spec(
        "curves/judge",
        "Judge accuracy",
        "judge accuracy",
        ("judge/accuracy", "eval/judge/accuracy"),
        (("a coin", 0.5),),
    ),
    Spec(
        "curves/judge_pairs",
        "The judge on fixed pairs, plain and attacked",
        "share right",
        ("eval/judge/pairs/plain", "eval/judge/pairs/attacked"),
        (("a coin", 0.5),),
        "Band: 95% interval, clustered by problem. The first points are the start judge's.",
    ),
    Spec(
        "curves/hack_gap",
        "Hack gap: what persuaders cost the judge more than the start judge",
        "hack gap",
        ("eval/judge/hack_gap",),
        (("0", 0.0),),
        "Band: 95% interval, clustered by problem. debate inspect RUN pairs has the pairs behind it.",
    ),
    Spec(
        "curves/verifier",
        "What a verifier model says: no ground truth",
        "share",
        tuple(f"verifier/{name}" for name in VERIFIER),
        note="Where its score climbs and its agreement with truth falls, or false positives climb, it is "
        "being gamed: docs/verifiers.md.",
    ),
    Spec("curves/lift", "What votes add to a random answer", "winner lift", ("winner/lift",), (("0", 0.0),)),
    Spec("curves/kl", "KL to the reference", "nats a token", ("kl_mean",)),
    Spec("curves/kl_max", "Largest KL of a token", "nats", ("kl_max",)),
    Spec("curves/entropy", "Entropy of the next token", "nats", ("entropy_mean",)),
    Spec(
        "curves/logprob",
        "Log-probability of the sampled tokens",
        "nats a token",
        ("sample/logprob",),
        note="From the stored tokens of a debate of up to 100 steps.",
    ),
    Spec("curves/ratio", "Ratio of new to old probability", "ratio", ("ratio_mean",), (("1", 1.0),)),
    Spec("curves/grad_norm", "Gradient's norm before it is clipped", "norm", ("grad_norm",)),
    Spec(
        "curves/loss", "Loss", "loss", ("loss",), note="A policy gradient's loss says little about progress."
    ),
    Spec("curves/lr", "Learning rate", "rate", ("lr",)),
    Spec("curves/lengths", "Lengths of replies", "tokens", ("tokens/completion", "tokens/completion_max")),
    Spec(
        "curves/format",
        "Form",
        "share",
        ("format/valid", "judge/parsed_share", "truncated", "eval/debate/valid_xml"),
    ),
    Spec(
        "curves/variety",
        "Variety",
        "share",
        ("completions/distinct", "advantage/zero_variance_share/truth", "wrong_consensus"),
    ),
)
PHASES = ("rollout", "reward", "learn", "record", "evaluate")


def curves_section(runs: Sequence[Run]) -> Section:
    """Return the section of all curves that have a value."""
    charts = [chart for spec in (*SPECS, *_by_source(runs)) for chart in charts_of(spec, runs)]
    parts: list[Part] = [
        *charts,
        *(chart for index, run in enumerate(runs) for chart in time_shares(run, index)),
    ]
    return Section(
        "curves", "Curves", tuple(parts), f"{len(parts)} charts by step: rewards, accuracy, KL, lengths, time"
    )


BY_SOURCE = {
    "accuracy": ("curves/sources", "Accuracy in training, by source", "accuracy"),
    "reward/truth": ("curves/source_rewards", "Truth reward, by source", "reward"),
    "share": ("curves/source_shares", "Debates of a step, by source", "share"),
}
"""Charts with a line for each source, where a run trains on several."""


def _by_source(runs: Sequence[Run]) -> list[Spec]:
    names = sorted({name for run in runs for name in run.curves.values if "/source/" in name})
    return [
        Spec(*head, figures)
        for figure, head in BY_SOURCE.items()
        if (figures := tuple(name for name in names if name.startswith(f"{figure}/source/")))
    ]


def charts_of(spec: Spec, runs: Sequence[Run]) -> list[Chart]:
    """Return the chart of a spec over all runs; one for each figure where several runs make it crowded."""
    runs = [run for run in runs if any(len(run.curves.of(name)[1]) for name in spec.needs or spec.figures)]
    pairs = [(figure, run) for figure in spec.figures for run in runs if len(run.curves.of(figure)[1])]
    if len(pairs) <= MOST_LINES or len(runs) == 1:
        label = "{label}" if len(runs) == 1 else "{label}, {run}"
        return [_chart(spec, spec.name, spec.title, pairs, label)] if pairs else []
    charts: list[Chart] = []
    for figure in spec.figures:
        of_figure = [pair for pair in pairs if pair[0] == figure]
        if of_figure:
            label = spec.label(figure)
            name, head = f"{spec.name}/{label.replace(' ', '_')}", f"{spec.title}: {label}"
            charts.append(_chart(spec, name, head, of_figure, "{run}"))
    return charts


def _chart(spec: Spec, name: str, head: str, pairs: Sequence[tuple[str, Run]], label: str) -> Chart:
    series = tuple(
        _series(figure, run, label.replace("{label}", spec.label(figure)).replace("{run}", run.name))
        for figure, run in pairs
    )
    binned = any(len(run.curves.of(figure)[1]) > POINTS for figure, run in pairs)
    means = f"Means of {POINTS} equal shares of the steps." if binned else ""
    single = {run.name: run for _, run in pairs}
    behind = next(iter(single.values())).behind() if len(single) == 1 else None
    note = " ".join(text for text in (spec.note, means) if text)
    return Chart(name, head, "step", spec.y_label, series, "line", spec.rules, note, behind)


def _series(figure: str, run: Run, label: str) -> Series:
    steps, values = run.curves.of(figure)
    return Series(label, *thinned(steps, values, POINTS), *_band(figure, run.curves))


def _band(figure: str, curves: Curves) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """Return a deviation about the mean of a reward, the 95% interval of a held-out figure, or nothing."""
    steps, values = curves.of(figure)
    if figure.startswith("reward/"):
        std = curves.dense(figure.replace("/mean", "/std"))[np.isfinite(curves.dense(figure))]
        low, high = values - std, values + std
    elif figure.startswith("eval/"):
        low, high = curves.bounds(figure)
    else:
        return (), ()
    return (_with_gaps(steps, low), _with_gaps(steps, high)) if np.isfinite(low).any() else ((), ())


def _with_gaps(steps: Steps, values: Numbers) -> tuple[float | None, ...]:
    thin = thinned(steps, values, POINTS)[1]
    return tuple(value if np.isfinite(value) else None for value in thin)


def time_shares(run: Run, index: int = 0) -> list[Chart]:
    """Return the chart of the seconds of each phase, in up to 20 bins of steps; nothing without timings."""
    columns = {phase: np.nan_to_num(run.curves.dense(f"seconds/{phase}"), nan=0.0) for phase in PHASES}
    total = np.sum([*columns.values()], axis=0)
    if not len(total) or not total.any():
        return []
    bins = [part for part in np.array_split(np.arange(len(total)), min(20, len(total))) if len(part)]
    x = tuple(float(run.curves.steps[part[0]]) for part in bins)
    series = tuple(
        Series(phase, x, tuple(_share(column[part], total[part]) for part in bins))
        for phase, column in columns.items()
        if column.any()
    )
    note = "Share of the time of each phase, from the step at x on."
    name, head = f"curves/time/{index + 1}", f"Where the time went: {run.name}"
    return [Chart(name, head, "step", "share of the time", series, "bars", note=note, behind=run.behind())]


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / max(float(whole.sum()), 1e-12))


def thinned(steps: Steps, values: Numbers, most: int = 500) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return at most ``most`` points: the curve itself, or the means of equal shares of its values.

    >>> thinned(np.arange(4), np.array([0.0, 2.0, 4.0, 6.0]), 2)
    ((0.5, 2.5), (1.0, 5.0))
    """
    if len(values) > most:
        edges = np.linspace(0, len(values), most + 1).astype(int)[:-1]
        sizes = np.diff([*edges, len(values)])
        at = np.add.reduceat(steps.astype(float), edges) / sizes
        values = np.add.reduceat(values, edges) / sizes
    else:
        at = steps.astype(float)
    return tuple(float(x) for x in at), tuple(float(y) for y in values)
