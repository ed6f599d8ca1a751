"""The training sections of a report: verdicts, alarms, final figures, causes, phases and settings.

A report needs only metrics.jsonl or transcripts, and names missing parts. docs/report.md has the rules with
their sources, tables.toml the texts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import comb
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from debate_rl.alarms import ANY, RUNS, STEPS, Reading, alarms
from debate_rl.alarms.settings import open_advice, risky
from debate_rl.formatting import counted, percent, printable, short, title
from debate_rl.metrics.held_out import DIRECT, HeldOut, on_problems
from debate_rl.metrics.intervals import Bounded, Estimate, Numbered, apart, holm, mean, ratio
from debate_rl.reports.charts import curves_section, distributions_section, expanded
from debate_rl.reports.diagnosis import NO_COLLAPSE, ended_line, progress, questions_section, status, verdict
from debate_rl.reports.document import (
    Cell,
    Paragraph,
    Part,
    Rows,
    Section,
    bounded,
    row,
    section_of,
    table_of,
)
from debate_rl.reports.figures import TABLES
from debate_rl.reports.findings import LEVEL
from debate_rl.reports.run import MOST_WRONG, TEST_TIME, Run, WrongSolution
from debate_rl.sampling.difficulty import BANDS
from envs.causes.rules import CAUSES

HELD_OUT = expanded(TABLES["figures"]["held_out"])
EXAMPLES, LONGEST = 3, 120
"""Number of examples of each cause, and maximum characters of their texts."""
MOST_KEYS, LONGEST_SETTING = 1000, 160
APART = ("run.dir", "run.allow_changes")
"""Keys that are not compared between runs: the location of a run."""
MOST_SAMPLES = 1000
"""Maximum number of samples of a problem that is split into strata."""


def sections_of(runs: Sequence[Run]) -> list[Section]:
    """Return the training sections on one or several runs, in the order of the report."""
    sections = (
        overview_section,
        alarms_section,
        questions_section,
        finals_section,
        causes_section,
        phases_section,
        settings_section,
        curves_section,
        distributions_section,
    )
    with np.errstate(all="ignore"):  # a foreign file may contain huge numbers
        return [section(runs) for section in sections]


def overview_section(runs: Sequence[Run]) -> Section:
    """Return the section with the runs' names, states, verdicts and missing parts."""
    rows, said, words = list[tuple[Cell, ...]](), list[Part](), list[str]()
    for run in runs:
        word, tone, sentence = verdict(run)
        (name, moved), best, wanted = progress(run), best_step(run), run.setting("train.steps", int)
        steps = len(run.curves.steps)
        rows.append(
            row(
                Cell(run.name, behind=run.behind()),
                Cell(f"{steps} of {wanted}" if wanted is not None else f"{steps}", steps),
                status(run),
                Cell(word, tone=tone),
                name if moved else "-",
                *((moved.early, moved.late, moved.gain) if moved else (None, None, None)),
                Cell(f"{best[1]}", best[1]) if best else None,
            )
        )
        words.append(word)
        said.append(Paragraph(f"{run.name}: {sentence}", tone, run.behind()))
        said += [Paragraph(line)] if (line := ended_line(run)) else []
    notes = [Paragraph(f"{run.name}: {note}", "warn") for run in runs for note in run.notes]
    return section_of("runs", (table_of("runs/table", rows), *said, *notes), words="; ".join(words))


def best_step(run: Run) -> tuple[str, int, float] | None:
    """Return the figure of train.keep_best, the step with its highest value, and the value."""
    name = run.setting("train.keep_best", str) or "eval/debate/winner/accuracy"
    steps, values = run.curves.of(name)
    if not len(values):
        return None
    best = int(values.argmax())
    return name, int(steps[best]), float(values[best])


