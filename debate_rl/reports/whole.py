"""A whole report: what was found, runs side by side, and the sections of each run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from debate_rl.reports.document import Document, Paragraph, Section
from debate_rl.reports.judgment import (
    Judged,
    comparison_section,
    judgment_lead,
    judgment_sections,
    simulation_section,
)
from debate_rl.reports.simulation import read_setting


def whole_report(runs: Sequence[Judged], *, more: Sequence[Section] = ()) -> Document:
    """Return the report of one run or several; ``more`` sections come last, and the first is of findings."""
    several = len(runs) > 1
    sections: list[Section] = [comparison_section(runs)] if several else []
    for place, judged in enumerate(runs, start=1):
        sections += _sections(judged, f"run-{place}-" if several else "")
    lead = tuple(paragraph for judged in runs for paragraph in judgment_lead(judged))
    lead += tuple(part for section in more[:1] for part in section.parts if isinstance(part, Paragraph))
    title = f"{len(runs)} runs" if several else runs[0].run
    return Document(f"Report on {title}", lead, (*sections, *more))


def _sections(judged: Judged, prefix: str) -> list[Section]:
    setting = read_setting(Path(judged.run))
    known = [simulation_section(judged, setting.judges.expected, prefix=prefix)] if setting else []
    return [*known, *judgment_sections(judged, prefix=prefix)]
