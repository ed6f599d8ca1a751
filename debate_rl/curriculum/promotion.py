"""Decide when a stage ends, and which stage follows, by an interval of a held-out figure.

The lower end decides on promotion, and the upper end on demotion.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from debate_rl.config.stages import StageConfig, TargetConfig
from debate_rl.curriculum.record import STAGES, End, Outcome, Visit
from debate_rl.formatting import counted, interval, share
from debate_rl.metrics.held_out import evaluations_of
from debate_rl.metrics.intervals import Estimate


def ended(visit: Visit, stage: StageConfig, steps: int, looked: Looked | None) -> Visit:
    """Return a visit with its outcome and the reason, after the last step of its run."""
    if stage.figure is None:
        return msgspec.structs.replace(visit, steps=steps, end="done", why=f"after {counted(steps, 'step')}")
    end: End = (looked.outcome if looked else None) or "limit"
    if looked is None:
        why = f"{stage.figure} has no value after {counted(steps, 'step')}, the limit"
        return msgspec.structs.replace(visit, steps=steps, end=end, why=why, figure=stage.figure)
    found, limit = looked.estimate, "" if looked.outcome else ", after max_steps"
    figures = {"figure": stage.figure, "value": found.value, "low": found.low, "high": found.high}
    return msgspec.structs.replace(visit, steps=steps, end=end, why=f"{looked.why}{limit}", **figures)


def after(visit: Visit, stages: tuple[StageConfig, ...]) -> tuple[int, str] | None:
    """Return the index of the next stage and the weights that it starts from.

    Return None if the curriculum is complete. After a demotion, the previous stage is visited again, from the
    weights that the demoted stage started from.
    """
    if visit.end == "demoted":
        return visit.stage - 1, visit.start
    stopped = visit.end == "limit" and stages[visit.stage].at_limit == "stop"
    if stopped or visit.stage + 1 == len(stages):
        return None
    return visit.stage + 1, f"{STAGES}/{visit.folder}@{visit.steps}"


def demotes(stage: int, visits: tuple[Visit, ...], stages: tuple[StageConfig, ...]) -> bool:
    """Return True if a new visit of a stage may end with a demotion."""
    before = sum(visit.stage == stage and visit.end == "demoted" for visit in visits)
    return stages[stage].demote_below is not None and before < stages[stage].demotions


class Looked(NamedTuple):
    """The comparison of an evaluation after ``steps`` steps with a target.

    If ``outcome`` is None, the stage continues.
    """

    target: TargetConfig
    steps: int
    estimate: Estimate
    outcome: Outcome | None

    @property
    def why(self) -> str:
        """The measured value with its interval, and its relation to the target, in words."""
        target, found = self.target, self.estimate
        bounds = interval(found.low, found.high, share, none="no interval")
        shown = f"{target.figure} {share(found.value)} ({bounds}) after {counted(self.steps, 'step')}"
        if self.outcome == "reached":
            return f"{shown}: the lower end is at the target {share(target.value)} or above"
        if self.outcome == "demoted":
            return f"{shown}: the upper end is below {share(target.demote_below or 0.0)}"
        return f"{shown}: the lower end is below the target {share(target.value)}"


def look_at(target: TargetConfig, held_out: Path, step: int) -> Looked | None:
    """Compare the held-out figure after ``step`` steps with a target. None without an evaluation."""
    head, _, rest = target.figure.partition("/")
    data, name = ("", target.figure) if head in ("direct", "debate", "judge") else (head, rest)
    found = [one for one in evaluations_of(held_out) if one.step == step and one.data == data]
    estimate = found[-1].estimate(name) if found else None
    if estimate is None:
        return None
    return Looked(target, step, estimate, outcome_of(target, estimate, step))


def outcome_of(target: TargetConfig, estimate: Estimate, step: int) -> Outcome | None:
    """Return "reached", "demoted", or None to continue, for an estimate after ``step`` steps.

    The target is "reached" if the lower end of the 95% interval is not below it. A stage is "demoted" if the
    upper end is below ``target.demote_below``. The stage continues before ``target.min_steps``, or if the
    figure has no interval.

    >>> target = TargetConfig(metric="direct/accuracy", value=0.6, min_steps=10, demote_below=0.2)
    >>> bounds = (0.7, 0.6, 0.8), (0.7, 0.59, 0.8), (0.1, 0.0, 0.19)
    >>> estimates = [Estimate(*three, 9, 9) for three in bounds]
    >>> [outcome_of(target, one, 10) for one in estimates], outcome_of(target, estimates[0], 9)
    (['reached', None, 'demoted'], None)
    """
    if step < target.min_steps:
        return None
    if estimate.low >= target.value:
        return "reached"
    return "demoted" if target.demote_below is not None and estimate.high < target.demote_below else None
