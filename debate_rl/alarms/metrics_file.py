"""Reads metrics.jsonl, which may be torn, doubled or foreign: nothing in it raises."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from debate.files import plain_lines
from debate_rl.alarms.curves import Curves
from debate_rl.metrics.intervals import Numbers
from envs.types import MODES

STREAMS = ("truth", "peer", "judge", "format")
GRADERS = ("accuracy", *(f"accuracy [{mode}]" for mode in MODES))
"""Shares of right solutions: by the grader that rewards, and by each further one."""
FORMS = ("missing", *(f"missing [{mode}]" for mode in MODES))
"""Shares of solutions in which the same graders find no answer."""


def read_metrics(path: Path) -> tuple[Curves, list[str]]:
    """Return the figures of a metrics.jsonl by step, and a line for each kind of thing that was wrong.

    Of a step that is there twice the later line counts. Null, NaN and infinite numbers are broken values.
    """
    steps, wrong = array("q"), list[str]()
    columns: dict[str, tuple[array[int], array[float]]] = defaultdict(lambda: (array("q"), array("d")))
    broken: dict[str, set[int]] = defaultdict(set)
    try:
        for number, line in enumerate(plain_lines(path), start=1):
            row = parsed(line) if line.strip() else {}
            step = row.get("step") if isinstance(row, dict) else None
            if type(step) is not int or not 0 <= step < 1 << 53:
                wrong += [f"line {number}: {_why(row, line)}"] if line.strip() else []
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
        notes.append(f"{path.name}: {twice} lines are of steps done again; the later line of a step counts")
    values: dict[str, Numbers] = {}
    for name, (rows, numbers) in columns.items():
        column = np.full(len(steps), np.nan)
        column[np.array(rows, dtype=np.int64)] = numbers
        values[name] = column[latest]
    lost = {name: tuple(sorted(at)) for name, at in broken.items()}
    return Curves(rising, values, lost), notes


def _why(row: Any, line: bytes) -> str:
    if isinstance(row, dict):
        return f"step is {repr(row.get('step'))[:40]}, not a whole number from 0"
    torn = "the line has no end, as when a run is interrupted"
    return "no JSON object" if line.endswith(b"\n") else torn


def finite(value: float | None) -> float | None:
    """Return a number that was read; None where it is none, infinite or too large."""
    try:
        number = float(value) if value is not None else None
    except OverflowError:
        return None
    return number if number is not None and isfinite(number) else None


def parsed(text: bytes) -> Any:
    """Return the value of a JSON text, which may have NaN and Infinity; None where it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