def alarms_section(runs: Sequence[Run]) -> Section:
    """Return the section with alarms, then the reading and the false-alarm rate of each detector."""
    text = (
        f"False-alarm rates are from {RUNS:,} simulated healthy runs of {STEPS} steps. In "
        f"{percent(ANY / RUNS)} of these runs, at least one detector fired. "
        "Sources without an address are unpublished notes on earlier runs."
    )
    parts: list[Part] = [Paragraph(text)]
    for run in runs:
        for reading in alarms(run.readings):
            alarm, name = reading.alarm, reading.detector.name
            assert alarm is not None
            kind = "A fault" if name in NO_COLLAPSE else "A sign of collapse"
            fix = open_advice(run.settings, reading.detector.fix)
            text = (
                f"{run.name}: {kind} at step {alarm.step}: {alarm.why} ({name} {short(alarm.value)}, "
                f"threshold {short(alarm.threshold)}). Proposed: {fix}."
            )
            parts.append(Paragraph(text, "bad", run.behind(debates_of(reading))))
        if not alarms(run.readings):
            quiet = sum(reading.status == "quiet" for reading in run.readings)
            every = quiet == len(run.readings)
            text = f"{run.name}: no alarm from {quiet} of {len(run.readings)} detectors"
            text += "." if every else "; the other detectors lack steps or figures."
            parts.append(Paragraph(text, "good" if every else ""))
        parts.append(run.table("alarms/{at}", (_reading(reading, run) for reading in run.readings)))
    every_one = [reading for run in runs for reading in run.readings]
    able = sum(reading.able for reading in every_one)
    which = "fired" if able == len(every_one) else "with enough data fired"
    return section_of("alarms", parts, fired=len(alarms(every_one)), able=able, which=which)


def debates_of(reading: Reading) -> str:
    """Return the filter for the debates of an alarm."""
    return reading.detector.debates.format(step=reading.alarm.step if reading.alarm else 0)


def _reading(reading: Reading, run: Run) -> tuple[Cell, ...]:
    alarm, detector, state, found = reading.alarm, reading.detector, reading.status, (None, None, None)
    if alarm is not None:
        step = Cell(f"{alarm.step}", alarm.step, run.behind(debates_of(reading)))
        found = step, alarm.value, alarm.threshold
    status = Cell(state, tone="bad" if alarm else "good" if state == "quiet" else "")
    rule = detector.rule.replace("`", "")
    return row(detector.name, status, *found, rule, detector.source, detector.false_alarms)


def finals_section(runs: Sequence[Run]) -> Section:
    """Return the section with held-out figures (first, highest, last, gain) and a comparison of runs."""
    parts: list[Part] = []
    for run in runs:
        known = {name: found for name in HELD_OUT if (found := run.evaluated(name))}
        steps = sorted({step for found in known.values() for step, _ in found})
        rows = [_final(run, name, dict(found), steps) for name, found in known.items()]
        if rows:
            parts.append(run.table("final/{at}", rows, note=_final_note(run)))
        else:
            text = "no held-out evaluation during training, so accuracy on other problems is unknown."
            parts.append(Paragraph(f"{run.name}: {text}", "warn"))
        if found := strata(run.held_out[0], run.held_out[-1]) if len(run.held_out) > 1 else []:
            rows = [row(*one[:4], bounded(one.gain)) for one in found]
            first, last = (counted(one.step, "step") for one in (run.held_out[0], run.held_out[-1]))
            parts.append(run.table("final/{at}/strata", rows, first=first, last=last))
        if run.evaluations:  # outside of training
            shown = ("direct/accuracy", "direct/self_consistency", "debate/winner/accuracy", "judge/accuracy")
            names = [name for name in shown if any(name in of for of in run.evaluations.values())]
            rows = [row(label, *map(of.get, names)) for label, of in run.evaluations.items()]
            parts.append(run.table("final/{at}/apart", rows, *map(title, names)))
    return section_of("final", [*parts, *([_compared(runs)] if len(runs) > 1 else [])])


def _final(run: Run, name: str, by_step: dict[int, Bounded], steps: Sequence[int]) -> tuple[Cell, ...]:
    """Return the row of a figure, with "-" if the first or the last evaluation lacks a value."""
    top = max(by_step, key=lambda step: by_step[step][0])
    first, last, less = by_step.get(steps[0]), by_step.get(steps[-1]), run.gained(name)
    gain = less if less and first and last else "one evaluation"
    return row(title(name), first, by_step[top], Cell(f"{top}", top), last, gain)


