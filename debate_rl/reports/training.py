"""How training went, from what a run left: verdicts, final figures, causes, phases, settings.

Everything but metrics.jsonl or the transcripts may be missing; a report is made from what there is, and says
what is not there. docs/report.md has each rule with its source, tables.toml the words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import comb
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from debate_rl.alarms.settings import risky
from debate_rl.formatting import counted, printable, title
from debate_rl.metrics.held_out import DIRECT, HeldOut, on_problems
from debate_rl.metrics.intervals import Bounded, Estimate, Numbered, apart, holm, mean, ratio
from debate_rl.reports import measures
from debate_rl.reports.charts import curves_section, distributions_section, expanded
from debate_rl.reports.diagnosis import alarms_section, questions_section
from debate_rl.reports.document import (
    Cell,
    Paragraph,
    Part,
    Section,
    Table,
    bounded,
    number_cell,
    row,
    section_of,
    table_of,
)
from debate_rl.reports.figures import TABLES
from debate_rl.reports.findings import LEVEL
from debate_rl.reports.run import MOST_WRONG, TEST_TIME, Run, WrongSolution, load_runs
from debate_rl.sampling.difficulty import BANDS
from envs.causes.rules import CAUSES, CauseName

HELD_OUT = expanded(TABLES["figures"]["held_out"])
EXAMPLES, LONGEST = 3, 120
"""Wrong solutions that are shown of each cause, and characters of each text."""
MOST_KEYS, LONGEST_SETTING = 1000, 160
APART = ("run.dir", "run.allow_changes")
"""Keys that say where a run is, and not how it was done."""
MOST_SAMPLES = 1000
"""Samples of a problem up to which it is split into strata."""


def training_sections(runs: Sequence[Path]) -> list[Section]:
    """Return the sections of the training analysis, over the folders of one or many runs."""
    return sections_of(load_runs(runs))


def sections_of(runs: Sequence[Run]) -> list[Section]:
    """Return the sections of runs that were read, in the order of the report."""
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
    with np.errstate(all="ignore"):  # figures of a foreign file may be of any size
        return [section(runs) for section in sections]


def overview_section(runs: Sequence[Run]) -> Section:
    """Return the section that names the runs, their state, their verdict and what is missing."""
    verdicts = [measures.verdict(run) for run in runs]
    rows, said = list[tuple[Cell, ...]](), list[Part]()
    for run, (word, tone, sentence) in zip(runs, verdicts, strict=True):
        (name, moved), best, wanted = measures.progress(run), best_step(run), run.setting("train.steps", int)
        steps = len(run.curves.steps)
        rows.append(
            row(
                Cell(run.name, behind=run.behind()),
                Cell(f"{steps} of {wanted}" if wanted is not None else f"{steps}", steps),
                measures.status(run),
                Cell(word, tone=tone),
                name if moved else "-",
                *((moved.early, moved.late, moved.gain) if moved else (None, None, None)),
                Cell(f"{best[1]}", best[1]) if best else None,
            )
        )
        said.append(Paragraph(f"{run.name}: {sentence}", tone, run.behind()))
        said += [Paragraph(line)] if (line := measures.ended_line(run)) else []
    notes = [Paragraph(f"{run.name}: {note}", "warn") for run in runs for note in run.notes]
    words = "; ".join(word for word, _, _ in verdicts)
    return section_of("runs", (table_of("runs/table", rows), *said, *notes), words=words)


def best_step(run: Run) -> tuple[str, int, float] | None:
    """Return the figure of train.keep_best, the step with its highest value in training, and that value."""
    name = run.setting("train.keep_best", str) or "eval/debate/winner/accuracy"
    steps, values = run.curves.of(name)
    if not len(values):
        return None
    best = int(values.argmax())
    return name, int(steps[best]), float(values[best])


def finals_section(runs: Sequence[Run]) -> Section:
    """Return the section of held-out figures: first, highest and last, the gain, runs compared."""
    parts: list[Part] = []
    for index, run in enumerate(runs, start=1):
        known = {name: found for name in HELD_OUT if (found := measures.evaluations(run, name))}
        steps = sorted({step for found in known.values() for step, _ in found})
        rows = [_final(run, name, found, steps) for name, found in known.items()]
        if rows:
            parts.append(table_of("final/{at}", rows, at=index, run=run.name, note=_final_note(run)))
        else:
            text = "no held-out evaluation during training, so nothing is said of other problems."
            parts.append(Paragraph(f"{run.name}: {text}", "warn"))
        parts += [*_by_pass_rate(run, index), *_afterwards(run, index)]
    return section_of("final", [*parts, *([_beside(runs)] if len(runs) > 1 else [])])


def _final(
    run: Run, name: str, evaluated: Sequence[tuple[int, Bounded]], steps: Sequence[int]
) -> tuple[Cell, ...]:
    """Return the row of a figure; what the first or the last evaluation of the run has no value of is "-"."""
    by_step, less = dict(evaluated), measures.gained(run, name)
    top = max(by_step, key=lambda step: by_step[step][0])
    first, last = by_step.get(steps[0]), by_step.get(steps[-1])
    gain = less if less and first and last else "one evaluation"
    return row(title(name), first, by_step[top], Cell(f"{top}", top), last, gain)


def _final_note(run: Run) -> str:
    said, best, count = TABLES["final_note"], best_step(run), run.curves.of("eval/problems")[1]
    gains = {title(name): found for name in HELD_OUT if (found := measures.paired(run, name)) is not None}
    parts = [f"{int(count[-1])} problems."] if len(count) else []
    parts.append(said["paired" if gains else "apart"])
    for name, found in gains.items():
        parts += [said["of_some"].format(name=name, problems=on_problems(found))] if found.left_out else []
    parts += [said["test_time"]] if run.setting(TEST_TIME) is True else []
    parts.append(said["highest"])
    if best:
        parts.append(said["best"].format(name=best[0], after=best[1] + 1, step=best[1]))
    return " ".join(parts)


class Stratum(NamedTuple):
    """Problems of one pass rate: how many are expected in it, their rates at first and later, the gain."""

    name: str
    problems: float
    before: float
    after: float
    gain: Estimate


def strata(first: HeldOut, last: HeldOut, figure: str = DIRECT) -> list[Stratum]:
    """Return what was gained on problems by how often they were solved at first, without luck.

    A problem that was lucky in its first samples is less so in its next ones, whatever was learnt. So half of
    its first samples says which stratum it is in, and the other half what it was worth at first. As samples
    of a problem are exchangeable, how many of a half are right is hypergeometric, and every split counts
    with its chance: nothing is drawn. It takes two first samples of a problem.
    """
    parts: dict[str, list[tuple[int, float, float, float]]] = {name: [] for _, name in BANDS}
    before, after = first.figures.get(figure, {}), last.means(figure)
    for problem, (id, (right, count)) in enumerate(before.items()):
        same = id in after and first.problems.get(id) == last.problems.get(id)
        if same and 2 <= count <= MOST_SAMPLES and right == round(right) and 0 <= right <= count:
            for weight, rate, other in splits(round(right), count):
                band = next(name for most, name in BANDS if rate <= most)
                parts[band].append((problem, weight, other, after[id]))
    return [_stratum(name, rows) for name, rows in parts.items() if rows]


def splits(right: int, count: int) -> list[tuple[float, float, float]]:
    """Return each split of a problem's samples in halves: its chance, the rate of one half, of the other."""
    half = count // 2
    rest = count - half
    return [
        (comb(right, n) * comb(count - right, half - n) / comb(count, half), n / half, (right - n) / rest)
        for n in range(max(0, right - rest), min(right, half) + 1)
    ]


