"""The sections of judgment figures: findings, tables by group, charts of accuracy, comparison of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from statistics import fmean

import numpy as np

from debate_rl.formatting import number, round_name
from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Bounded, Estimate, Numbered
from debate_rl.reports.document import (
    Cell,
    Chart,
    Judged,
    Paragraph,
    Part,
    Section,
    Series,
    bounded,
    estimate_cell,
    interval_of,
    row,
    section_of,
    table_of,
)
from debate_rl.reports.figures import DECIDED, GROUPS, TABLES, Figure, pair_rows, winner_rows
from debate_rl.reports.findings import Finding
from debate_rl.reports.rows import Study

SECTIONS = ("accuracy", "biases", "winner", "answers", "graph", "collusion")
MAIN = (
    *("judge/accuracy", "judge/strict_accuracy", "judge/coverage", "judge/ties", "bias/position"),
    *("winner/accuracy", "winner/lift", "winner/oracle_gap", "winner/correlation"),
    *("cascade/vulnerability", "cascade/recovery", "graph/cycles"),
)
"""The figures in the comparison of runs."""


def read_text(judged: Judged) -> Paragraph:
    """Return a paragraph with the number of debates and their steps."""
    study = judged.study
    count, problems = len(study.debates), len(study.problems)
    if not count:
        return Paragraph(f"{judged.run}: no debates were found", "warn")
    low, high = (int(end) for end in (study.debates["step"].min(), study.debates["step"].max()))
    range_ = f"step {low}" if low == high else f"steps {low} to {high}"
    damage = f"; {judged.damaged:,} damaged lines" if judged.damaged else ""
    filtered = f", filter {judged.filter}" if judged.filter else ""
    text = f"{judged.run}: {count:,} debates of {problems:,} problems, {range_}{filtered}{damage}."
    return Paragraph(text, "warn" if judged.damaged else "", judged.behind(""))


def judgment_sections(judged: Judged, found: Sequence[Finding], *, prefix: str = "") -> list[Section]:
    """Return the sections of a run. ``prefix`` precedes anchors, and the run's name precedes titles."""
    of_run = [finding for finding in found if finding.look.run == judged.run]
    stated = [finding.paragraph() for finding in of_run if finding.state == "found"]
    looks = table_of("looks", (finding.row() for finding in of_run))
    sections = [section_of("findings", (*stated, looks), stated=len(stated), looks=len(of_run))]
    for name in SECTIONS:
        tables = (table_of(stem, _figures(judged, stem)) for stem in TABLES["section"][name]["tables"])
        sections.append(section_of(name, (*tables, *(group_parts(judged) if name == "accuracy" else ()))))
    sections += by_hand_sections(judged)
    named = f"{judged.run}: " if prefix else ""
    return [replace(one, name=f"{prefix}{one.name}", title=f"{named}{one.title}") for one in sections]


