"""The sections of the eight questions with the ranked hypotheses, and of the collapse detectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from debate_rl.alarms import ANY, RUNS, STEPS, Reading, alarms
from debate_rl.alarms.settings import open_advice
from debate_rl.formatting import percent, short
from debate_rl.metrics.step_log import read_rows
from debate_rl.reports.cells import number_cell
from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table, Tone
from debate_rl.reports.training.hypotheses import Ranked, ranked
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.phases import NO_COLLAPSE
from debate_rl.reports.training.questions import QUESTIONS

ACTED = {
    "checkpoint": "had the run save its steps",
    "stop": "ended the run",
    "rollback": "asked for a rollback",
}
MOST_ACTED = 100
"""Alarms of a file that are listed."""
TONES: dict[str, Tone] = {"alarm": "bad", "quiet": "good"}


def questions_section(runs: Sequence[Run]) -> Section:
    """Return the section that answers Q1 to Q8 for each run, and ranks why it may have stalled."""
    parts: list[Part] = []
    for index, run in enumerate(runs):
        rows: list[tuple[Cell, ...]] = []
        for question in QUESTIONS:
            answer = question.answer(run)
            text = Cell(answer.text, behind=run.behind(question.filter))
            about = Cell(question.name), Cell(question.text)
            verdict = Cell(answer.word, tone=answer.tone)
            rows.append((*about, text, verdict, Cell(question.rule), Cell(question.source)))
        columns = ("", "question", "answer", "verdict", "threshold", "source")
        note = "The links lead to debates to look at. 'unknown': the run does not say."
        parts.append(
            Table(f"questions/{index + 1}", f"Eight questions: {run.name}", columns, tuple(rows), note)
        )
        parts.append(_hypotheses(run, index))
    return Section(
        "questions", "Diagnostic questions", tuple(parts), "eight questions with thresholds; why it may stall"
    )


def _hypotheses(run: Run, index: int) -> Table:
    rows = tuple(_hypothesis(item, run) for item in ranked(run))
    columns = ("hypothesis", "signs", "evidence", "what the source proposes", "source")
    note = (
        "If training stalled: the share of its signs (!) that the run shows ranks a hypothesis. A sign "
        "is not proof, and without signs nothing needs a fix."
    )
    return Table(f"hypotheses/{index + 1}", f"Hypotheses, ranked: {run.name}", columns, rows, note)


def _hypothesis(ranked: Ranked, run: Run) -> tuple[Cell, ...]:
    tone: Tone = "warn" if ranked.crossed else ""
    return (
        Cell(ranked.hypothesis.name, behind=run.behind(ranked.hypothesis.filter)),
        Cell(f"{ranked.crossed} of {ranked.known}", ranked.crossed, tone=tone),
        Cell(ranked.text),
        Cell(open_advice(run.settings, ranked.hypothesis.fix) if ranked.crossed else "-"),
        Cell(ranked.hypothesis.source),
    )


def alarms_section(runs: Sequence[Run]) -> Section:
    """Return the section of the detectors: first the alarms, then what each one says, with its rate."""
    parts: list[Part] = [
        Paragraph(
            f"Each detector was run on {RUNS:,} simulated healthy runs of {STEPS} steps; the share of "
            f"them in which it fired is given with it. In {percent(ANY / RUNS)} of them some detector fired. "
            "Sources without an address are unpublished notes on earlier runs."
        )
    ]
    for index, run in enumerate(runs):
        fired = alarms(run.readings)
        parts += [
            Paragraph(_sentence(reading, run), "bad", run.behind(_filter(reading))) for reading in fired
        ]
        if not fired:
            quiet = sum(reading.status == "quiet" for reading in run.readings)
            text = f"{run.name}: no alarm from {quiet} of {len(run.readings)} detectors"
            text += "." if quiet == len(run.readings) else "; the others lack steps or figures."
            parts.append(Paragraph(text, "good" if quiet == len(run.readings) else ""))
        parts += [Paragraph(line) for line in acted_lines(run)]
        parts.append(_table(run, index))
    return Section("alarms", "Signs of collapse", tuple(parts), _about(runs))


def acted_lines(run: Run) -> list[str]:
    """Return a line for each alarm that did more than warn while the run went on, from its alarms.jsonl."""
    lines: list[str] = []
    for name in ("alarms.superseded.jsonl", "alarms.jsonl"):
        for row in _rows(run.path / name)[:MOST_ACTED]:
            detector, action = row.get("detector"), row.get("action")
            if isinstance(detector, str) and isinstance(action, str) and action in ACTED:
                lines.append(f"{run.name}: {detector[:40]} {ACTED[action]} at step {row['step']}.")
    return list(dict.fromkeys(lines))


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        return read_rows(path) if path.is_file() else []
    except (OSError, ValueError):
        return []


def _about(runs: Sequence[Run]) -> str:
    """Return how many detectors fired, of those that have steps and figures enough to fire."""
    every = [reading for run in runs for reading in run.readings]
    able = [reading for reading in every if reading.able]
    which = "fired" if len(able) == len(every) else "that can fire yet"
    return f"{len(alarms(every))} of {len(able)} detectors {which}"


def _filter(reading: Reading) -> str:
    step = reading.alarm.step if reading.alarm else 0
    return reading.detector.debates.format(step=step)


def _sentence(reading: Reading, run: Run) -> str:
    alarm = reading.alarm
    assert alarm is not None
    kind = "A fault" if reading.detector.name in NO_COLLAPSE else "A sign of collapse"
    text = f"{run.name}: {kind} at step {alarm.step}: {alarm.why} ({reading.detector.name} "
    text += f"{short(alarm.value)}, threshold {short(alarm.threshold)}). "
    text += f"Proposed: {open_advice(run.settings, reading.detector.fix)}."
    return text


def _table(run: Run, index: int) -> Table:
    rows = tuple(_row(reading, run) for reading in run.readings)
    columns = ("detector", "state", "step", "value", "threshold", "fires when", "source")
    columns += ("false alarms a run",)
    note = "'too few steps': it cannot fire yet; 'no data': the run has none of its figures."
    return Table(f"alarms/{index + 1}", f"Detectors: {run.name}", columns, rows, note)


def _row(reading: Reading, run: Run) -> tuple[Cell, ...]:
    alarm, detector = reading.alarm, reading.detector
    step = Cell(f"{alarm.step}", alarm.step, run.behind(_filter(reading))) if alarm else number_cell(None)
    return (
        Cell(detector.name),
        Cell(reading.status, tone=TONES.get(reading.status, "")),
        step,
        number_cell(alarm.value if alarm else None),
        number_cell(alarm.threshold if alarm else None),
        Cell(detector.rule.replace("`", "")),
        Cell(detector.source),
        Cell(detector.false_alarms),
    )
