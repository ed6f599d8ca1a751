"""Figures of replies that were graded anew: shares with intervals, and how much of a gain is stopping."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from debate_rl.evaluation.scores import Scores, difference
from debate_rl.formatting import percent
from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Estimate, Numbered, clustered_mean, spread
from debate_rl.replay.regrading import STORED, TRAINING, Sheet


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a source under one mode, all shares of its ``replies``.

    ``sampled`` and ``clipped``: right; ``moved``: clipped less as sampled, reply by reply; ``cut``: it went
    on behind a stop string; ``changed``: the grade is another once it is cut; ``differs``: as sampled it is
    not the stored one. What is not known, as of grades that were stored, is None.
    """

    source: str
    part: str
    mode: str
    replies: int
    problems: int
    sampled: Estimate | None
    clipped: Estimate | None = None
    moved: Estimate | None = None
    cut: Estimate | None = None
    changed: Estimate | None = None
    differs: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more is right in ``source`` than in ``base``: as sampled, clipped, and the first less the
    second, which is what learning to stop alone is worth. Paired by problem where both have the same ones.
    """

    source: str
    base: str
    part: str
    mode: str
    sampled: Estimate | None
    clipped: Estimate | None
    stopping: Estimate | None
    paired: bool


def lines_of(sheet: Sheet, *, clip: bool) -> Iterator[Line]:
    """Yield the stored grades, then each mode; ``clip``: whether any stop strings were named."""
    for mode, sampled in sheet.sampled.items():
        counts = sum(value is not None for value in sampled), len(sheet.problems)
        line = Line(sheet.source, sheet.part, mode, *counts, _share(sheet, sampled))
        if mode != STORED:
            line = _whole(sheet, line, sampled, clip=clip)
        yield line


def _whole(sheet: Sheet, line: Line, sampled: Sequence[float | None], *, clip: bool) -> Line:
    stored = _share(sheet, _apart(sheet.sampled[STORED], sampled))
    known = (line.source, line.part, line.mode, line.replies, line.problems, line.sampled)
    if not clip:
        return Line(*known, differs=stored)
    cut = sheet.clipped[line.mode]
    return Line(
        *known,
        clipped=_share(sheet, cut),
        moved=_share(sheet, _less(cut, sampled), signed=True),
        cut=_share(sheet, sheet.cut),
        changed=_share(sheet, _apart(cut, sampled)),
        differs=stored,
    )


def _less(left: Sequence[float | None], right: Sequence[float | None]) -> list[float | None]:
    pairs = zip(left, right, strict=True)
    return [None if one is None or other is None else one - other for one, other in pairs]


def _apart(left: Sequence[float | None], right: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else abs(value) for value in _less(left, right)]


def _share(sheet: Sheet, values: Sequence[float | None], *, signed: bool = False) -> Estimate | None:
    """Return the mean over the replies that have a value, clustered by problem."""
    known = [(value, id) for value, id in zip(values, sheet.clusters, strict=True) if value is not None]
    return clustered_mean(*zip(*known, strict=True), signed=signed) if known else None  # type: ignore[arg-type]


def gains_of(sheets: Sequence[Sheet]) -> Iterator[Gain]:
    """Yield the gains of each part over the first source that has it; of training apart from evaluations.

    Evaluations are compared with the first one of the same problems: others say nothing of a gain.
    """
    by_part: dict[str, list[Sheet]] = defaultdict(list)
    for sheet in sheets:
        by_part[sheet.part].append(sheet)
    for part, of_part in by_part.items():
        for sheet in of_part:
            alike = (one for one in of_part if part.startswith(TRAINING) or one.problems == sheet.problems)
            if (base := next(alike)) is not sheet:
                for mode in (mode for mode in sheet.clipped if mode in base.clipped):
                    yield _gain(sheet, base, part, mode)


def _gain(sheet: Sheet, base: Sheet, part: str, mode: str) -> Gain:
    paired = sheet.problems == base.problems and not part.startswith(TRAINING)
    new, old = _scores(sheet, mode), _scores(base, mode)
    gain = _paired if paired else _unpaired
    sampled, cut, stopping = (gain(new, old, name) for name in ("sampled", "clipped", "stopping"))
    return Gain(sheet.source, base.source, part, mode, sampled, cut, stopping, paired)


def _scores(sheet: Sheet, mode: str) -> Scores:
    """Return the grades under a mode by problem, and how much better each is as sampled than clipped."""
    sampled, cut = sheet.sampled[mode], sheet.clipped[mode]
    columns = {"sampled": sampled, "clipped": cut, "stopping": _less(sampled, cut)}
    values: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in columns}
    for name, column in columns.items():
        for value, id in zip(column, sheet.clusters, strict=True):
            if value is not None:
                values[name][id].append(value)
    return Scores(values, sheet.problems, samples=0)


def _paired(new: Scores, old: Scores, name: str) -> Estimate | None:
    return difference(new, name, old, name)


def _unpaired(new: Scores, old: Scores, name: str) -> Estimate | None:
    rows = [
        (value, side, id)
        for side, scores in ((True, new), (False, old))
        for id, values in scores.values[name].items()
        for value in values
    ]
    if not rows:
        return None
    values, sides, ids = zip(*rows, strict=True)
    return intervals.difference(values, sides, np.array([*map(Numbered().__getitem__, ids)]))


def table_of(lines: Iterable[Line], *, clip: bool) -> list[list[str]]:
    """Return the lines as a table, heads first; what a line shares with the one above it stands once."""
    heads = ["replies of", "part", "replies", "mode", "as sampled"]
    heads += ["clipped", "clipped - as sampled", "cut", "grade changed"] if clip else []
    rows = [[*_named(line), line.mode, *_cells(line, clip=clip)] for line in lines]
    above = [[], *rows[:-1]]
    return [
        [*heads, "not as stored"],
        *(
            ["", "", "", *row[3:]] if row[:3] == last[:3] else row
            for row, last in zip(rows, above, strict=True)
        ),
    ]


def _named(line: Line) -> list[str]:
    return [line.source, line.part, str(line.replies)]


def _cells(line: Line, *, clip: bool) -> list[str]:
    more = [cell(line.clipped), cell(line.moved, signed=True), _percent(line.cut), _percent(line.changed)]
    return [cell(line.sampled), *(more if clip else ()), _percent(line.differs)]


def _percent(share: Estimate | None) -> str:
    return "-" if share is None else percent(share.value)


def gain_table(gains: Iterable[Gain]) -> list[list[str]]:
    """Return the gains as a table, heads first."""
    heads = ["gain of", "over", "part", "mode", "as sampled", "clipped", "of it stopping"]
    return [
        heads,
        *(
            [one.source, one.base, one.part, one.mode]
            + [cell(part, signed=True) for part in (one.sampled, one.clipped, one.stopping)]
            for one in gains
        ),
    ]


def cell(estimate: Estimate | None, *, signed: bool = False) -> str:
    """Return a share with its interval, "-" for none.

    >>> cell(Estimate(0.5, 0.4, 0.6, 9, 9)), cell(Estimate(-0.25, -0.5, 0.0, 9, 9), signed=True), cell(None)
    ('0.500 ± 0.100', '-0.250 ± 0.250', '-')
    """
    if estimate is None:
        return "-"
    within = (-2.0, 2.0) if signed else (0.0, 1.0)
    return f"{estimate.value:{'+' if signed else ''}.3f}{spread(estimate, 3, within)}"


def plain(estimate: Estimate | None) -> dict[str, float | int | None] | None:
    """Return an estimate for a JSON file; a bound that is not finite is None."""
    if estimate is None:
        return None
    low, high = (bound if isfinite(bound) else None for bound in (estimate.low, estimate.high))
    found = {
        "value": estimate.value,
        "low": low,
        "high": high,
        "n": estimate.n,
        "problems": estimate.clusters,
    }
    return found if estimate.p is None else {**found, "p": estimate.p}