def by_hand_sections(judged: Judged) -> list[Section]:
    """Return the section that compares human labels with votes and gold grades, or [] without labels."""
    labels = [one for one in judged.by_hand if one["kind"] == "label" and not one["stale"] and one["problem"]]
    pairs = [one for one in labels if one["left_votes"] is not None]
    turns = [one for one in labels if one["left_votes"] is None and one["gold"] is not None]
    votes = [
        (float(side == one["value"]), one["problem"])
        for one in pairs
        for side in ("left", "tie", "right")
        for _ in range(one[f"{side}_votes"])
    ]
    golds = [(float(one["value"] == one["gold"]), one["problem"]) for one in pairs if one["gold"]]
    grades = [
        (float((one["value"] == "right") == (one["gold"] == "right")), one["problem"])
        for one in turns
        if one["gold"] != "ungraded"
    ]
    compared = (
        ("votes that agree with the label of their pair", votes),
        ("labels of decidable pairs that agree with gold", golds),
        ("labels of turns that agree with the gold grade", grades),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, values in (one for one in compared if one[1]):
        found = intervals.clustered_mean([value for value, _ in values], [problem for _, problem in values])
        share = Cell(number(found.value), found.value, judged.behind("label:*"))
        rows.append(row(name, share, interval_of(found, (0.0, 1.0)), found.n, found.clusters))
    if not rows:
        return []
    return [section_of("by_hand", [table_of("by_hand", rows)], pairs=len(pairs), turns=len(turns))]


def _figures(judged: Judged, stem: str) -> Iterator[tuple[Cell, ...]]:
    for figure in judged.figures:
        head, _, rest = figure.name.partition("/")
        first, slash, label = rest.partition("/")
        if head != stem and (stem != "accuracy" or head != "judge" or slash):
            continue
        name = f"{first} {label}" if slash else first.replace("_", " ")
        about, one = figure.about, figure.estimate
        text = about["text"].replace("`", "") + ("" if about["source"] == "-" else f" [{about['source']}]")
        if one is None:
            yield row(name, "none", "", "", "", f"{text}. No value: {figure.why}")
        else:
            found = estimate_cell(figure, judged.behind(figure.filter))
            yield row(name, found, interval_of(one, figure.range), one.n, one.clusters, text)


def group_parts(judged: Judged) -> list[Part]:
    """Return a table of accuracy for each kind of group, and a chart if it has two groups or more."""
    kinds: dict[str, dict[str, dict[str, Figure]]] = {}
    for figure in judged.figures:
        head, measure, kind, label = (*figure.name.split("/", 3), "", "", "")[:4]
        if head == "judge" and kind in GROUPS:
            kinds.setdefault(kind, {}).setdefault(label, {})[measure] = figure
    parts: list[Part] = []
    for kind in sorted(kinds, key=("step", *GROUPS).index):
        groups = {_label(kind, label, judged.study.num_rounds): of for label, of in kinds[kind].items()}
        accuracies = [of["accuracy"].estimate for of in groups.values()]
        at = [fmean(map(int, label.split(".."))) for label in kinds[kind]] if kind == "step" else None
        parts += [_chart(judged, kind, list(groups), accuracies, at)] if len(groups) > 1 else []
        rows = (_group(judged, label, of) for label, of in groups.items())
        table = table_of("by-{at}", rows, at=kind, note=TABLES["group_note"].get(kind, ""))
        parts.append(replace(table, folded=len(groups) > 1))
    return parts


def _label(kind: str, label: str, rounds: int | None) -> str:
    if kind == "round":
        return round_name(int(label), rounds)
    if kind == "step":
        return label.replace("..", " to ")
    return f"agent {label}" if kind == "agent" else label


def _group(judged: Judged, label: str, of: dict[str, Figure]) -> tuple[Cell, ...]:
    accuracy, votes, due = of["accuracy"], of["accuracy"].estimate, of["coverage"].estimate
    value = estimate_cell(accuracy, judged.behind(accuracy.filter))
    bounds = interval_of(votes, accuracy.range) if votes else accuracy.why
    rest = estimate_cell(of["strict_accuracy"]), estimate_cell(of["coverage"])
    counts = due.n if due else 0, due.clusters if due else 0
    return row(label, value, bounds, votes.n if votes else 0, *rest, *counts)


def _chart(
    judged: Judged, kind: str, labels: list[str], found: list[Estimate | None], middles: list[float] | None
) -> Chart:
    """Return the chart of accuracies. ``middles``: middles of ranges of steps; None: draw bars."""

    def end(value: float | None) -> float | None:
        return min(1.0, max(0.0, value)) if value is not None and isfinite(value) else None

    at = tuple(middles or map(float, range(len(labels))))
    y, low, high = ([getattr(one, part, None) for one in found] for part in ("value", "low", "high"))
    return Chart(
        f"accuracy-by-{kind}",
        f"Judge accuracy by {kind}",
        kind,
        "judge accuracy",
        (Series("accuracy", at, tuple(y), tuple(map(end, low)), tuple(map(end, high))),),
        "line" if middles else "bars",
        (("a coin", 0.5),),
        behind=judged.behind(DECIDED),
        ticks=() if middles else tuple(labels),
        table=f"by-{kind}",
    )


def comparison_section(runs: Sequence[Judged]) -> Section:
    """Return the section with the runs' main figures, and their differences from the first run."""
    base, by_name = runs[0], [{figure.name: figure for figure in run.figures} for run in runs]
    rows: list[tuple[Cell, ...]] = []
    for name in MAIN:
        cells: list[Cell | Bounded | None] = []
        for run, figures in zip(runs, by_name, strict=True):
            cells.append(estimate_cell(figures[name], run.behind(figures[name].filter)))
            cells += [] if run is base else [bounded(difference(run.study, base.study, name))]
        rows.append(row(name, *cells))
    heads = (base.run, *(head for run in runs[1:] for head in (run.run, "minus the first run")))
    problems = base.study.problems.keys()
    shared = ", ".join(f"{len(problems & run.study.problems.keys()):,}" for run in runs[1:])
    return section_of("comparison", [table_of("runs", rows, *heads, shared=shared)])


def difference(study: Study, base: Study, name: str) -> Estimate | None:
    """Return a figure of one run minus the same figure of another run.

    Return None if the figure is not a mean or has no cases. The rows of a problem in both runs are one
    cluster, so shared problems are paired.
    """
    both = Numbered()  # numbered by name, so that a problem is one cluster in both runs
    found = [(pair_rows(one) | winner_rows(one)).get(name) for one in (study, base)]
    rows = [one.of(one.counted) for one in found if one is not None]
    if len(rows) < 2:
        return None
    codes = [np.array([both[problem] for problem in one.problems]) for one in (study, base)]
    clusters = np.concatenate([code[one.clusters] for code, one in zip(codes, rows, strict=True)])
    values = np.concatenate([one.values for one in rows])
    return intervals.difference(values, np.arange(len(values)) < len(rows[0].values), clusters)
