"""RUN/curriculum.json: the visits of a curriculum's stages, and how each visit ended.

RUN/config.toml       the configuration with its [[stages]]
    curriculum.json   this record
    stages/01_easy/   the run of each visit of a stage
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
    """A visit of a stage: one training of the stage from given weights. ``stage``: the index of the stage.

    ``start``: the start weights as RUN@STEP, or "". ``folder``: the name of the run folder below stages/.
    After the visit, ``steps``, ``end`` and ``why`` are its length and the reason of its end, and ``value``,
    ``low`` and ``high`` are the last value of ``figure`` with its interval, if known.
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
    """The visits so far, in order. The last visit may be in progress."""

    visits: tuple[Visit, ...] = ()
    format: int = FORMAT


class CurriculumError(ValueError):
    """A record that cannot be read. The message names the file."""


def read_curriculum(run: Path) -> Curriculum | None:
    """Return the record in a folder, or None without a record. Raise CurriculumError if it is damaged."""
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
            f"{path}: the folder {strange!r} of a visit is not a valid name; choose another run.dir"
        )
    return found


def write_curriculum(run: Path, record: Curriculum) -> None:
    """Replace the record atomically."""
    write_whole(run / NAME, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def stage_folder(run: Path, visit: Visit) -> Path:
    """Return the folder of the run of a visit."""
    return run / STAGES / visit.folder


def stage_runs(run: Path) -> list[Path]:
    """Return the folders of the runs of a curriculum, in the order of visits. Empty for other runs."""
    record = read_curriculum(run)
    return [stage_folder(run, visit) for visit in record.visits] if record else []
