"""Figures of a run by step, from metrics.jsonl, and functions that detectors apply to them."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from debate.files import plain_lines
from debate_rl.metrics.intervals import Numbers, thirds
from envs.types import MODES

Steps = NDArray[np.int64]
Where = NDArray[np.bool_]
SOLVED = 0.9
"""The fraction of right answers above which solutions may be alike without a collapse."""
BASE = 10
"""Number of first values, with which later values are compared."""
STREAMS = ("truth", "peer", "judge", "format")
GRADERS = ("accuracy", *(f"accuracy [{mode}]" for mode in MODES))
"""Fractions of right solutions: by the grader that rewards, and by each additional grader."""
FORMS = ("missing", *(f"missing [{mode}]" for mode in MODES))
"""Fractions of solutions in which the same graders find no answer."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Columns (n,) over ascending ``steps`` (n,), nan where a value is missing.

    ``broken``: the steps at which a figure was present but not finite. ``group``: K N, the number of answers
    to a problem in round 0 of a step, if known.

    >>> curves = Curves(np.array([0, 1, 2]), {"loss": np.array([1.0, np.nan, 3.0])})
    >>> curves.of("loss")
    (array([0, 2]), array([1., 3.]))
    """

    steps: Steps = field(default_factory=lambda: np.zeros(0, np.int64))
    values: Mapping[str, Numbers] = field(default_factory=dict[str, Numbers])
    broken: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    group: int | None = None

    def of(self, name: str) -> tuple[Steps, Numbers]:
        """Return the steps with a value of this figure, and the values."""
        column = self.dense(name)
        known = np.isfinite(column)
        return self.steps[known], column[known]

    def dense(self, name: str) -> Numbers:
        """Return the column of a figure (n,), nan where a value is missing."""
        return self.values[name] if name in self.values else np.full(len(self.steps), np.nan)

    def bounds(self, name: str) -> tuple[Numbers, Numbers]:
        """Return the interval of each value of a held-out figure, nan where it is missing."""
        known = np.isfinite(self.dense(name))
        return self.dense(f"{name}/low")[known], self.dense(f"{name}/high")[known]

    def beginning(self, name: str) -> float | None:
        """Return the mean of the first 5 values of a figure, or None without values."""
        return _reduced(np.mean, self.of(name)[1][:5])

    def late(self, name: str) -> float | None:
        """Return the mean of the last third of the values of a figure."""
        return _reduced(np.mean, thirds(self.of(name)[1])[-1])

    def total(self, name: str) -> float | None:
        """Return the sum of a figure over all steps."""
        return _reduced(np.sum, self.of(name)[1])

    def median(self, name: str) -> float | None:
        """Return the median of a figure over all steps."""
        return _reduced(np.median, self.of(name)[1])

    @property
    def solved(self) -> bool:
        """Whether more than 90% of the late answers are right.

        Solutions may then be alike without a collapse.
        """
        return (self.late("accuracy") or 0.0) > SOLVED


def _reduced(reduce: Callable[[Numbers], Any], values: Numbers) -> float | None:
    return float(reduce(values)) if len(values) else None


def joined(parts: Sequence[Curves], group: int | None = None) -> Curves:
    """Return the curves of all parts on the union of their steps. For equal names, the first part counts."""
    steps = np.unique(np.concatenate([part.steps for part in parts])).astype(np.int64)
    values: dict[str, Numbers] = {}
    broken: dict[str, tuple[int, ...]] = {}
    for part in reversed(parts):
        for name, column in part.values.items():
            values[name] = np.full(len(steps), np.nan)
            values[name][np.searchsorted(steps, part.steps)] = column
        broken.update(part.broken)
    return Curves(steps, values, broken, group)


def read_metrics(path: Path) -> tuple[Curves, list[str]]:
    """Return the figures of a metrics.jsonl by step, and a line for each kind of problem found.

    The file may be incomplete, duplicated or foreign: no content raises an error. If a step occurs twice, the
    later line counts. Null, NaN and infinite numbers are broken values.
    """
    steps, wrong = array("q"), list[str]()
    columns: dict[str, tuple[array[int], array[float]]] = defaultdict(lambda: (array("q"), array("d")))
    broken: dict[str, set[int]] = defaultdict(set)
    try:
        for number, line in enumerate(plain_lines(path), start=1):
            row = parsed(line) if line.strip() else {}
            step = row.get("step") if isinstance(row, dict) else None
            if type(step) is not int or not 0 <= step < 1 << 53:
                why = (
                    "no JSON object" if line.endswith(b"\n") else "the line is incomplete, as in a killed run"
                )
                if isinstance(row, dict):
                    why = f"step is {repr(row.get('step'))[:40]}, not a whole number from 0"
                wrong += [f"line {number}: {why}"] if line.strip() else []
                continue
            for name, value in row.items():
                if type(value) not in (int, float, type(None)):
                    continue
                if (known := finite(value)) is None:
                    broken[name].add(step)
                else:
                    columns[name][0].append(len(steps))
                    columns[name][1].append(known)
            steps.append(step)
    except OSError as error:
        return Curves(), [f"{path.name}: {error.strerror or 'cannot be read'}"]
    notes = [f"{path.name}: {len(wrong)} lines left out (first in {wrong[0]})"] if wrong else []
    rising, newest = np.unique(np.array(steps, dtype=np.int64)[::-1], return_index=True)
    latest = len(steps) - 1 - newest
    if twice := len(steps) - len(latest):
        notes.append(f"{path.name}: {twice} lines repeat a step; the later line of a step counts")
    values: dict[str, Numbers] = {}
    for name, (rows, numbers) in columns.items():
        column = np.full(len(steps), np.nan)
        column[np.array(rows, dtype=np.int64)] = numbers
        values[name] = column[latest]
    return Curves(rising, values, {name: tuple(sorted(at)) for name, at in broken.items()}), notes


def finite(value: float | None) -> float | None:
    """Return the number, or None if it is not a number, infinite or too large."""
    try:
        number = float(value) if value is not None else None
    except OverflowError:
        return None
    return number if number is not None and isfinite(number) else None


def parsed(text: bytes) -> Any:
    """Return the value of a JSON text, which may contain NaN and Infinity; None if the text is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class Alarm:
    """The first step after which a detector fires, with the value, the threshold and the reason."""

    step: int
    value: float
    threshold: float
    why: str


