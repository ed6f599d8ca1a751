"""The stages of a curriculum in a report: what each came to, and why it ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from debate_rl.curriculum.record import Visit, read_curriculum, stage_runs
from debate_rl.formatting import interval, share
from debate_rl.reports.document import Cell, Section, Table

COLUMNS = ("stage", "began with", "steps", "figure", "value", "95% interval", "ended", "why")


def with_stages(names: Sequence[str]) -> list[str]:
    """Return the folders of runs, those of its stages in the place of a curriculum that has begun one."""
    return [run for name in names for run in (_begun(Path(name)) or [name])]


def _begun(run: Path) -> list[str]:
    return [str(stage) for stage in stage_runs(run) if (stage / "config.toml").is_file()]


def stages_sections(names: Sequence[str]) -> list[Section]:
    """Return a section for each curriculum among some folders: a row for every visit of a stage."""
    sections: list[Section] = []
    for number, name in enumerate(names, start=1):
        record = read_curriculum(Path(name))
        if record is not None:
            rows = tuple(map(_row, record.visits))
            table = Table(f"stages-{number}", f"Stages of {name}", COLUMNS, rows)
            about = "each trained from the weights of another; in order"
            sections.append(Section(f"curriculum-{number}", f"Curriculum {name}", (table,), about))
    return sections


def _row(visit: Visit) -> tuple[Cell, ...]:
    tone = "good" if visit.end == "reached" else "bad" if visit.end == "demoted" else ""
    return (
        Cell(visit.folder),
        Cell(visit.start.rpartition("/")[2] or "the recipe's weights"),
        Cell(str(visit.steps) if visit.end else "under way", visit.steps),
        Cell(visit.figure),
        Cell(share(visit.value), visit.value),
        Cell(interval(visit.low, visit.high, share, none="none")),
        Cell(visit.end or "not yet", tone=tone),
        Cell(visit.why),
    )
