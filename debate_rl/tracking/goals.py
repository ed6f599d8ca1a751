"""Whether the held-out figures of a run say that a stage of a curriculum is over."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from debate_rl.config.stages import GoalConfig
from debate_rl.formatting import counted, interval, share
from debate_rl.metrics.held_out import evaluations_of
from debate_rl.metrics.intervals import Estimate

Outcome: TypeAlias = Literal["reached", "demoted"]


class Looked(NamedTuple):
    """What an evaluation says of a goal after so many steps; ``outcome`` None: go on."""

    goal: GoalConfig
    steps: int
    estimate: Estimate
    outcome: Outcome | None

    @property
    def why(self) -> str:
        """The figure with its interval, and what it means, in words."""
        goal, found = self.goal, self.estimate
        bounds = interval(found.low, found.high, share, none="no interval")
        shown = f"{goal.figure} {share(found.value)} ({bounds}) after {counted(self.steps, 'step')}"
        if self.outcome == "reached":
            return f"{shown}: the lower end is at the target {share(goal.target)} or above"
        if self.outcome == "demoted":
            return f"{shown}: the upper end is below {share(goal.demote_below or 0.0)}"
        return f"{shown}: the lower end is below the target {share(goal.target)}"


def look_at(goal: GoalConfig, held_out: Path, step: int) -> Looked | None:
    """Return what a run's held-out file says after so many steps; None without an evaluation there.

    Reached: the lower end of the 95% interval is at the target or above. Demoted: the upper end is below
    ``goal.demote_below``. A figure without an interval says neither.
    """
    head, _, rest = goal.figure.partition("/")
    data, name = ("", goal.figure) if head in ("direct", "debate", "judge") else (head, rest)
    found = [one for one in evaluations_of(held_out) if one.step == step and one.data == data]
    estimate = found[-1].estimate(name) if found else None
    if estimate is None:
        return None
    return Looked(goal, step, estimate, outcome_of(goal, estimate, step))


def outcome_of(goal: GoalConfig, estimate: Estimate, step: int) -> Outcome | None:
    """Return what an estimate means after so many steps.

    >>> goal = GoalConfig(figure="direct/accuracy", target=0.6, min_steps=10, demote_below=0.2)
    >>> bounds = (0.7, 0.6, 0.8), (0.7, 0.59, 0.8), (0.1, 0.0, 0.19)
    >>> estimates = [Estimate(*three, 9, 9) for three in bounds]
    >>> [outcome_of(goal, one, 10) for one in estimates], outcome_of(goal, estimates[0], 9)
    (['reached', None, 'demoted'], None)
    """
    if step < goal.min_steps:
        return None
    if estimate.low >= goal.target:
        return "reached"
    return "demoted" if goal.demote_below is not None and estimate.high < goal.demote_below else None
