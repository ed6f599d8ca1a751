"""When a run ends, and how it is kept why: steps, target, time, an alarm, a signal, an error."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Literal, TypeAlias

from debate_rl.formatting import counted, duration
from debate_rl.runs.folder import RunFolderError, wall_seconds
from debate_rl.tracking.goals import look_at
from debate_rl.training.stops import Stopped

if TYPE_CHECKING:
    from debate_rl.training.session import Session

Reason: TypeAlias = Literal["steps", "target", "goal", "hours", "alarm", "rollback", "signal", "error"]
HOUR_S = 3600.0
BY_ALARM: tuple[Reason, ...] = ("alarm", "rollback")
"""Reasons for which a command's exit code is 1: the run has steps to do."""


@dataclass(frozen=True, slots=True)
class End:
    """Why the steps of a run ended, in a word and a sentence. ``back_to``: what a rollback keeps of them."""

    reason: Reason
    why: str
    back_to: int | None = None


class Limits:
    """The goal, the target and the hours of a run; hours count all its starts, each with its loading."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._spent = wall_seconds(session.folder.starts) + time.monotonic() - session.began
        self._since = session.clock()

    def end_of(self, figures: Mapping[str, float]) -> End | None:
        """Return why the run is at its end, given the held-out figures of this step; None where it is not."""
        return self._by_goal() or self._by_target(figures) or self._by_hours()

    def _by_goal(self) -> End | None:
        """Look at the goal of a stage in the held-out file: a run that resumes sees what is kept there."""
        session, goal = self._session, self._session.config.goal
        looked = None if goal is None else look_at(goal, session.folder.held_out, session.step)
        if looked is None or looked.outcome is None:
            return None
        return End("goal", looked.why)

    def _by_target(self, figures: Mapping[str, float]) -> End | None:
        target = self._session.config.train.target
        if target is None:
            return None
        low = figures.get(f"{target.metric}/low", nan)
        if not low >= target.value:
            return None
        value = figures.get(target.metric, nan)
        shown = f"{target.metric} is {value:.3f}, its interval from {low:.3f}"
        return End("target", f"{shown} on, at or above train.target.value = {target.value:g}")

    def _by_hours(self) -> End | None:
        hours = self._session.config.train.hours
        spent = self._spent + self._session.clock() - self._since
        if hours is None or spent < hours * HOUR_S:
            return None
        return End("hours", f"{duration(spent)} are spent, of train.hours = {hours:g}")


def all_done(session: Session) -> End:
    """Return the end of a run that did all its steps."""
    return End("steps", f"{counted(session.config.train.steps, 'step')} done, as many as train.steps")


@contextmanager
def end_recorded(session: Session) -> Iterator[None]:
    """Write into run.json why the block ended: ``session.end``, or what was raised in it."""
    try:
        yield
    except BaseException as error:
        reason: Reason = "signal" if isinstance(error, Stopped) else "error"
        with suppress(RunFolderError):  # such as of a disk that is full: what was raised says more
            _record(session, End(reason, f"{type(error).__name__}: {error}"[:300]))
        raise
    _record(session, session.end or all_done(session))


def _record(session: Session, end: End) -> None:
    session.end = end
    more = {} if end.back_to is None else {"back_to": end.back_to}
    session.folder.record_end(end.reason, step=session.step, why=end.why, **more)
