"""Early, middle and late: how the figures of a run moved, and what that makes of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import time
from typing import Any, cast

import numpy as np

from debate_rl.alarms import alarms
from debate_rl.formatting import counted, short, title
from debate_rl.metrics.intervals import holm
from debate_rl.reports.cells import bounds_text, interval_cell, number_cell
from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table, Tone
from debate_rl.reports.findings import LEVEL
from debate_rl.reports.training.aspects import aspects_table
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.measures import LEAST, Change, change
from debate_rl.runs.ending import ends_by, starts_of, time_words

FIGURES = (
    *("accuracy", "winner/accuracy", "reward/truth/mean", "reward/judge/mean", "reward/peer/std"),
    *("judge/accuracy", "format/valid", "loss", "sample/logprob", "entropy_mean", "kl_mean"),
    *("ratio_mean", "grad_norm", "tokens/completion"),
)
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
class Verdict:
    """What a run is, in a word of docs/training_report.md, and why."""

    word: str
    tone: Tone
    sentence: str


def verdict(run: Run) -> Verdict:
    """Return the verdict by the rule of docs/training_report.md."""
    name, moved = progress(run)
    fired = [reading for reading in alarms(run.readings) if reading.detector.name not in NO_COLLAPSE]
    if fired and fired[0].alarm is not None:
        names = ", ".join(dict.fromkeys(reading.detector.name for reading in fired))
        first = fired[0].alarm
        sentence = f"Signs of collapse from step {first.step} on: {first.why} (alarms: {names})"
        return _with_alarms(sentence, name, moved)
    if moved is None:
        return Verdict("no figures", "warn", "No figure shows progress.")
    change_text = _moved(name, moved)
    few = f"Of training alone {moved.n} steps tell nothing yet (from {LEAST} on); {change_text}."
    return {
        "up": Verdict("learning", "good", f"No alarm; {change_text}."),
        "flat": Verdict(
            "not learning",
            "warn",
            f"No alarm, and no change that stands out from noise: {change_text}.",
        ),
        "down": Verdict("getting worse", "bad", f"No alarm, but {change_text}."),
        "too few steps": Verdict("too few steps", "", few),
    }[moved.direction]


def _with_alarms(sentence: str, name: str, moved: Change | None) -> Verdict:
    """Return the verdict of a run with an alarm: by whether its figure rose, fell, or did neither."""
    if moved is None:
        return Verdict("signs of collapse", "bad", f"{sentence}.")
    sentence = f"{sentence}; {_moved(name, moved)}."
    if moved.direction == "up":
        return Verdict("learning, with alarms", "warn", sentence)
    fell = moved.direction == "down" or (moved.n >= LEAST and moved.late < moved.early / 2)
    return Verdict("collapsed" if fell else "signs of collapse", "bad", sentence)


def _moved(name: str, moved: Change) -> str:
    bounds = bounds_text(moved.low, moved.high)
    thirds = f"first and last third of {moved.n} steps{', difference' + bounds if bounds else ''}"
    return f"{PROGRESS[name]} went from {short(moved.early)} to {short(moved.late)} ({thirds})"


def progress(run: Run) -> tuple[str, Change | None]:
    """Return the figure that shows progress, and its change."""
    for name in PROGRESS:
        if moved := change(run.curves.of(name)[1]):
            return name, moved
    return "accuracy", None


def status(run: Run, now: float | None = None) -> str:
    """Return "finished", "still going" or "stopped", by the configured steps and the last line's time."""
    wanted, last = run.setting("train.steps", int), run.curves.steps
    if not len(last):
        return "nothing done"
    if (end := last_end(run)) and end["reason"] in ENDED:
        return f"ended: {end['reason']}"
    if wanted is None:
        return "unknown"
    if int(last[-1]) + 1 >= wanted:
        return "finished"
    times = run.curves.of("time")[1]
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    quiet = (time() if now is None else now) - float(times[-1]) if len(times) else float("inf")
    return "still going" if quiet < max(GOING_S, 5 * usual) else "stopped"


