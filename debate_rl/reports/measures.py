"""Numbers of a whole run: how figures changed, how votes and texts did, and what that makes of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import inf
from statistics import fmean
from time import time
from typing import Any, NamedTuple

import numpy as np

from debate_rl.alarms import alarms
from debate_rl.formatting import counted, short
from debate_rl.metrics import intervals
from debate_rl.metrics.held_out import Gain, gain
from debate_rl.metrics.intervals import Bounded, Numbers, apart, thirds
from debate_rl.reports.document import Tone, bounded, bounds_text
from debate_rl.reports.figures import accuracy_figures, cascade_figures, winner_figures
from debate_rl.reports.findings import KINDS, LEVEL, chance
from debate_rl.reports.run import Run
from debate_rl.runs.folder import ends_by, starts_of, time_words

LEAST = 12
"""Values below which a change is not judged: four in each third."""
BLOCKS = 6
LEAST_PROBLEMS, MOST_PROBLEMS = 5, 200
"""Problems that must be met early and late, and at most are looked at."""
PROGRESS = {
    "accuracy": "accuracy",
    "reward/truth/mean": "the mean truth reward",
    "judge/accuracy": "judge accuracy",
}
"""The figures that show progress, of which the first known counts, with their names in sentences."""
NO_COLLAPSE = ("mismatch", "stall", "held_out", "format_only", "grader_drift", "hack_gap")
"""Detectors whose alarm is a fault, and not yet a collapse of the policy."""
GOING_S = 600.0
ENDED = ("target", "hours", "alarm", "error")
"""Reasons for which a start ends with steps left, as run.json has them."""


@dataclass(frozen=True, slots=True)
class Change:
    """Means of the first, middle and last third, and last less first with its 95% interval.

    With fewer than 12 values the bounds are infinite; ``p``: that nothing changed.
    """

    early: float
    middle: float
    late: float
    low: float
    high: float
    n: int
    p: float = 1.0

    @property
    def value(self) -> float:
        """The last third less the first."""
        return self.late - self.early

    @property
    def gain(self) -> Bounded:
        """The last third less the first, with its interval."""
        return self.value, self.low, self.high

    @property
    def direction(self) -> str:
        """One of "up", "down", "flat", "too few steps": up and down as sure as a finding has to be."""
        if self.n < LEAST:
            return "too few steps"
        return "flat" if self.p > LEVEL else "up" if self.value > 0 else "down"


@np.errstate(over="ignore", invalid="ignore")  # figures of a foreign file may be of any size
def change(values: Numbers) -> Change | None:
    """Return the change over values in the order of the steps; None of nothing.

    The interval is Welch's on means of up to 6 blocks of neighbouring steps in each third.
    """
    if not len(values):
        return None
    early, middle, late = thirds(values)
    found = None
    if len(values) >= LEAST:
        after, before = (
            np.array([part.mean() for part in np.array_split(third, min(BLOCKS, len(third)))])
            for third in (late, early)
        )
        order = np.arange(len(after) + len(before))
        found = intervals.difference(np.concatenate([after, before]), order < len(after), order)
    low, high, p = (found.low, found.high, chance(found)) if found else (-inf, inf, 1.0)
    return Change(float(early.mean()), float(middle.mean()), float(late.mean()), low, high, len(values), p)


def change_of(run: Run, name: str) -> Change | None:
    """Return how a figure of a run changed; None of one that is not known."""
    return change(run.curves.of(name)[1])


def evaluations(run: Run, name: str) -> list[tuple[int, Bounded]]:
    """Return (steps learnt from, (value, low, high)) of each held-out evaluation: metrics.jsonl names it.

    They are those that can be compared by problem, or else those of metrics.jsonl.
    """
    kept = [(one.step, bounded(one.estimate(name.removeprefix("eval/")))) for one in run.held_out]
    if any(found for _, found in kept):
        return [(step, found) for step, found in kept if found is not None]
    steps, values = run.curves.of(name)
    known = zip(values.tolist(), *(ends.tolist() for ends in run.curves.bounds(name)), strict=True)
    return list(zip((steps + 1).tolist(), known, strict=True))


def gained(run: Run, name: str) -> Bounded | None:
    """Return the last evaluation less the first, paired by problem where that can be; None of one."""
    evaluated = evaluations(run, name)
    if len(evaluated) < 2:
        return None
    found = paired(run, name)
    return bounded(found.difference) if found else apart(evaluated[-1][1], evaluated[0][1])


def paired(run: Run, name: str) -> Gain | None:
    """Return the gain over the problems with a value in the first and the last evaluation; None of none."""
    if len(run.held_out) < 2:
        return None
    return gain(run.held_out[0], run.held_out[-1], name.removeprefix("eval/"))


class JudgeFigures(NamedTuple):
    """Right votes on decidable pairs, its interval in words; winner against right; first-listed excess.

    ``follows``: is what agents take over from the first shown of a size and a number that matter?
    """

    accuracy: float | None
    bounds: str
    correlation: float | None
    followed: float | None
    follows: bool


def judge_figures(run: Run) -> JudgeFigures:
    """Return the figures of the sample; the accuracy is that of all steps where metrics.jsonl has it."""
    study = run.sample.study if run.sample else None
    figures = (
        chain(accuracy_figures(study), winner_figures(study), cascade_figures(study))
        if study is not None and len(study.debates)
        else ()
    )
    found = {figure.name: figure.estimate for figure in figures}
    right, first, linked = (
        found.get(name) for name in ("judge/accuracy", "cascade/first_listed", "winner/correlation")
    )
    share, count = run.curves.dense("judge/accuracy"), run.curves.dense("judge/decidable_votes")
    known = np.isfinite(share) & np.isfinite(count)
    total, least = float(count[known].sum()), KINDS["cascade/first_listed"]
    of_steps = float((share * count)[known].sum()) / total if total else None
    return JudgeFigures(
        of_steps if of_steps is not None else right.value if right else None,
        bounds_text(right.low, right.high) if right else "",
        linked.value if linked else None,
        first.value if first else None,
        first is not None and first.n >= least.cases and first.value >= least.size and first.low > 0,
    )


def changed_outputs(run: Run) -> tuple[float, float, int] | None:
    """Return the mean distance of texts of a problem, early to late and among early ones, and the problems.

    None with fewer than 5 problems met in the first and the last third.
    """
    if run.sample is None or run.stored is None:
        return None
    first, _, last = thirds(range(run.stored[0], run.stored[1] + 1))
    between: list[float] = []
    before: list[float] = []
    for texts in run.sample.texts.values():
        early, late = (
            [frozenset(text.split()) for step, text in texts if step in part][:4] for part in (first, last)
        )
        if len(early) > 1 and late and len(between) < MOST_PROBLEMS:
            between.append(_mean_distance(product(early, late)))
            before.append(_mean_distance(combinations(early, 2)))
    return (fmean(between), fmean(before), len(between)) if len(between) >= LEAST_PROBLEMS else None


def _mean_distance(pairs: Iterable[Sequence[frozenset[str]]]) -> float:
    """Return the mean over pairs of sets of words of 1 - Jaccard's index, 0 for two empty ones."""
    return fmean(1 - len(one & other) / len(one | other) if one | other else 0.0 for one, other in pairs)