def _final_note(run: Run) -> str:
    said, best, count = TABLES["final_note"], best_step(run), run.curves.of("eval/problems")[1]
    gains = {title(name): found for name in HELD_OUT if (found := run.paired(name)) is not None}
    parts = [f"{int(count[-1])} problems."] if len(count) else []
    parts.append(said["paired" if gains else "apart"])
    for name, found in gains.items():
        parts += [said["of_some"].format(name=name, problems=on_problems(found))] if found.left_out else []
    parts += [said["test_time"]] if run.setting(TEST_TIME[0]) == TEST_TIME[1] else []
    parts.append(said["highest"])
    parts += [said["best"].format(name=best[0], after=best[1] + 1, step=best[1])] if best else []
    return " ".join(parts)


class Stratum(NamedTuple):
    """Problems with similar pass rates: their expected number, first and last pass rate, and gain."""

    name: str
    problems: float
    before: float
    after: float
    gain: Estimate


def strata(first: HeldOut, last: HeldOut, figure: str = DIRECT) -> list[Stratum]:
    """Return the gain on problems by their first pass rate, without regression to the mean.

    A problem with lucky first samples is less lucky later, even without learning. Therefore, one half of its
    first samples decides its stratum, and the other half gives its first pass rate. The number of right
    samples in a half is hypergeometric, and every split counts with its probability. Problems with fewer than
    two first samples are left out.
    """
    parts: dict[str, list[tuple[int, float, float, float]]] = {name: [] for _, name in BANDS}
    before, after = first.figures.get(figure, {}), last.means(figure)
    for problem, (id, (right, count)) in enumerate(before.items()):
        same = id in after and first.problems.get(id) == last.problems.get(id)
        if same and 2 <= count <= MOST_SAMPLES and right == round(right) and 0 <= right <= count:
            for weight, rate, other in splits(round(right), count):
                band = next(name for most, name in BANDS if rate <= most)
                parts[band].append((problem, weight, other, after[id]))
    found: list[Stratum] = []
    for name, rows in parts.items():
        if rows:
            problems, weights, old, new = map(np.array, zip(*rows, strict=True))
            gain, total = ratio(weights * (new - old), weights, problems, signed=True), float(weights.sum())
            assert gain is not None  # every split has a positive probability
            found.append(
                Stratum(name, total, float(weights @ old) / total, float(weights @ new) / total, gain)
            )
    return found


def splits(right: int, count: int) -> list[tuple[float, float, float]]:
    """Return each split of a problem's samples into halves: its probability and both pass rates."""
    half = count // 2
    rest = count - half
    return [
        (comb(right, n) * comb(count - right, half - n) / comb(count, half), n / half, (right - n) / rest)
        for n in range(max(0, right - rest), min(right, half) + 1)
    ]


def _compared(runs: Sequence[Run]) -> Part:
    rows: list[tuple[Cell, ...]] = []
    for name in HELD_OUT:
        last = [evaluated[-1][1] if (evaluated := run.evaluated(name)) else None for run in runs]
        if sum(bounded is not None for bounded in last) > 1:
            base = last[0]
            gains = (apart(bounded, base) if bounded and base else None for bounded in last[1:])
            rows.append(row(title(name), *last, *gains))
    if not rows:
        return Paragraph("Fewer than two runs have held-out figures to compare.", "warn")
    names = [run.name for run in runs]
    return table_of("final/beside", rows, *names, *(f"{name} minus {names[0]}" for name in names[1:]))


