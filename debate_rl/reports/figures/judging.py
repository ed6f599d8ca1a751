"""How often a judge prefers the right solution, over all and by group, with coverage and strict accuracy.

Pairs are decidable as rewards.judging says: ``better`` is not 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import numpy as np
from numpy.typing import NDArray

from debate_rl.metrics import intervals
from debate_rl.reports.figures.figure import Figure, any_of, figure, quoted
from debate_rl.reports.figures.rows import NO_VOTE
from debate_rl.reports.figures.study import Rows, Study

DECIDED = "judge.accuracy:>=0"
"""Finds the debates with a vote on a decidable pair."""
MOST_LABELS = 40
"""Groups of one kind that are shown: those with the most pairs."""
STEP_BINS = 10
LENGTHS = ("less than half", "shorter", "about as long", "longer", "more than twice")
"""The right solution's length against the wrong one's; edges at 1/2, 1/1.2, 1.2 and 2."""
LENGTH_EDGES = (-log(2), -log(1.2), log(1.2), log(2))

Group = tuple[str, str, "NDArray[np.bool_]", str | None]
"""Kind, label, whose pairs, filter."""


def pair_rows(study: Study) -> dict[str, Rows]:
    """Return the decidable pairs as the rows of accuracy, strict accuracy, coverage and ties."""
    table = study.pairs
    decidable = table["better"] != 0
    outcome, clusters = table["outcome"][decidable], study.clusters(table)[decidable]
    right, voted = outcome == table["better"][decidable], outcome != NO_VOTE
    due = np.ones(len(outcome), dtype=bool)
    return {
        "judge/accuracy": Rows(right, voted, clusters),
        "judge/strict_accuracy": Rows(right, due, clusters),
        "judge/coverage": Rows(voted, due, clusters),
        "judge/ties": Rows(outcome == 0, voted, clusters),
    }


def accuracy_figures(study: Study) -> Iterator[Figure]:
    """Yield accuracy, strict accuracy, coverage and ties, then the first three by group."""
    rows = pair_rows(study)
    yield from _three(rows, "", rows["judge/coverage"].counted, DECIDED)
    yield figure("judge/ties", intervals.ratio(*rows["judge/ties"]), DECIDED)
    for kind, label, inside, filter in _groups(study, study.pairs["better"] != 0):
        yield from _three(rows, f"/{kind}/{label}", inside, filter)


def _three(
    rows: dict[str, Rows], tail: str, inside: NDArray[np.bool_], filter: str | None
) -> Iterator[Figure]:
    """Yield the three figures of some pairs; ``filter`` finds the debates with votes."""
    pair = "pair with exactly one right side"
    for name, where, why in (
        ("judge/accuracy", filter, f"no vote on a {pair}"),
        ("judge/strict_accuracy", None, f"no {pair}"),
        ("judge/coverage", None, f"no {pair}"),
    ):
        yield figure(name + tail, intervals.ratio(*rows[name].of(inside)), where, why)


def _groups(study: Study, decidable: NDArray[np.bool_]) -> Iterator[Group]:
    table = study.pairs
    # "persona:" finds debates in which one took part, whether or not it was its vote
    yield from _labelled("persona", [*study.personas], table["persona"][decidable], None)
    yield from _labelled("fault", [*study.faults], table["fault"][decidable], None)
    yield from _numbered("round", table["round"][decidable])
    yield from _numbered("agent", table["agent"][decidable])
    yield from _lengths((table["length"] * table["better"])[decidable])
    yield from _steps(study.of_debate("step", table)[decidable])
    levels = study.of_debate("level", table)[decidable]
    yield from _labelled("level", [*study.levels], levels, "level")
    yield from _subjects([*study.sources], study.of_debate("source", table)[decidable])


def _labelled(
    kind: str, texts: list[str], codes: NDArray[np.signedinteger], field: str | None
) -> Iterator[Group]:
    counts = np.bincount(codes, minlength=len(texts))
    for code in sorted(np.argsort(-counts, kind="stable")[:MOST_LABELS].tolist(), key=texts.__getitem__):
        if counts[code] and texts[code]:
            where = f"{field}:{quoted(texts[code])} {DECIDED}" if field else None
            yield kind, texts[code], codes == code, where


def _subjects(sources: list[str], codes: NDArray[np.signedinteger]) -> Iterator[Group]:
    """Subjects are what follows the first slash of a source."""
    of_subject: dict[str, list[int]] = {}
    for code, source in enumerate(sources):
        of_subject.setdefault(source.partition("/")[2], []).append(code)
    for subject in sorted(of_subject.keys() - {""})[:MOST_LABELS]:
        inside = np.isin(codes, of_subject[subject])
        if inside.any():
            where = any_of("source", [sources[code] for code in of_subject[subject]])
            yield "subject", subject, inside, f"{where} {DECIDED}"


def _numbered(kind: str, numbers: NDArray[np.signedinteger]) -> Iterator[Group]:
    for number in np.unique(numbers).tolist():
        yield kind, str(number), numbers == number, None


def _lengths(ratio: NDArray[np.floating]) -> Iterator[Group]:
    """``ratio``: ln of the right solution's length over the wrong one's."""
    bins = np.digitize(ratio, LENGTH_EDGES)
    for index, label in enumerate(LENGTHS):
        if (bins == index).any():
            yield "length", label, bins == index, None


def _steps(steps: NDArray[np.signedinteger]) -> Iterator[Group]:
    """Equal ranges of steps, each one step or more wide."""
    if not len(steps):
        return
    low, high = int(steps.min()), int(steps.max())
    width = -(-(high - low + 1) // STEP_BINS)
    for start in range(low, high + 1, width):
        inside = (steps >= start) & (steps < start + width)
        if inside.any():
            end = min(start + width - 1, high)
            label = f"{start}..{end}" if end > start else str(start)
            yield "step", label, inside, f"step:{label} {DECIDED}"