def last_end(run: Run) -> Mapping[str, Any]:
    """Return how the latest start of a run ended, as run.json has it; {} where it does not say."""
    starts = starts_of(run.info)
    end = starts[-1].get("end") if starts else None
    kept = cast("dict[str, Any]", end) if isinstance(end, dict) else {}
    return kept if isinstance(kept.get("reason"), str) else {}


def ended_line(run: Run) -> str:
    """Return a line of how each start of a run ended, and its wall time; "" where run.json does not say."""
    starts = starts_of(run.info)
    if not (end := last_end(run)):
        return ""
    back = f" {counted(count, 'rollback')} before." if (count := ends_by(starts, "rollback")) else ""
    return f"{run.name}: ended ({end['reason']}): {str(end.get('why'))[:300]}; {time_words(starts)}.{back}"


def overview_section(runs: Sequence[Run]) -> Section:
    """Return the section that names the runs, their state, their verdict and what is missing."""
    rows = tuple(_row(run) for run in runs)
    columns = ("run", "steps", "status", "verdict", "progress", "first third", "last third")
    columns += ("difference", "best at step")
    note = "'First' and 'last third' are of the figure under 'progress'."
    parts: list[Part] = [Table("runs/table", "Runs", columns, rows, note)]
    for run in runs:
        result = verdict(run)
        parts.append(Paragraph(f"{run.name}: {result.sentence}", result.tone, run.behind()))
        if line := ended_line(run):
            parts.append(Paragraph(line))
    parts += [Paragraph(f"{run.name}: {note}", "warn") for run in runs for note in run.notes]
    words = "; ".join(verdict(run).word for run in runs)
    return Section(
        "runs", "How training went", tuple(parts), f"runs and verdicts, of training alone: {words}"
    )


def _row(run: Run) -> tuple[Cell, ...]:
    from debate_rl.reports.training.finals import best_step

    result, (name, moved), best = verdict(run), progress(run), best_step(run)
    cells = (
        (number_cell(moved.early), number_cell(moved.late), interval_cell(moved.value, moved.low, moved.high))
        if moved
        else (number_cell(None),) * 3
    )
    wanted = run.setting("train.steps", int)
    steps = f"{run.steps} of {wanted}" if wanted is not None else f"{run.steps}"
    return (
        Cell(run.name, behind=run.behind()),
        Cell(steps, run.steps),
        Cell(status(run)),
        Cell(result.word, tone=result.tone),
        Cell(name if moved else "-"),
        *cells,
        Cell(f"{best[1]}", best[1]) if best else number_cell(None),
    )


def _phase(name: str, moved: Change) -> tuple[Cell, ...]:
    means = (number_cell(mean) for mean in (moved.early, moved.middle, moved.late))
    return (
        Cell(title(name)),
        *means,
        interval_cell(moved.value, moved.low, moved.high),
        Cell(moved.direction),
    )


def phases_section(runs: Sequence[Run]) -> Section:
    """Return the section with the means of the first, middle and last third of each figure."""
    parts: list[Part] = []
    for index, run in enumerate(runs):
        changes = {name: moved for name in FIGURES if (moved := change(run.curves.of(name)[1])) is not None}
        adjusted = holm([moved.p for moved in changes.values()])
        rows = (
            _phase(name, replace(moved, p=p))
            for (name, moved), p in zip(changes.items(), adjusted, strict=True)
        )
        columns = ("figure", "early", "middle", "late", "late less early", "direction")
        note = (
            "Thirds of the steps that have a value. The interval is Welch's on means of neighbouring steps. "
            f"A figure went up or down where its p, adjusted for all of this table, is {LEVEL} or less."
        )
        parts.append(Table(f"phases/{index + 1}", f"Phases: {run.name}", columns, tuple(rows), note))
        parts.append(aspects_table(run, index))
        result = verdict(run)
        parts.append(Paragraph(f"{run.name}: {result.word}. {result.sentence}", result.tone, run.behind()))
    return Section(
        "phases", "Early, middle, late", tuple(parts), "means of each third of the steps, and how they differ"
    )
