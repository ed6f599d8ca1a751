"""Accuracy, strict accuracy and coverage by persona, fault, round, agent, length, step, level and subject."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from debate_rl.formatting import round_name
from debate_rl.metrics.intervals import Estimate
from debate_rl.reports.cells import Judged, combined_filter, count_cell, estimate_cell, interval_of
from debate_rl.reports.document import Behind, Cell, Chart, Part, Series, Table
from debate_rl.reports.figures.figure import GROUPS, Figure
from debate_rl.reports.figures.judging import DECIDED

COIN = (("a coin", 0.5),)
NOTES = {
    "round": "A judge's round: it judges the solutions of the round before; the last is the final ballot, "
    "where there is one.",
    "fault": "What can be seen to be wrong in the wrong solution, by rules (docs/judging.md).",
    "length": "The right solution against the wrong one, in characters; about as long: within 1.2 times.",
    "step": "Up to ten equal ranges of steps.",
    "subject": "What follows the first slash of a problem's source.",
}
COLUMNS = ("accuracy", "95% interval", "votes", "strict accuracy", "coverage", "pairs due", "problems")

ByLabel = dict[str, dict[str, Figure]]
"""By label: the figure of each measure."""


def group_parts(judged: Judged) -> list[Part]:
    """Return for each kind of group a chart of the accuracy, where there are two groups, and a table."""
    kinds = _by_kind(judged.figures)
    parts: list[Part] = []
    for kind in sorted(kinds, key=("step", *GROUPS).index):
        groups = kinds[kind]
        if len(groups) > 1:
            parts.append(_chart(judged, kind, groups))
        parts.append(_table(judged, kind, groups))
    return parts


def _by_kind(figures: Iterable[Figure]) -> dict[str, ByLabel]:
    kinds: dict[str, ByLabel] = {}
    for figure in figures:
        head, _, rest = figure.name.partition("/")
        measure, _, rest = rest.partition("/")
        kind, _, label = rest.partition("/")
        if head == "judge" and kind in GROUPS:
            kinds.setdefault(kind, {}).setdefault(label, {})[measure] = figure
    return kinds


def label_of(kind: str, label: str, rounds: int | None = None) -> str:
    """Return a group as people read it; ``rounds`` of a debate, where all have as many.

    >>> label_of("round", "1"), label_of("agent", "0"), label_of("level", "Level 5"), label_of("step", "0..3")
    ('round 1', 'agent 0', 'Level 5', '0 to 3')
    >>> label_of("round", "1", 2), label_of("round", "2", 2)
    ('round 1', 'final ballot')
    """
    if kind == "round":
        return round_name(int(label), rounds)
    if kind == "step":
        return label.replace("..", " to ")
    return f"agent {label}" if kind == "agent" else label


def _table(judged: Judged, kind: str, groups: ByLabel) -> Table:
    rows = tuple(_row(judged, kind, label, measures) for label, measures in groups.items())
    note = NOTES.get(kind, "")
    return Table(f"by-{kind}", f"By {kind}", (kind, *COLUMNS), rows, note, folded=len(groups) > 1)


def _row(judged: Judged, kind: str, label: str, of: dict[str, Figure]) -> tuple[Cell, ...]:
    accuracy, strict, coverage = of["accuracy"], of["strict_accuracy"], of["coverage"]
    votes, due = accuracy.estimate, coverage.estimate
    return (
        Cell(label_of(kind, label, judged.study.num_rounds)),
        estimate_cell(accuracy, judged.behind(accuracy)),
        Cell(interval_of(accuracy.name, votes) if votes else accuracy.why),
        count_cell(votes.n if votes else 0),
        estimate_cell(strict, None),
        estimate_cell(coverage, None),
        count_cell(due.n if due else 0),
        count_cell(due.clusters if due else 0),
    )


def _chart(judged: Judged, kind: str, groups: ByLabel) -> Chart:
    labels = list(groups)
    line = kind == "step"
    positions = tuple(map(_middle, labels)) if line else tuple(map(float, range(len(labels))))
    estimates = [groups[label]["accuracy"].estimate for label in labels]
    return Chart(
        f"accuracy-by-{kind}",
        f"Judge accuracy by {kind}",
        "step" if line else kind,
        "judge accuracy",
        (_series(positions, estimates),),
        "line" if line else "bars",
        COIN,
        "",
        Behind(judged.run, combined_filter(judged.filter, DECIDED) or ""),
        () if line else tuple(label_of(kind, label, judged.study.num_rounds) for label in labels),
        f"by-{kind}",
    )


def _series(positions: tuple[float, ...], estimates: Sequence[Estimate | None]) -> Series:
    def end(estimate: Estimate | None, value: float) -> float | None:
        return min(1.0, max(0.0, value)) if estimate and isfinite(value) else None

    return Series(
        "accuracy",
        positions,
        tuple(estimate.value if estimate else None for estimate in estimates),
        tuple(end(estimate, estimate.low) if estimate else None for estimate in estimates),
        tuple(end(estimate, estimate.high) if estimate else None for estimate in estimates),
    )


def _middle(label: str) -> float:
    """Return the middle of a range of steps.

    >>> _middle("4..7"), _middle("3")
    (5.5, 3.0)
    """
    first, _, last = label.partition("..")
    return (int(first) + int(last or first)) / 2
