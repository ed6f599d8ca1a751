"""How training went, from what a run left: verdicts, final figures, causes, phases, settings.

Everything but metrics.jsonl or the transcripts may be missing; a report is made from what there is, and says
what is not there. docs/training_report.md has each rule with its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from debate_rl.alarms.settings import risky
from debate_rl.difficulty import BANDS
from debate_rl.formatting import counted, printable, title
from debate_rl.metrics.held_out import DIRECT, HeldOut, on_problems
from debate_rl.metrics.intervals import Bounded, Estimate, Numbered, apart, holm, mean, ratio
from debate_rl.reports.charts import curves_section, distributions_section, expanded
from debate_rl.reports.diagnosis import alarms_section, questions_section
from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table, interval_cell, number_cell
from debate_rl.reports.figures import TABLES
from debate_rl.reports.findings import LEVEL
from debate_rl.reports.measures import (
    change_of,
    ended_line,
    evaluations,
    gained,
    paired,
    progress,
    status,
    verdict,
)
from debate_rl.reports.run import MOST_WRONG, TEST_TIME, Run, WrongSolution, load_runs
from envs.causes.rules import CAUSES, CauseName

HELD_OUT = expanded(TABLES["figures"]["held_out"])
MEANINGS: dict[CauseName, str] = {
    "extraction": "the right answer is stated, in another form or place than its grader looks for",
    "incoherent": "mostly one piece again and again, in circles, or of no script",
    "cut_off": "ended at its token limit without an answer",
    "arithmetic": "states a false equation of plain numbers",
    "not_known": "no rule can tell, as where a problem is misread",
}
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
    rows: list[tuple[Cell, ...]] = []
    parts: list[Part] = []
    words: list[str] = []
    for run in runs:
        word, tone, sentence = verdict(run)
        (name, moved), best, wanted = progress(run), best_step(run), run.setting("train.steps", int)
        early, late, gain = (
            (
                number_cell(moved.early),
                number_cell(moved.late),
                interval_cell(moved.value, moved.low, moved.high),
            )
            if moved
            else (number_cell(None),) * 3
        )
        rows.append(
            (
                Cell(run.name, behind=run.behind()),
                Cell(f"{run.steps} of {wanted}" if wanted is not None else f"{run.steps}", run.steps),
                Cell(status(run)),
                Cell(word, tone=tone),
                Cell(name if moved else "-"),
                early,
                late,
                gain,
                Cell(f"{best[1]}", best[1]) if best else number_cell(None),
            )
        )
        words.append(word)
        parts.append(Paragraph(f"{run.name}: {sentence}", tone, run.behind()))
        parts += [Paragraph(line)] if (line := ended_line(run)) else []
    columns = ("run", "steps", "status", "verdict", "progress", "first third", "last third", "difference")
    note = "'First' and 'last third' are of the figure under 'progress'."
    table = Table("runs/table", "Runs", (*columns, "best at step"), tuple(rows), note)
    notes = [Paragraph(f"{run.name}: {note}", "warn") for run in runs for note in run.notes]
    about = f"runs and verdicts, of training alone: {'; '.join(words)}"
    return Section("runs", "How training went", (table, *parts, *notes), about)


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
        known = {name: found for name in HELD_OUT if (found := evaluations(run, name))}
        steps = sorted({step for found in known.values() for step, _ in found})
        rows = tuple(_final(name, found, steps, gained(run, name)) for name, found in known.items())
        if rows:
            columns = ("figure", "first", "highest", "after steps", "last", "last less first")
            head = f"Held-out figures: {run.name}"
            parts.append(Table(f"final/{index}", head, columns, rows, _final_note(run)))
        else:
            text = "no held-out evaluation during training, so nothing is said of other problems."
            parts.append(Paragraph(f"{run.name}: {text}", "warn"))
        parts += [*_by_pass_rate(run, index), *_afterwards(run, index)]
    if len(runs) > 1:
        parts.append(_beside(runs))
    about = "held-out figures first, highest and last; runs compared"
    return Section("final", "Final figures", tuple(parts), about)


def _final(
    name: str, evaluated: Sequence[tuple[int, Bounded]], steps: Sequence[int], less: Bounded | None
) -> tuple[Cell, ...]:
    """Return the row of a figure; what the first or the last evaluation of the run has no value of is "-"."""
    by_step = dict(evaluated)
    top = max(by_step, key=lambda step: by_step[step][0])
    ends = [by_step.get(steps[0]), by_step.get(steps[-1])]
    first, last = (interval_cell(*end) if end else number_cell(None) for end in ends)
    gain = interval_cell(*less) if less and all(ends) else Cell("one evaluation")
    return Cell(title(name)), first, interval_cell(*by_step[top]), Cell(f"{top}", top), last, gain


def _final_note(run: Run) -> str:
    best, count = best_step(run), run.curves.of("eval/problems")[1]
    text = f"{int(count[-1])} problems. " if len(count) else ""
    gains = {title(name): found for name in HELD_OUT if (found := paired(run, name)) is not None}
    if gains:
        text += (
            "Differences are means of those within the problems with a value in both evaluations, paired. "
        )
    else:
        text += "The interval of a difference takes the two for independent; both are of the same problems, "
        text += "so it is wide. "
    for name, found in gains.items():
        if found.left_out:
            text += f"That of {name} is {on_problems(found)}, each column over all of its own. "
    if run.setting(TEST_TIME) is True:
        text += "Test-time learning: these problems are trained on. "
    text += "The highest of several is high by chance as well."
    if best:
        text += f" The checkpoint kept as best ({best[0]}) is step_{best[1] + 1:06d}, that of step {best[1]}."
    return text


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
    """Return each split of a problem's samples in halves: its chance, the rate of one half, of the other.

    >>> splits(1, 2)
    [(0.5, 0.0, 1.0), (0.5, 1.0, 0.0)]
    """
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


def _by_pass_rate(run: Run, index: int) -> list[Part]:
    """Return the table of gains by the pass rate at first; nothing without samples to split."""
    found = strata(run.held_out[0], run.held_out[-1]) if len(run.held_out) > 1 else []
    if not found:
        return []
    rows = tuple(
        (
            Cell(one.name),
            *map(number_cell, (one.problems, one.before, one.after)),
            interval_cell(one.gain.value, one.gain.low, one.gain.high),
        )
        for one in found
    )
    first, last = (counted(one.step, "step") for one in (run.held_out[0], run.held_out[-1]))
    columns = ("pass rate at first", "problems", f"after {first}", f"after {last}", "gain")
    note = (
        "One agent alone, on held-out problems. Half of a problem's first samples say its stratum, the other "
        "half what it was worth then: with the same samples luck alone would gain or lose. Every split "
        "counts with its chance, so numbers of problems are expected ones. 95% intervals are by problem."
    )
    return [Table(f"final/{index}/strata", f"Gain by pass rate: {run.name}", columns, rows, note)]


def _afterwards(run: Run, index: int) -> list[Part]:
    """Return the table of the evaluations made apart from training; nothing without any."""
    if not run.evaluations:
        return []
    shown = ("direct/accuracy", "direct/self_consistency", "debate/winner/accuracy", "judge/accuracy")
    names = [name for name in shown if any(name in figures for figures in run.evaluations.values())]
    rows = tuple(
        (Cell(label), *(interval_cell(*figures.get(name, (None,))) for name in names))
        for label, figures in run.evaluations.items()
    )
    head = f"Evaluations made apart from training: {run.name}"
    return [Table(f"final/{index}/apart", head, ("evaluation", *map(title, names)), rows, folded=True)]


def _beside(runs: Sequence[Run]) -> Part:
    """Return the table of the last evaluations of all runs, each less that of the first run."""
    rows: list[tuple[Cell, ...]] = []
    for name in HELD_OUT:
        last = [evaluated[-1][1] if (evaluated := evaluations(run, name)) else None for run in runs]
        if sum(bounded is not None for bounded in last) < 2:
            continue
        base = last[0]
        gains = [apart(bounded, base) if bounded and base else None for bounded in last[1:]]
        cells = (interval_cell(*bounded) if bounded else number_cell(None) for bounded in (*last, *gains))
        rows.append((Cell(title(name)), *cells))
    if not rows:
        return Paragraph("Fewer than two of the runs have held-out figures to compare.", "warn")
    names = [run.name for run in runs]
    columns = ("figure", *names, *(f"{name} less {names[0]}" for name in names[1:]))
    note = (
        "Last evaluations. Differences are unpaired; on the same held-out problems a paired one is narrower "
        "(debate eval, on both runs). An interval covers the draw of problems and samples, not another "
        "training seed."
    )
    return Table("final/beside", "Runs compared, held out", columns, tuple(rows), note)


def causes_section(runs: Sequence[Run]) -> Section:
    """Return why wrong solutions are wrong, early and late, with examples, from the sampled debates."""
    parts: list[Part] = []
    for index, run in enumerate(runs, start=1):
        if run.sample and run.sample.wrong:
            parts += [_causes(run, index, run.sample.wrong), _examples(run, index, run.sample.wrong)]
        else:
            text = f"{run.name}: no wrong solution among the debates that were read."
            parts.append(Paragraph(text, "warn"))
    about = "misplaced answers, incoherent and cut replies, false arithmetic; the rest is not known"
    return Section("causes", "Causes of wrong answers", tuple(parts), about)


def _causes(run: Run, index: int, wrong: Sequence[WrongSolution]) -> Table:
    spans = [run.thirds[0], run.thirds[-1]] if len(run.thirds) > 1 else []
    parts = [[one for one in wrong if first <= one.step <= last] for _, first, last in spans]
    rows: list[tuple[Cell, ...]] = []
    for cause in CAUSES:
        count = sum(one.cause == cause for one in wrong)
        found = number_cell(count, behind=run.behind(f"cause:{cause}") if count else None)
        shares = (_share(cause, part) for part in (wrong, *parts))
        rows.append((Cell(cause.replace("_", " ")), Cell(MEANINGS[cause]), found, *shares))
    columns = ("cause", "what it is", "solutions", "share of the wrong")
    columns += tuple(f"{name}: steps {first} to {last}" for name, first, last in spans)
    note = (
        f"Of {len(wrong):,} wrong solutions, one of a debate, from up to {MOST_WRONG} debates of a step. "
        "A cause is what is visible: the answer might be wrong without it. 95% intervals, by problem."
    )
    return Table(f"causes/{index}", f"Causes of wrong answers: {run.name}", columns, tuple(rows), note)


def _share(cause: CauseName, wrong: Sequence[WrongSolution]) -> Cell:
    problems = np.array([*map(Numbered().__getitem__, (one.problem.id for one in wrong))])
    found = mean([float(one.cause == cause) for one in wrong], problems)
    return (
        interval_cell(found.value, max(0.0, found.low), min(1.0, found.high)) if found else number_cell(None)
    )


def _examples(run: Run, index: int, wrong: Sequence[WrongSolution]) -> Table:
    rows = tuple(
        (
            Cell(cause.replace("_", " ")),
            Cell(one.debate, behind=run.behind(f"id:{one.debate}")),
            Cell(_cut(one.problem.question)),
            Cell(_cut(one.problem.answer or "")),
            Cell("none" if one.answer is None else _cut(one.answer)),
            Cell(_cut(one.quote)),
        )
        for cause in CAUSES
        for one in islice(_one_a_problem(cause, wrong), EXAMPLES)
    )
    columns = ("cause", "debate", "question", "gold", "answer", "what shows it")
    return Table(f"causes/{index}/examples", f"Examples: {run.name}", columns, rows, folded=True)


def _one_a_problem(cause: CauseName, wrong: Sequence[WrongSolution]) -> Iterator[WrongSolution]:
    """Yield the newest wrong solution of this cause to each problem, the newest first."""
    seen: set[str] = set()
    for one in reversed(wrong):
        if one.cause == cause and one.problem.id not in seen:
            seen.add(one.problem.id)
            yield one


def _cut(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def phases_section(runs: Sequence[Run]) -> Section:
    """Return the section with the means of the first, middle and last third of each figure, and aspects."""
    parts: list[Part] = []
    for index, run in enumerate(runs, start=1):
        found = {name: moved for name in TABLES["figures"]["phases"] if (moved := change_of(run, name))}
        rows: list[tuple[Cell, ...]] = []
        adjusted = holm([moved.p for moved in found.values()])
        for (name, moved), p in zip(found.items(), adjusted, strict=True):
            means = map(number_cell, (moved.early, moved.middle, moved.late))
            gain = interval_cell(moved.value, moved.low, moved.high)
            rows.append((Cell(title(name)), *means, gain, Cell(replace(moved, p=p).direction)))
        columns = ("figure", "early", "middle", "late", "late less early", "direction")
        note = (
            "Thirds of the steps that have a value. The interval is Welch's on means of neighbouring steps. "
            f"A figure went up or down where its p, adjusted for all of this table, is {LEVEL} or less."
        )
        parts.append(Table(f"phases/{index}", f"Phases: {run.name}", columns, tuple(rows), note))
        parts.append(_aspects(run, index))
        word, tone, sentence = verdict(run)
        parts.append(Paragraph(f"{run.name}: {word}. {sentence}", tone, run.behind()))
    about = "means of each third of the steps, and how they differ"
    return Section("phases", "Early, middle, late", tuple(parts), about)


def _aspects(run: Run, index: int) -> Table:
    """Return what a solution is made of, early and late; of an aspect without a figure it says why."""
    rows: list[tuple[Cell, ...]] = []
    for name, figure, why in TABLES["figures"]["aspects"]:
        moved = change_of(run, figure) if figure else None
        about = Cell(name), Cell(figure or "-")
        if moved is None:
            rows.append((*about, *(number_cell(None),) * 3, Cell(why)))
        else:
            gain = interval_cell(moved.value, moved.low, moved.high)
            rows.append((*about, number_cell(moved.early), number_cell(moved.late), gain, Cell("")))
    columns = ("aspect", "figure", "early", "late", "late less early", "why there is none")
    note = "A gain in form is not a gain in content: read these together."
    return Table(f"phases/{index}/aspects", f"Aspects of a solution: {run.name}", columns, tuple(rows), note)


def settings_section(runs: Sequence[Run]) -> Section:
    """Return the section of settings: those that differ, those that a source warns of, and all."""
    keys = [*dict.fromkeys(key for run in runs for key in run.settings)][:MOST_KEYS]
    known = [run for run in runs if run.settings]
    differing = [
        key
        for key in keys
        if key not in APART and len({setting_text(run.settings.get(key)) for run in known}) > 1
    ]
    parts: list[Part] = []
    if len(known) > 1:
        note = "" if differing else "Every setting is the same in all runs."
        parts.append(_settings("differing", "Settings that differ", runs, differing, note))
    risks = tuple((Cell(run.name), *map(Cell, risk)) for run in runs for risk in risky(run.settings))
    note = "Each line is a rule of a source that warns of such a setting, and no proof that it did harm here."
    if risks:
        columns = ("run", "setting", "rule", "source")
        parts.append(Table("settings/risky", "Settings that a source warns of", columns, risks, note))
    elif known:
        parts.append(Paragraph("No setting is one that the sources warn of.", "good"))
    parts.append(_settings("all", "All settings", runs, keys))
    parts += [Paragraph(f"{run.name}: no settings were kept.", "warn") for run in runs if not run.settings]
    return Section("settings", "Settings", tuple(parts), "what was set, and what a source warns of")


def _settings(name: str, head: str, runs: Sequence[Run], keys: Sequence[str], note: str = "") -> Table:
    rows = tuple(
        (Cell(key), *(Cell(setting_text(run.settings.get(key), key in run.settings)) for run in runs))
        for key in keys
    )
    columns = ("setting", *(run.name for run in runs))
    return Table(f"settings/{name}", head, columns, rows, note, folded=name == "all")


def setting_text(value: Any, there: bool = True) -> str:
    """Return a setting as text, cut to 160 characters.

    >>> setting_text(1e-5), setting_text([1, 2]), setting_text("grpo"), setting_text(None, False)
    ('1e-05', '[1, 2]', 'grpo', '-')
    """
    if not there:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SETTING else text[: LONGEST_SETTING - 3] + "..."
