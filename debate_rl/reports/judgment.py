"""The sections of judgment figures: findings, tables by group, charts of accuracy, runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TypeAlias

import numpy as np

from debate_rl.formatting import number, round_name
from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Estimate, Numbered, holm
from debate_rl.reports.document import (
    Cell,
    Chart,
    Judged,
    Paragraph,
    Part,
    Section,
    Series,
    Table,
    count_cell,
    estimate_cell,
    interval_of,
)
from debate_rl.reports.figures import DECIDED, GROUPS, Figure, equal_in_truth, pair_rows, winner_rows
from debate_rl.reports.findings import LEVEL, Finding, chance, looks_table
from debate_rl.reports.rows import Rows, Study

PARTS = (
    (
        ("accuracy", "Judge accuracy"),
        "how often votes are right, by step, persona, fault, round, agent, length, level and subject",
        {
            "accuracy": (
                "On pairs with exactly one right side",
                "Read the three together: a policy that votes only where it is sure gains accuracy and loses "
                "coverage; strict accuracy sees both.",
            )
        },
    ),
    (
        ("biases", "Biases"),
        "what moves votes other than truth: position, length, own work, personas",
        {
            "bias": (
                "On pairs that are equal in truth",
                "0 is no bias, 0.1 is 60 votes in 100 for it.",
            ),
            "swaps": (
                "Pairs shown in both orders",
                'They come with debate.order = "per_viewer" and four agents or more.',
            ),
            "regression": (
                "One regression for all of them",
                "Log-odds: 0 is no effect, 1 makes the odds 2.7 times as large.",
            ),
        },
    ),
    (
        ("winner", "Winner"),
        "what the vote's winner adds to one answer, a majority, and a perfect judge",
        {"winner": ("The winner of the last judged round", "")},
    ),
    (
        ("answers", "Flips and cascades"),
        "who changes from right to wrong, and whom agents follow",
        {"flip": ("An agent's steps from one round to the next", ""), "cascade": ("Who is carried away", "")},
    ),
    (
        ("graph", "Cycles and orders"),
        "do the votes of a debate make an order",
        {"graph": ("Strict majorities of the votes", "")},
    ),
    (
        ("collusion", "Collusion"),
        "does praise grow without truth, are favours returned",
        {"collusion": ("Praise without truth, favours returned, agreement", "")},
    ),
)
"""Anchor and title of each section, what is in it, and its tables with title and note."""
GROUP_NOTES = {
    "round": "A judge's round: it judges the solutions of the round before; the last is the final ballot, "
    "where there is one.",
    "fault": "What can be seen to be wrong in the wrong solution, by rules (docs/judging.md).",
    "length": "The right solution against the wrong one, in characters; about as long: within 1.2 times.",
    "step": "Up to ten equal ranges of steps.",
    "subject": "What follows the first slash of a problem's source.",
}
MAIN = (
    *("judge/accuracy", "judge/strict_accuracy", "judge/coverage", "judge/ties", "bias/position"),
    *("winner/accuracy", "winner/lift", "winner/oracle_gap", "winner/correlation"),
    *("cascade/vulnerability", "cascade/recovery", "graph/cycles"),
)
"""What runs are compared by."""
ByLabel: TypeAlias = dict[str, dict[str, Figure]]
"""By label: the figure of each measure."""


def read_text(judged: Judged) -> Paragraph:
    """Return how many debates there are, of which steps."""
    study = judged.study
    count, problems = len(study.debates), len(study.problems)
    if not count:
        return Paragraph(f"{judged.run}: no debates are found", "warn")
    steps = study.debates["step"]
    low, high = int(steps.min()), int(steps.max())
    range_ = f"step {low}" if low == high else f"steps {low} to {high}"
    damage = f"; {judged.damaged:,} damaged lines" if judged.damaged else ""
    filtered = f", found by {judged.filter}" if judged.filter else ""
    text = f"{judged.run}: {count:,} debates of {problems:,} problems, {range_}{filtered}{damage}."
    return Paragraph(text, "warn" if judged.damaged else "", judged.behind(""))


def judgment_sections(judged: Judged, found: Sequence[Finding], *, prefix: str = "") -> list[Section]:
    """Return the sections of a run; ``prefix`` goes before the anchors, and the run's name before titles."""
    named = f"{judged.run}: " if prefix else ""
    of_run = [finding for finding in found if finding.look.run == judged.run]
    stated = [finding.paragraph() for finding in of_run if finding.state == "found"]
    about = f"{len(stated)} of {len(of_run)} things looked for; how large and how sure each has to be"
    sections = [Section(f"{prefix}findings", f"{named}Findings", (*stated, looks_table(of_run)), about)]
    for (name, title), about, tables in PARTS:
        parts: list[Part] = [_figures(judged, stem, *head) for stem, head in tables.items()]
        parts += group_parts(judged) if name == "accuracy" else []
        sections.append(Section(f"{prefix}{name}", f"{named}{title}", tuple(parts), about))
    return sections


