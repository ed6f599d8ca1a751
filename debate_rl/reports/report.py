"""A whole report: the debates of run folders are read, and all sections put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from debate_rl.formatting import interval, share
from debate_rl.reports.document import Cell, Document, Judged, Section, Table
from debate_rl.reports.figures import figures_of
from debate_rl.reports.findings import Look, findings, judgment_looks
from debate_rl.reports.first_screen import answers, training_looks
from debate_rl.reports.judgment import comparison_section, judgment_sections, read_text
from debate_rl.reports.rows import Study
from debate_rl.reports.run import Run
from debate_rl.reports.training import sections_of
from debate_rl.runs.curriculum import read_curriculum, stage_runs
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
        sections += judgment_sections(judged, found, prefix=f"run-{index}-" if several else "")
    title = f"{len(runs)} runs" if several else runs[0].run
    return Document(
        f"Report on {title}",
        tuple(map(read_text, runs)),
        (*sections, *(sections_of(trained) if trained else ()), *more),
        answers(runs, paths, found),
        tuple(finding.plain() for finding in found),
    )


def _looks(judged: Judged, run: Run | None) -> Iterator[Look]:
    yield from judgment_looks(judged)
    if run is not None:
        yield from training_looks(run, judged.run)


def with_stages(names: Sequence[str]) -> list[str]:
    """Return the folders of runs, those of its stages in the place of a curriculum that has begun one."""
    begun = ([str(one) for one in stage_runs(Path(n)) if (one / "config.toml").is_file()] for n in names)
    return [run for name, stages in zip(names, begun, strict=True) for run in (stages or [name])]


def stages_sections(names: Sequence[str]) -> list[Section]:
    """Return a section for each curriculum among some folders: a row for every visit of a stage."""
    columns = ("stage", "began with", "steps", "figure", "value", "95% interval", "ended", "why")
    sections: list[Section] = []
    for number, name in enumerate(names, start=1):
        record = read_curriculum(Path(name))
        rows = tuple(
            (
                Cell(visit.folder),
                Cell(visit.start.rpartition("/")[2] or "the recipe's weights"),
                Cell(str(visit.steps) if visit.end else "under way", visit.steps),
                Cell(visit.figure),
                Cell(share(visit.value), visit.value),
                Cell(interval(visit.low, visit.high, share, none="none")),
                Cell(
                    visit.end or "not yet",
                    tone={"reached": "good", "demoted": "bad"}.get(visit.end or "", ""),  # type: ignore[arg-type]
                ),
                Cell(visit.why),
            )
            for visit in (record.visits if record else ())
        )
        if record is not None:
            table = Table(f"stages-{number}", f"Stages of {name}", columns, rows)
            about = "each trained from the weights of another; in order"
            sections.append(Section(f"curriculum-{number}", f"Curriculum {name}", (table,), about))
    return sections
