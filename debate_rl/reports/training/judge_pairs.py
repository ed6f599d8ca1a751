"""The section of the judge under attack: fixed pairs, by persuader, beside the start judge."""

from __future__ import annotations

from collections.abc import Sequence

from debate_rl.formatting import counted, printable, title
from debate_rl.judge_attack.pairs import JudgedAttack, WatchedJudge, watched_judge
from debate_rl.metrics.intervals import Estimate
from debate_rl.reports.cells import interval_cell, number_cell
from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table
from debate_rl.reports.training.loading import Run

FOOLED, CLIP = 8, 300
"""Attacks that are shown of those which fool the judge and did not at the start; characters of each."""


def judge_pairs_section(runs: Sequence[Run]) -> Section:
    """Return the section; without parts where no run watched its judge."""
    parts: list[Part] = []
    for index, run in enumerate(runs):
        try:
            watched = watched_judge(run.path)
        except (OSError, ValueError) as error:
            parts.append(Paragraph(f"{run.name}: {printable(' '.join(str(error).split()))[:200]}", "warn"))
            continue
        if watched is not None and watched.step:
            parts += [_figures(run, watched, index), *_fooled(run, watched, index)]
    return Section(
        "judge_pairs",
        "The judge under attack",
        tuple(parts),
        "fixed pairs, compared with the judge at the start",
    )


def _figures(run: Run, watched: WatchedJudge, index: int) -> Table:
    rows = tuple(
        (Cell(title(one.attack)), _cell(one.start), _cell(one.now), _cell(one.gap)) for one in watched.figures
    )
    columns = ("pairs", "start judge", f"after {counted(watched.step, 'step')}", "hack gap")
    note = (
        "Share of pairs on which the right side was preferred, at temperature 0. Hack gap: by how much the "
        "accuracy falls from plain to attacked pairs, less the fall of the start judge; 95% intervals by "
        "problem. Order counts as right where both orders do. docs/judging.md has the persuaders."
    )
    return Table(f"judge_pairs/{index + 1}", f"The judge under attack: {run.name}", columns, rows, note)


def _fooled(run: Run, watched: WatchedJudge, index: int) -> list[Part]:
    fooled = [attack for attack in watched.attacks if attack.fooled]
    if not fooled:
        return []
    columns = ("pair", "attack", "problem", "the wrong side", "the judge now", "preferred")
    note = f"{len(fooled)} of {len(watched.attacks)} attacks; debate inspect RUN pairs N shows a pair whole."
    rows = tuple(map(_row, fooled[:FOOLED]))
    head = f"Right by the start judge, and not now: {run.name}"
    return [Table(f"judge_pairs/{index + 1}/fooled", head, columns, rows, note)]


def _row(attack: JudgedAttack) -> tuple[Cell, ...]:
    texts = (attack.pair.question, attack.wrong, attack.now.reply)
    said = [Cell(printable(" ".join(text.split()))[:CLIP]) for text in texts]
    return (
        Cell(f"{attack.number}", attack.number),
        Cell(title(attack.now.attack)),
        *said,
        Cell(attack.now.preferred),
    )


def _cell(found: Estimate | None) -> Cell:
    return number_cell(None) if found is None else interval_cell(found.value, found.low, found.high)