def _figures(judged: Judged, stem: str, title: str, note: str) -> Table:
    """Return the figures of one group, those without a value with the reason."""
    rows: list[tuple[Cell, ...]] = []
    for figure in judged.figures:
        head, _, rest = figure.name.partition("/")
        first, slash, label = rest.partition("/")
        if head != stem and (stem != "accuracy" or head != "judge" or slash):
            continue
        name = Cell(f"{first} {label}" if slash else first.replace("_", " "))
        meaning, source = figure.meaning
        text, estimate = meaning.replace("`", "") + ("" if source == "-" else f" [{source}]"), figure.estimate
        if estimate is None:
            rows.append((name, Cell("none"), *(Cell(""),) * 3, Cell(f"{text}. No value: {figure.why}")))
        else:
            found = estimate_cell(figure, judged.behind(figure.filter))
            counts = count_cell(estimate.n), count_cell(estimate.clusters)
            rows.append((name, found, Cell(interval_of(figure.name, estimate)), *counts, Cell(text)))
    columns = ("figure", "estimate", "95% interval", "n", "problems", "what it is")
    return Table(stem, title, columns, tuple(rows), note)


def group_parts(judged: Judged) -> list[Part]:
    """Return for each kind of group a chart of the accuracy, where there are two groups, and a table."""
    kinds: dict[str, ByLabel] = {}
    for figure in judged.figures:
        head, measure, kind, label = (*figure.name.split("/", 3), "", "", "")[:4]
        if head == "judge" and kind in GROUPS:
            kinds.setdefault(kind, {}).setdefault(label, {})[measure] = figure
    parts: list[Part] = []
    for kind in sorted(kinds, key=("step", *GROUPS).index):
        parts += [_chart(judged, kind, kinds[kind])] if len(kinds[kind]) > 1 else []
        parts.append(_group_table(judged, kind, kinds[kind]))
    return parts


def _label(kind: str, label: str, rounds: int | None) -> str:
    if kind == "round":
        return round_name(int(label), rounds)
    if kind == "step":
        return label.replace("..", " to ")
    return f"agent {label}" if kind == "agent" else label


def _group_table(judged: Judged, kind: str, groups: ByLabel) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for label, of in groups.items():
        accuracy, votes, due = of["accuracy"], of["accuracy"].estimate, of["coverage"].estimate
        rows.append(
            (
                Cell(_label(kind, label, judged.study.num_rounds)),
                estimate_cell(accuracy, judged.behind(accuracy.filter)),
                Cell(interval_of(accuracy.name, votes) if votes else accuracy.why),
                count_cell(votes.n if votes else 0),
                estimate_cell(of["strict_accuracy"]),
                estimate_cell(of["coverage"]),
                count_cell(due.n if due else 0),
                count_cell(due.clusters if due else 0),
            )
        )
    columns = (kind, "accuracy", "95% interval", "votes", "strict accuracy", "coverage", "pairs due")
    note, folded = GROUP_NOTES.get(kind, ""), len(groups) > 1
    return Table(f"by-{kind}", f"By {kind}", (*columns, "problems"), tuple(rows), note, folded=folded)