def first(steps: Steps, fires: Where, values: Numbers, threshold: float, why: str) -> Alarm | None:
    """Return the alarm of the first index (n,) at which ``fires`` is true."""
    at = np.flatnonzero(fires)
    return Alarm(int(steps[at[0]]), float(values[at[0]]), threshold, why) if len(at) else None


def earliest(*alarms: Alarm | None) -> Alarm | None:
    """Return the alarm with the lowest step. For equal steps, the first one."""
    return min((alarm for alarm in alarms if alarm), key=lambda alarm: alarm.step, default=None)


def ends_from(known: int, count: int, width: int = 1) -> Where:
    """Return (count,): whether each trailing window of ``width`` ends at index ``known`` or later."""
    return np.arange(count) + width - 1 >= known


def sustained(condition: Where, times: int, among: int) -> Where:
    """Return (n,): whether the condition holds here, and for ``times`` of the last ``among`` values."""
    counts = np.cumsum(condition)
    before = np.concatenate([np.zeros(min(among, len(counts)), int), counts[: max(0, len(counts) - among)]])
    return condition & (counts - before >= times)


def _windows(values: Numbers, width: int) -> NDArray[np.float64]:
    return sliding_window_view(values, width) if len(values) >= width else np.zeros((0, width))


def trailing_median(values: Numbers, width: int) -> Numbers:
    """Return the medians of each ``width`` consecutive values, (n - width + 1,)."""
    return np.median(_windows(values, width), axis=1)


def trailing_mean(values: Numbers, width: int) -> Numbers:
    """Return the means of each ``width`` consecutive values, (n - width + 1,)."""
    return _windows(values, width).mean(axis=1)


def gained(values: Numbers, width: int = BASE) -> Numbers:
    """Return the trailing means minus the first trailing mean, (n - width + 1,)."""
    means = trailing_mean(values, width)
    return means - means[0]


def running_median(values: Numbers, width: int = 50, share: int = 1 << 14) -> Numbers:
    """Return (n,): the median of up to ``width`` values before each value; 0 for the first value."""
    windows = sliding_window_view(np.concatenate([np.full(width, np.nan), values[:-1]]), width)
    parts = [np.nanmedian(windows[begin : begin + share], axis=1) for begin in range(1, len(values), share)]
    return np.concatenate([np.zeros(1), *parts])


def trailing_share(wins: Numbers, votes: Numbers, least: float) -> Numbers:
    """Return (n,): wins / votes over the fewest latest steps that have ``least`` votes. nan before that.

    >>> trailing_share(np.array([1.0, 0.0, 4.0]), np.array([2.0, 2.0, 4.0]), least=4)
    array([ nan, 0.25, 1.  ])
    """
    won, cast = (np.concatenate([[0.0], np.cumsum(counts)]) for counts in (wins, votes))
    begin = np.searchsorted(cast, cast[1:] - least, side="right") - 1
    enough, begin = begin >= 0, np.maximum(begin, 0)
    counted = np.maximum(cast[1:] - cast[begin], 1e-12)
    return np.where(enough, (won[1:] - won[begin]) / counted, np.nan)