def causes_section(runs: Sequence[Run]) -> Section:
    """Return the section with the causes of wrong solutions, early and late, and examples."""
    parts: list[Part] = []
    for run in runs:
        wrong = run.sample.wrong if run.sample else []
        if not wrong:
            text = f"{run.name}: no wrong solution in the debates that were read."
            parts.append(Paragraph(text, "warn"))
            continue
        spans = [run.thirds[0], run.thirds[-1]] if len(run.thirds) > 1 else []
        of_span = [[one for one in wrong if first <= one.step <= last] for _, first, last in spans]
        rows: list[tuple[Cell, ...]] = []
        for cause in CAUSES:
            count = sum(one.cause == cause for one in wrong)
            found = Cell(f"{count:,}", count, run.behind(f"cause:{cause}") if count else None)
            shares: list[Bounded | None] = []
            for some in (wrong, *of_span):
                problems = np.array([*map(Numbered().__getitem__, (one.problem.id for one in some))])
                one = mean([float(one.cause == cause) for one in some], problems)
                shares.append((one.value, max(0.0, one.low), min(1.0, one.high)) if one else None)
            rows.append(row(cause.replace("_", " "), TABLES["cause"][cause], found, *shares))
        columns = (f"{name}: steps {first} to {last}" for name, first, last in spans)
        parts.append(run.table("causes/{at}", rows, *columns, count=f"{len(wrong):,}", most=MOST_WRONG))
        parts.append(run.table("causes/{at}/examples", _examples(run, wrong)))
    return section_of("causes", parts)


def _examples(run: Run, wrong: Sequence[WrongSolution]) -> Rows:
    for cause in CAUSES:
        newest: dict[str, WrongSolution] = {}
        for one in reversed(wrong):
            if one.cause == cause:
                newest.setdefault(one.problem.id, one)
        for one in islice(newest.values(), EXAMPLES):
            debate = Cell(one.debate, behind=run.behind(f"id:{one.debate}"))
            texts = (one.problem.question, one.problem.answer or "", one.answer, one.quote)
            shown = (
                "none" if text is None else shorten(printable(text), LONGEST, placeholder="...")
                for text in texts
            )
            yield row(cause.replace("_", " "), debate, *shown)


def phases_section(runs: Sequence[Run]) -> Section:
    """Return the section with means of figures and aspects of solutions over each third of the steps."""
    parts: list[Part] = []
    for run in runs:
        found = {name: moved for name in TABLES["figures"]["phases"] if (moved := run.change(name))}
        adjusted = holm([moved.p for moved in found.values()])
        rows = [
            row(title(name), one.early, one.middle, one.late, one.gain, replace(one, p=p).direction)
            for (name, one), p in zip(found.items(), adjusted, strict=True)
        ]
        aspects: list[tuple[Cell, ...]] = []
        for name, figure, why in TABLES["figures"]["aspects"]:
            moved = run.change(figure) if figure else None
            known = (moved.early, moved.late, moved.gain, "") if moved else (None, None, None, why)
            aspects.append(row(name, figure or "-", *known))
        word, tone, sentence = verdict(run)
        parts += [run.table("phases/{at}", rows, level=LEVEL), run.table("phases/{at}/aspects", aspects)]
        parts.append(Paragraph(f"{run.name}: {word}. {sentence}", tone, run.behind()))
    return section_of("phases", parts)


def settings_section(runs: Sequence[Run]) -> Section:
    """Return the section with differing, risky and all settings."""
    names, known = [run.name for run in runs], [run for run in runs if run.settings]
    texts = {
        key: [setting_text(run.settings.get(key), key in run.settings) for run in runs]
        for key in [*dict.fromkeys(key for run in runs for key in run.settings)][:MOST_KEYS]
    }
    parts: list[Part] = []
    if len(known) > 1:
        differing = [
            row(key, *of)
            for key, of in texts.items()
            if key not in APART and len({setting_text(run.settings.get(key)) for run in known}) > 1
        ]
        note = "" if differing else "Every setting is the same in all runs."
        parts.append(table_of("settings/differing", differing, *names, note=note))
    risks = [row(run.name, *risk) for run in runs for risk in risky(run.settings)]
    if risks:
        parts.append(table_of("settings/risky", risks))
    elif known:
        parts.append(Paragraph("The sources warn of none of these settings.", "good"))
    parts.append(table_of("settings/all", (row(key, *of) for key, of in texts.items()), *names))
    parts += [Paragraph(f"{run.name}: no settings are stored.", "warn") for run in runs if not run.settings]
    return section_of("settings", parts)


def setting_text(value: Any, there: bool = True) -> str:
    """Return a setting as text of at most 160 characters."""
    text = "-" if not there else value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 3] + "..."