def _chart(judged: Judged, kind: str, groups: ByLabel) -> Chart:
    def end(value: float | None) -> float | None:
        return min(1.0, max(0.0, value)) if value is not None and isfinite(value) else None

    line, labels = kind == "step", list(groups)
    found = [groups[label]["accuracy"].estimate for label in labels]
    at = tuple(map(_middle, labels)) if line else tuple(map(float, range(len(labels))))
    y, low, high = (
        tuple(getattr(one, part) if one else None for one in found) for part in ("value", "low", "high")
    )
    return Chart(
        f"accuracy-by-{kind}",
        f"Judge accuracy by {kind}",
        kind,
        "judge accuracy",
        (Series("accuracy", at, y, tuple(map(end, low)), tuple(map(end, high))),),
        "line" if line else "bars",
        (("a coin", 0.5),),
        behind=judged.behind(DECIDED),
        ticks=() if line else tuple(_label(kind, label, judged.study.num_rounds) for label in labels),
        table=f"by-{kind}",
    )


def _middle(label: str) -> float:
    """Return the middle of a range of steps.

    >>> _middle("4..7"), _middle("3")
    (5.5, 3.0)
    """
    first, _, last = label.partition("..")
    return (int(first) + int(last or first)) / 2


def comparison_section(runs: Sequence[Judged]) -> Section:
    """Return one table of the main figures of the runs; the first run is what the others differ from."""
    base = runs[0]
    by_name = [{figure.name: figure for figure in run.figures} for run in runs]
    less = {(name, run.run): difference(run.study, base.study, name) for name in MAIN for run in runs[1:]}
    known = [place for place, found in less.items() if found is not None and found.p is not None]
    chances = dict(zip(known, holm([chance(less[place]) for place in known]), strict=True))
    rows: list[tuple[Cell, ...]] = []
    for name in MAIN:
        cells = [Cell(name)]
        for run, figures in zip(runs, by_name, strict=True):
            cells.append(estimate_cell(figures[name], run.behind(figures[name].filter)))
            if run is not base:
                place = name, run.run
                cells.append(_difference_cell(less[place], chances.get(place, 1.0)))
        rows.append(tuple(cells))
    heads = ("figure", base.run, *(head for run in runs[1:] for head in (run.run, "less the first")))
    problems = base.study.problems.keys()
    shared = ", ".join(f"{len(problems & run.study.problems.keys()):,}" for run in runs[1:])
    note = (
        f"Problems shared with the first run: {shared}. Differences have 95% intervals clustered by problem "
        "over both runs: paired where problems are shared, else of independent runs. Not significant: p is "
        f"over {LEVEL}, adjusted for all differences of this table (Holm 1979). None: not a mean."
    )
    table = Table("runs", "Runs side by side", heads, tuple(rows), note)
    about = "main figures, and their differences to the first run"
    return Section("comparison", "Runs side by side", (table,), about)


def difference(study: Study, base: Study, name: str) -> Estimate | None:
    """Return a figure of one run less that of another; None where it is no plain mean, or has no cases.

    Rows of one problem are one cluster whichever run they are of: where the runs share problems the
    difference is paired by them, where they do not it is that of independent runs.
    """
    runs = (study, _means(study).get(name)), (base, _means(base).get(name))
    counted = [(study, rows.of(rows.counted)) for study, rows in runs if rows is not None]
    if len(counted) < 2:
        return None
    both = Numbered()  # by the problems' names, so that a problem is one cluster in both runs
    clusters = [
        np.array([both[problem] for problem in study.problems])[rows.clusters] for study, rows in counted
    ]
    values = [rows.values for _, rows in counted]
    first = np.repeat([True, False], [len(values[0]), len(values[1])])
    return intervals.difference(np.concatenate(values), first, np.concatenate(clusters))


def _means(study: Study) -> dict[str, Rows]:
    """Return the rows of the figures that are plain means, by name."""
    graphs = study.graphs
    first_won = Rows(study.pairs["outcome"] == 1, equal_in_truth(study), study.clusters(study.pairs))
    cycles = Rows(graphs["cycle"], np.ones(len(graphs), dtype=bool), study.clusters(graphs))
    return pair_rows(study) | winner_rows(study) | {"bias/position": first_won, "graph/cycles": cycles}


def _difference_cell(estimate: Estimate | None, p: float) -> Cell:
    if estimate is None:
        return Cell("none")
    text, reach = number(estimate.value, signed=True), interval_of("bias", estimate)
    if reach == "none":  # no problem differs from another
        return Cell(f"{text} (no interval)", estimate.value)
    return Cell(f"{text} ({reach})" + ("" if p <= LEVEL else ", not significant"), estimate.value)