def progress(run: Run) -> tuple[str, Change | None]:
    """Return the figure that shows progress, and its change."""
    for name in PROGRESS:
        if moved := change_of(run, name):
            return name, moved
    return "accuracy", None


def verdict(run: Run) -> tuple[str, Tone, str]:
    """Return what a run is by the rule of docs/report.md: in a word, how to take it, and why."""
    name, moved = progress(run)
    text = ""
    if moved is not None:
        bounds = bounds_text(moved.low, moved.high)
        parts = f"first and last third of {moved.n} steps{', difference' + bounds if bounds else ''}"
        text = f"{PROGRESS[name]} went from {short(moved.early)} to {short(moved.late)} ({parts})"
    fired = [reading for reading in alarms(run.readings) if reading.detector.name not in NO_COLLAPSE]
    if fired and fired[0].alarm is not None:
        names, first = ", ".join(dict.fromkeys(one.detector.name for one in fired)), fired[0].alarm
        sentence = f"Signs of collapse from step {first.step} on: {first.why} (alarms: {names})"
        if moved is None:
            return "signs of collapse", "bad", f"{sentence}."
        if moved.direction == "up":
            return "learning, with alarms", "warn", f"{sentence}; {text}."
        fell = moved.direction == "down" or (moved.n >= LEAST and moved.late < moved.early / 2)
        return "collapsed" if fell else "signs of collapse", "bad", f"{sentence}; {text}."
    if moved is None:
        return "no figures", "warn", "No figure shows progress."
    verdicts: dict[str, tuple[str, Tone, str]] = {
        "up": ("learning", "good", f"No alarm; {text}."),
        "flat": ("not learning", "warn", f"No alarm, and no change that stands out from noise: {text}."),
        "down": ("getting worse", "bad", f"No alarm, but {text}."),
    }
    few = f"Of training alone {moved.n} steps tell nothing yet (from {LEAST} on); {text}."
    return verdicts.get(moved.direction, ("too few steps", "", few))


def status(run: Run, now: float | None = None) -> str:
    """Return "finished", "still going" or "stopped", by the configured steps and the last line's time."""
    wanted, steps, times = run.setting("train.steps", int), run.curves.steps, run.curves.of("time")[1]
    reason = last_end(run).get("reason")
    if not len(steps):
        return "nothing done"
    if reason in ENDED or wanted is None:
        return f"ended: {reason}" if reason in ENDED else "unknown"
    if int(steps[-1]) + 1 >= wanted:
        return "finished"
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    quiet = (time() if now is None else now) - float(times[-1]) if len(times) else inf
    return "still going" if quiet < max(GOING_S, 5 * usual) else "stopped"


def last_end(run: Run) -> Mapping[str, Any]:
    """Return how the latest start of a run ended, as run.json has it; {} where it does not say."""
    starts = starts_of(run.info)
    end = starts[-1].get("end") if starts else None
    return end if isinstance(end, dict) and isinstance(end.get("reason"), str) else {}


def ended_line(run: Run) -> str:
    """Return a line of how the latest start of a run ended, and its wall time; "" where nothing says it."""
    starts, end = starts_of(run.info), last_end(run)
    count = ends_by(starts, "rollback")
    back = f" {counted(count, 'rollback')} before." if count else ""
    why = f"{run.name}: ended ({end.get('reason')}): {str(end.get('why'))[:300]}"
    return f"{why}; {time_words(starts)}.{back}" if end else ""
