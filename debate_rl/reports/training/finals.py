"""Held-out figures: first, best and last evaluation with intervals, the gain, runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from debate_rl.formatting import counted, title
from debate_rl.metrics.held_out import Gain, gain, on_problems
from debate_rl.metrics.intervals import Bounded, apart
from debate_rl.reports.cells import interval_cell, number_cell
from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table
from debate_rl.reports.training.files import HELD_OUT
from debate_rl.reports.training.loading import TEST_TIME, Run
from debate_rl.reports.training.strata import strata


def finals_section(runs: Sequence[Run]) -> Section:
    """Return the section of final figures."""
    parts: list[Part] = []
    for index, run in enumerate(runs):
        parts += _of_run(run, index)
    if len(runs) > 1:
        parts += _beside(runs)
    return Section(
        "final", "Final figures", tuple(parts), "held-out figures first, highest and last; runs compared"
    )


def evaluations(run: Run, name: str) -> list[tuple[int, Bounded]]:
    """Return (steps learnt from, (value, low, high)) of each held-out evaluation: metrics.jsonl names it.

    They are those that can be compared by problem, or else those of metrics.jsonl.
    """
    kept = [(one.step, one.estimate(name.removeprefix("eval/"))) for one in run.held_out]
    if known := [(step, (found.value, found.low, found.high)) for step, found in kept if found is not None]:
        return known
    steps, values = run.curves.of(name)
    bounded = zip(values.tolist(), *(bounds.tolist() for bounds in run.curves.bounds(name)), strict=True)
    return list(zip((steps + 1).tolist(), bounded, strict=True))


def gained(run: Run, name: str) -> Bounded | None:
    """Return the last evaluation less the first, paired by problem where that can be; None of one."""
    evaluated = evaluations(run, name)
    if len(evaluated) < 2:
        return None
    found = paired(run, name)
    if found is None:
        return apart(evaluated[-1][1], evaluated[0][1])
    return found.difference.value, found.difference.low, found.difference.high


def paired(run: Run, name: str) -> Gain | None:
    """Return the gain over the problems with a value in the first and the last evaluation; None of none."""
    if len(run.held_out) < 2:
        return None
    return gain(run.held_out[0], run.held_out[-1], name.removeprefix("eval/"))


def best_step(run: Run) -> tuple[str, int, float] | None:
    """Return the figure of train.keep_best, the step with its highest value in training, and that value."""
    name = run.setting("train.keep_best", str) or "eval/debate/winner/accuracy"
    steps, values = run.curves.of(name)
    if not len(values):
        return None
    best = int(values.argmax())
    return name, int(steps[best]), float(values[best])


def _of_run(run: Run, index: int) -> list[Part]:
    known = {name: found for name in HELD_OUT if (found := evaluations(run, name))}
    steps = sorted({step for found in known.values() for step, _ in found})
    rows = [_row(name, found, steps, gained(run, name)) for name, found in known.items()]
    parts: list[Part] = []
    if rows:
        columns = ("figure", "first", "highest", "after steps", "last", "last less first")
        parts.append(
            Table(f"final/{index + 1}", f"Held-out figures: {run.name}", columns, tuple(rows), _note(run))
        )
    else:
        text = f"{run.name}: no held-out evaluation during training, so nothing is said of other problems."
        parts.append(Paragraph(text, "warn"))
    parts += _by_pass_rate(run, index)
    if run.evaluations:
        parts.append(_afterwards(run, index))
    return parts


def _by_pass_rate(run: Run, index: int) -> list[Part]:
    """Return the table of gains by the pass rate at first; nothing without samples to split."""
    found = strata(run.held_out[0], run.held_out[-1]) if len(run.held_out) > 1 else []
    if not found:
        return []
    rows = tuple(
        (
            Cell(one.name),
            number_cell(one.problems),
            number_cell(one.before),
            number_cell(one.after),
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
    return [Table(f"final/{index + 1}/strata", f"Gain by pass rate: {run.name}", columns, rows, note)]


def _row(
    name: str, evaluated: Sequence[tuple[int, Bounded]], steps: Sequence[int], less: Bounded | None
) -> tuple[Cell, ...]:
    """Return the row of a figure; what the first or the last evaluation of the run has no value of is "-"."""
    by_step = dict(evaluated)
    top = max(by_step, key=lambda step: by_step[step][0])
    ends = [by_step.get(steps[0]), by_step.get(steps[-1])]
    first, last = (interval_cell(*end) if end else number_cell(None) for end in ends)
    gain = interval_cell(*less) if less and all(ends) else Cell("one evaluation")
    return Cell(title(name)), first, interval_cell(*by_step[top]), Cell(f"{top}", top), last, gain


def _note(run: Run) -> str:
    best, count = best_step(run), run.curves.of("eval/problems")[1]
    text = f"{int(count[-1])} problems. " if len(count) else ""
    gains = {title(name): found for name in HELD_OUT if (found := paired(run, name)) is not None}
    if gains:
        text += (
            "Differences are means of those within the problems with a value in both evaluations, paired. "
        )
        for name, found in gains.items():
            if found.left_out:
                text += f"That of {name} is {on_problems(found)}, each column over all of its own. "
    else:
        text += "The interval of a difference takes the two for independent; both are of the same problems, "
        text += "so it is wide. "
    if run.setting(TEST_TIME) is True:
        text += "Test-time learning: these problems are trained on. "
    text += "The highest of several is high by chance as well."
    if best:
        text += f" The checkpoint kept as best ({best[0]}) is step_{best[1] + 1:06d}, that of step {best[1]}."
    return text


def _afterwards(run: Run, index: int) -> Table:
    names = [
        name
        for name in ("direct/accuracy", "direct/self_consistency", "debate/winner/accuracy", "judge/accuracy")
        if any(name in figures for figures in run.evaluations.values())
    ]
    rows = tuple(
        (
            Cell(label),
            *(interval_cell(*figures[name]) if name in figures else number_cell(None) for name in names),
        )
        for label, figures in run.evaluations.items()
    )
    heading = f"Evaluations made apart from training: {run.name}"
    return Table(f"final/{index + 1}/apart", heading, ("evaluation", *map(title, names)), rows, folded=True)


def _beside(runs: Sequence[Run]) -> list[Part]:
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
        return [Paragraph("Fewer than two of the runs have held-out figures to compare.", "warn")]
    names = [run.name for run in runs]
    columns = ("figure", *names, *(f"{name} less {names[0]}" for name in names[1:]))
    note = (
        "Last evaluations. Differences are unpaired; on the same held-out problems a paired one is narrower "
        "(debate eval, on both runs). An interval covers the draw of problems and samples, not another "
        "training seed."
    )
    return [Table("final/beside", "Runs compared, held out", columns, tuple(rows), note)]