def _stratum(name: str, rows: Sequence[tuple[int, float, float, float]]) -> Stratum:
    problems, weights, before, after = map(np.array, zip(*rows, strict=True))
    gain, total = ratio(weights * (after - before), weights, problems, signed=True), float(weights.sum())
    assert gain is not None  # no split has a chance of 0
    return Stratum(name, total, float(weights @ before) / total, float(weights @ after) / total, gain)


def _by_pass_rate(run: Run, index: int) -> Iterator[Table]:
    """Yield the table of gains by the pass rate at first; nothing without samples to split."""
    found = strata(run.held_out[0], run.held_out[-1]) if len(run.held_out) > 1 else []
    if found:
        rows = [row(*one[:4], bounded(one.gain)) for one in found]
        first, last = (counted(one.step, "step") for one in (run.held_out[0], run.held_out[-1]))
        yield table_of("final/{at}/strata", rows, at=index, run=run.name, first=first, last=last)


def _afterwards(run: Run, index: int) -> Iterator[Table]:
    """Yield the table of the evaluations made apart from training; nothing without any."""
    shown = ("direct/accuracy", "direct/self_consistency", "debate/winner/accuracy", "judge/accuracy")
    names = [name for name in shown if any(name in figures for figures in run.evaluations.values())]
    if run.evaluations:
        rows = [row(label, *map(of.get, names)) for label, of in run.evaluations.items()]
        yield table_of("final/{at}/apart", rows, *map(title, names), at=index, run=run.name)


