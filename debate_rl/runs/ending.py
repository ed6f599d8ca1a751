"""How the starts of a run ended, as run.json keeps it: the reason, the step, and wall seconds.

    "starts": [{"time": ..., "seconds": 512.3, "end": {"reason": "rollback", "step": 12, "why": ...}}, ...]
    "wall_seconds": 512.3

A start that was killed wrote no end: the next start notes how far its metrics went.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from debate_rl.formatting import duration
from debate_rl.metrics.step_log import read_rows

Start = dict[str, Any]


def ended(facts: Mapping[str, Any], end: Mapping[str, object], *, now: float) -> dict[str, Any]:
    """Return the facts of a run whose latest start ends ``now``, in seconds since 1970."""
    starts = starts_of(facts)
    if starts:
        starts[-1] = starts[-1] | {"seconds": round(_since(starts[-1], now), 1), "end": dict(end)}
    return {**facts, "starts": starts, "wall_seconds": wall_seconds(starts)}


def closed(starts: Sequence[Start], metrics: Path) -> list[Start]:
    """Return the starts of a run that is opened again, with an end for the latest where it was killed."""
    result = [dict(start) for start in starts]
    if result and "end" not in result[-1]:
        try:
            last = read_rows(metrics)[-1]
        except (OSError, ValueError, IndexError):
            last = {}
        step, at = last.get("step"), last.get("time")
        spent = _since(result[-1], at) if isinstance(at, int | float) else 0.0
        done = step + 1 if isinstance(step, int) else 0
        end = {"reason": "killed", "step": done, "why": "it was killed"}
        result[-1] |= {"seconds": round(spent, 1), "end": end}
    return result


def starts_of(facts: Mapping[str, Any]) -> list[Start]:
    """Return the starts in run.json; [] where there are none that can be read."""
    starts = facts.get("starts")
    return [start for start in starts if isinstance(start, dict)] if isinstance(starts, list) else []


def wall_seconds(starts: Sequence[Mapping[str, Any]]) -> float:
    """Return the wall seconds of all starts that have ended.

    >>> wall_seconds([{"seconds": 2.5}, {}, {"seconds": 1}])
    3.5
    """
    known = [start.get("seconds") for start in starts]
    return round(sum(value for value in known if isinstance(value, int | float)), 1)


def time_words(starts: Sequence[Mapping[str, Any]]) -> str:
    """Return the wall time of all starts in words.

    >>> time_words([{"seconds": 90.0}]), time_words([{"seconds": 7200}, {"seconds": 30}])
    ('1.5 min of wall time', '2 h of wall time in 2 starts')
    """
    starts = [start for start in starts if "seconds" in start]
    times = f" in {len(starts)} starts" if len(starts) > 1 else ""
    return f"{duration(wall_seconds(starts))} of wall time{times}"


def ends_by(starts: Sequence[Mapping[str, Any]], reason: str) -> int:
    """Return how many starts ended for this reason."""
    ends = [start.get("end") for start in starts]
    return sum(isinstance(end, dict) and end.get("reason") == reason for end in ends)


def _since(start: Start, at: float) -> float:
    """Return the seconds from the time of a start, 0 where it cannot be read or lies later."""
    try:
        return max(at - datetime.fromisoformat(str(start.get("time"))).timestamp(), 0.0)
    except ValueError:
        return 0.0
