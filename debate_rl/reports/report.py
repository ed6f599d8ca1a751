"""A whole report: the debates of run folders are read, and all sections put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from debate_rl.reports.cells import Judged
from debate_rl.reports.document import Document, Paragraph, Section
from debate_rl.reports.figures import figures_of
from debate_rl.reports.figures.study import Study
from debate_rl.reports.judgment.comparison import comparison_section
from debate_rl.reports.judgment.lead import judgment_lead
from debate_rl.reports.judgment.sections import judgment_sections, simulation_section
from debate_rl.reports.simulation import read_setting
from transcripts import RunStore, TranscriptError

MALFORMED = (LookupError, ValueError)
"""What a record raises whose turns or tables do not fit its protocol."""


def judge_run(name: str, filter: str = "", *, tell: Callable[[int], object] = lambda total: None) -> Judged:
    """Return the debates of a run that a filter finds; ``tell`` gets after each how many there are in all.

    TranscriptError where there is no run, none of its debates is found, or one of them cannot be read.
    """
    study = Study()
    with RunStore.open(name) as run:
        damage, total = run.damage, run.count(filter)
        for id, record in run.records(filter):
            try:
                study.add(record)
            except MALFORMED as error:
                raise TranscriptError(f"{name}: debate {id} cannot be read: {error!r}") from error
            tell(total)
    if not total:
        condition = f" that {filter} finds" if filter else ""
        why = f"; damaged: {damage[0]}" if damage else ""
        raise TranscriptError(f"{name}: holds no debates{condition}{why}")
    return Judged(name, study, figures_of(study), filter, len(damage))


def whole_report(runs: Sequence[Judged], *, more: Sequence[Section] = ()) -> Document:
    """Return the report of one run or several; ``more`` sections come last, and the first is of findings."""
    several = len(runs) > 1
    sections: list[Section] = [comparison_section(runs)] if several else []
    for index, judged in enumerate(runs, start=1):
        sections += _sections(judged, f"run-{index}-" if several else "")
    lead = tuple(paragraph for judged in runs for paragraph in judgment_lead(judged))
    lead += tuple(part for section in more[:1] for part in section.parts if isinstance(part, Paragraph))
    title = f"{len(runs)} runs" if several else runs[0].run
    return Document(f"Report on {title}", lead, (*sections, *more))


def _sections(judged: Judged, prefix: str) -> list[Section]:
    setting = read_setting(Path(judged.run))
    known = [simulation_section(judged, setting.judges.expected, prefix=prefix)] if setting else []
    return [*known, *judgment_sections(judged, prefix=prefix)]
