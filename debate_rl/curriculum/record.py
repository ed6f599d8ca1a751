"""RUN/curriculum.json: the visits of a curriculum's stages, how each ended, and what comes next.

RUN/config.toml       the configuration with its [[stages]]
    curriculum.json   this record
    stages/01_easy/   a run of its own for each visit of a stage
           02_hard/
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from debate.files import read_plain
from debate.values import Value
from debate_rl.runs.folder import write_whole

NAME, STAGES = "curriculum.json", "stages"
FORMAT = 1
LARGEST = 1 << 24
Outcome: TypeAlias = Literal["reached", "demoted"]
End: TypeAlias = Literal["reached", "demoted", "limit", "done"]


class Visit(Value, frozen=True):
    """One visit of a stage: the training of the stage from given weights. ``stage``: the stage's index.

    ``start``: the weights that the visit began with, as RUN@STEP, or "". ``folder``: its run, below the
    curriculum's folder. After its end, ``steps``, ``end`` and ``why`` say how long it was and why it ended;
    ``value``, ``low`` and ``high`` are those of ``figure`` in its last evaluation, if known.
    """

    stage: int
    name: str
    folder: str
    seed: int
    start: str = ""
    demotes: bool = False
    steps: int = 0
    end: End | None = None
    why: str = ""
    figure: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Curriculum(Value, frozen=True):
    """The visits so far, in order; the last one may be under way."""

    visits: tuple[Visit, ...] = ()
    format: int = FORMAT


class CurriculumError(ValueError):
    """A record that cannot be read; the message names the file."""


def read_curriculum(run: Path) -> Curriculum | None:
    """Return the record in a folder, or None if there is no record. CurriculumError if it is damaged."""
    path = run / NAME
    if not path.exists():
        return None
    try:
        found = msgspec.json.decode(read_plain(path, LARGEST), type=Curriculum, strict=True)
    except (OSError, ValueError) as error:
        raise CurriculumError(f"{path}: is damaged: {error}; choose another run.dir") from error
    if found.format != FORMAT:
        raise CurriculumError(f"{path}: has format {found.format}, but this version reads {FORMAT}")
    folders = (visit.folder for visit in found.visits)
    bad = (one for one in folders if one in ("", "..") or Path(one).name != one)
    if (strange := next(bad, None)) is not None:
        raise CurriculumError(
            f"{path}: the folder {strange!r} of a visit is not a name; choose another run.dir"
        )
    return found


def write_curriculum(run: Path, record: Curriculum) -> None:
    """Replace the record atomically."""
    write_whole(run / NAME, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def stage_folder(run: Path, visit: Visit) -> Path:
    """Return the folder of the run of a visit."""
    return run / STAGES / visit.folder


def stage_runs(run: Path) -> list[Path]:
    """Return the folders of the runs of a curriculum, in the order of their visits. Other runs have none."""
    record = read_curriculum(run)
    return [stage_folder(run, visit) for visit in record.visits] if record else []
