"""A whole report: the debates of run folders are read, and all sections put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from debate_rl.reports.answers import answers
from debate_rl.reports.cells import Judged
from debate_rl.reports.document import Document, Section
from debate_rl.reports.figures import figures_of
from debate_rl.reports.figures.study import Study
from debate_rl.reports.findings import Finding, Look, findings, looks_table, plain
from debate_rl.reports.judgment.comparison import comparison_section
from debate_rl.reports.judgment.lead import main_figures, read_text
from debate_rl.reports.judgment.looks import judgment_looks
from debate_rl.reports.judgment.sections import judgment_sections, simulation_section
from debate_rl.reports.simulation import read_setting
from debate_rl.reports.training import sections_of
from debate_rl.reports.training.answers import training_looks
from debate_rl.reports.training.loading import Run
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
                study.add(record, id)
            except MALFORMED as error:
                raise TranscriptError(f"{name}: debate {id} cannot be read: {error!r}") from error
            tell(total)
    if not total:
        condition = f" that {filter} finds" if filter else ""
        why = f"; damaged: {damage[0]}" if damage else ""
        raise TranscriptError(f"{name}: holds no debates{condition}{why}")
    return Judged(name, study, figures_of(study), filter, len(damage))


def whole_report(
    runs: Sequence[Judged], *, trained: Sequence[Run] = (), more: Sequence[Section] = ()
) -> Document:
    """Return the report of one run or several; ``trained``: those that were; ``more`` comes last."""
    of_run = {str(run.path): run for run in trained}
    paths = {judged.run: of_run[str(Path(judged.run))] for judged in runs if str(Path(judged.run)) in of_run}
    found = findings([look for judged in runs for look in _looks(judged, paths.get(judged.run))])
    several = len(runs) > 1
    sections: list[Section] = [comparison_section(runs)] if several else []
    for index, judged in enumerate(runs, start=1):
        prefix = f"run-{index}-" if several else ""
        setting = read_setting(Path(judged.run))
        known = [simulation_section(judged, setting.judges.expected, prefix=prefix)] if setting else []
        sections += [
            _findings_section(judged, found, prefix),
            *known,
            *judgment_sections(judged, prefix=prefix),
        ]
    title = f"{len(runs)} runs" if several else runs[0].run
    every = (*sections, *(sections_of(trained) if trained else ()), *more)
    return Document(
        f"Report on {title}",
        tuple(map(read_text, runs)),
        every,
        answers(runs, paths, found),
        tuple(map(plain, found)),
    )


def _looks(judged: Judged, run: Run | None) -> Iterator[Look]:
    yield from judgment_looks(judged)
    if run is not None:
        yield from training_looks(run, judged.run)


def _findings_section(judged: Judged, found: Sequence[Finding], prefix: str) -> Section:
    of_run = [finding for finding in found if finding.look.run == judged.run]
    stated = [finding.paragraph() for finding in of_run if finding.state == "found"]
    named = f"{judged.run}: " if prefix else ""
    about = f"{len(stated)} of {len(of_run)} things looked for; how large and how sure each has to be"
    parts = (*stated, *main_figures(judged), looks_table(of_run))
    return Section(f"{prefix}findings", f"{named}Findings", parts, about)
