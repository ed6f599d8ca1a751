"""The debates of a run folder, read once for a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from debate_rl.reports.figures import figures_of
from debate_rl.reports.figures.study import Study
from debate_rl.reports.judgment import Judged
from transcripts import RunStore, TranscriptError, shard_paths

BROKEN = (LookupError, ValueError)
"""What a record raises whose turns or tables do not fit its protocol."""


def judge_run(name: str, filter: str = "", *, tell: Callable[[int], object] = lambda total: None) -> Judged:
    """Return the debates of a run that a filter finds; ``tell`` is told after each how many there are in all.

    TranscriptError where there is no run, none of its debates is found, or one of them cannot be read.
    """
    _refuse_other_folders(Path(name))
    study = Study()
    with RunStore.open(name) as run:
        damage, total = run.damage, run.count(filter)
        for id, record in run.records(filter):
            try:
                study.add(record)
            except BROKEN as error:
                raise TranscriptError(f"{name}: debate {id} cannot be read: {error!r}") from error
            tell(total)
    if not total:
        found = f" that {filter} finds" if filter else ""
        why = f"; what cannot be read: {damage[0]}" if damage else ""
        raise TranscriptError(f"{name}: holds no debates{found}{why}")
    return Judged(name, study, figures_of(study), filter, len(damage))


def _refuse_other_folders(folder: Path) -> None:
    """TranscriptError where no transcripts are: opening a folder would leave an index in it."""
    if not folder.exists():
        raise TranscriptError(f"{folder}: there is no such folder")
    try:
        if folder.is_dir() and not shard_paths(folder):
            raise TranscriptError(f"{folder}: not the folder of a run (no transcripts in it)")
    except OSError as error:
        raise TranscriptError(f"{folder}: cannot be read: {error.strerror}") from error