def _beside(runs: Sequence[Run]) -> Part:
    """Return the table of the last evaluations of all runs, each less that of the first run."""
    rows: list[tuple[Cell, ...]] = []
    for name in HELD_OUT:
        last = [evaluated[-1][1] if (evaluated := measures.evaluations(run, name)) else None for run in runs]
        if sum(bounded is not None for bounded in last) > 1:
            base = last[0]
            gains = (apart(bounded, base) if bounded and base else None for bounded in last[1:])
            rows.append(row(title(name), *last, *gains))
    if not rows:
        return Paragraph("Fewer than two of the runs have held-out figures to compare.", "warn")
    names = [run.name for run in runs]
    return table_of("final/beside", rows, *names, *(f"{name} less {names[0]}" for name in names[1:]))


def causes_section(runs: Sequence[Run]) -> Section:
    """Return why wrong solutions are wrong, early and late, with examples, from the sampled debates."""
    parts: list[Part] = []
    for index, run in enumerate(runs, start=1):
        if run.sample and run.sample.wrong:
            parts.append(_causes(run, index, run.sample.wrong))
            examples = _examples(run, run.sample.wrong)
            parts.append(table_of("causes/{at}/examples", examples, at=index, run=run.name))
        else:
            text = f"{run.name}: no wrong solution among the debates that were read."
            parts.append(Paragraph(text, "warn"))
    return section_of("causes", parts)


def _causes(run: Run, index: int, wrong: Sequence[WrongSolution]) -> Table:
    spans = [run.thirds[0], run.thirds[-1]] if len(run.thirds) > 1 else []
    parts = [[one for one in wrong if first <= one.step <= last] for _, first, last in spans]
    rows: list[tuple[Cell, ...]] = []
    for cause in CAUSES:
        count = sum(one.cause == cause for one in wrong)
        found = number_cell(count, behind=run.behind(f"cause:{cause}") if count else None)
        shares = (_share(cause, part) for part in (wrong, *parts))
        rows.append(row(cause.replace("_", " "), TABLES["cause"][cause], found, *shares))
    columns = (f"{name}: steps {first} to {last}" for name, first, last in spans)
    about = {"at": index, "run": run.name, "count": f"{len(wrong):,}", "most": MOST_WRONG}
    return table_of("causes/{at}", rows, *columns, **about)


def _share(cause: CauseName, wrong: Sequence[WrongSolution]) -> Bounded | None:
    problems = np.array([*map(Numbered().__getitem__, (one.problem.id for one in wrong))])
    found = mean([float(one.cause == cause) for one in wrong], problems)
    return (found.value, max(0.0, found.low), min(1.0, found.high)) if found else None


def _examples(run: Run, wrong: Sequence[WrongSolution]) -> Iterator[tuple[Cell, ...]]:
    """Yield the newest wrong solutions of each cause, one of a problem."""
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
    """Return the section with the means of the first, middle and last third of each figure, and aspects."""
    parts: list[Part] = []
    for index, run in enumerate(runs, start=1):
        found = {
            name: moved for name in TABLES["figures"]["phases"] if (moved := measures.change_of(run, name))
        }
        adjusted = holm([moved.p for moved in found.values()])
        rows = [
            row(title(name), one.early, one.middle, one.late, one.gain, replace(one, p=p).direction)
            for (name, one), p in zip(found.items(), adjusted, strict=True)
        ]
        parts.append(table_of("phases/{at}", rows, at=index, run=run.name, level=LEVEL))
        parts.append(table_of("phases/{at}/aspects", _aspects(run), at=index, run=run.name))
        word, tone, sentence = measures.verdict(run)
        parts.append(Paragraph(f"{run.name}: {word}. {sentence}", tone, run.behind()))
    return section_of("phases", parts)


def _aspects(run: Run) -> Iterator[tuple[Cell, ...]]:
    """Yield what a solution is made of, early and late; of an aspect without a figure it says why."""
    for name, figure, why in TABLES["figures"]["aspects"]:
        moved = measures.change_of(run, figure) if figure else None
        known = (moved.early, moved.late, moved.gain, "") if moved else (None, None, None, why)
        yield row(name, figure or "-", *known)


def settings_section(runs: Sequence[Run]) -> Section:
    """Return the section of settings: those that differ, those that a source warns of, and all."""
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
        parts.append(Paragraph("No setting is one that the sources warn of.", "good"))
    parts.append(table_of("settings/all", (row(key, *of) for key, of in texts.items()), *names))
    parts += [Paragraph(f"{run.name}: no settings were kept.", "warn") for run in runs if not run.settings]
    return section_of("settings", parts)


def setting_text(value: Any, there: bool = True) -> str:
    """Return a setting as text, cut to 160 characters."""
    if not there:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 3] + "..."
