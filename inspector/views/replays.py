"""The replays of a run (``debate replay``): what another scheme would have paid, in sum and each debate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.views.replay_debates import (
    DebateReplay,
    ReplayError,
    TurnChange,
    debate_of,
    field_of,
    refuse_no_file,
    table_of,
)
from learner.replay.files import DEBATES, FACTS, SCHEMA
from transcripts.codec import Json
from transcripts.errors import FieldError
from transcripts.lines import parse_line

__all__ = [
    "DebateReplay",
    "MostChanged",
    "ReplayComparison",
    "ReplayError",
    "ReplayName",
    "StreamChange",
    "TurnChange",
    "read_replay",
    "replays",
]


@dataclass(frozen=True, slots=True)
class ReplayName:
    """A replay's folder, its overrides, debates and how many changed; ``problem``: why it cannot be read."""

    name: str
    overrides: tuple[str, ...] = ()
    debates: int = 0
    changed: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StreamChange:
    """Advantages of one stream, of one persona and round or of all; shares and means as in replay.json."""

    stream: str
    turns: int
    flipped: float
    gained: float
    lost: float
    old: float
    new: float
    moved: float
    persona: str | None = None
    round: int | None = None


@dataclass(frozen=True, slots=True)
class MostChanged:
    """A debate, and the sum of |new - old| over its advantages."""

    id: str
    change: float


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """A replay: both schemes, the figures by stream and by cell, and the debates that changed most.

    ``own`` and ``scheme`` are the tables rewards, advantages and debates_per_problem. ``steps``: the first
    and the last that were shown, None for the run's last. ``checked`` debates had something stored, and
    ``differ`` of them something else than the run's own scheme gives.
    """

    name: str
    folder: Path
    overrides: tuple[str, ...]
    own: Mapping[str, Any]
    scheme: Mapping[str, Any]
    filter: str
    steps: tuple[int, int | None]
    debates: int
    changed: int
    checked: int
    differ: int
    damaged_lines: int
    streams: tuple[StreamChange, ...]
    cells: tuple[StreamChange, ...]
    most_changed: tuple[MostChanged, ...]

    def debate(self, id: str) -> DebateReplay | None:
        """Return one debate, None where the replay did not show it; ReplayError where it is damaged.

        The first call goes through the file once for the places of all debates.
        """
        return debate_of(self.folder / DEBATES, id)


def replays(run: Path) -> list[ReplayName]:
    """Return the replays of a run by name, those that cannot be read with the reason."""
    try:
        names = sorted(child.name for child in (run / "replays").iterdir() if child.is_dir())
    except OSError:
        return []
    return [_listed(run, name) for name in names]


def _listed(run: Path, name: str) -> ReplayName:
    try:
        found = read_replay(run, name)
    except ReplayError as error:
        return ReplayName(name, problem=str(error))
    return ReplayName(name, found.overrides, found.debates, found.changed)


def read_replay(run: Path, name: str) -> ReplayComparison:
    """Return a replay of a run by its name, or at a path of its own (``--out``).

    ReplayError, in one line, where it is not there, damaged or of a newer schema.
    """
    folder = _folder(run, name)
    path = folder / FACTS
    facts = _facts(path)
    try:
        asked = table_of(facts, "asked")
        return ReplayComparison(
            name=folder.name,
            folder=folder,
            overrides=field_of(facts, "overrides", tuple[str, ...]),
            own=table_of(asked, "own", "asked."),
            scheme=table_of(asked, "scheme", "asked."),
            filter=field_of(asked, "filter", str),
            steps=field_of(asked, "steps", tuple[int, int | None]),
            damaged_lines=field_of(facts, "damaged_lines", int),
            streams=field_of(facts, "streams", tuple[StreamChange, ...]),
            cells=field_of(facts, "cells", tuple[StreamChange, ...]),
            most_changed=field_of(facts, "most_changed", tuple[MostChanged, ...]),
            **{name: field_of(facts, name, int) for name in ("debates", "changed", "checked", "differ")},
        )
    except FieldError as error:
        raise ReplayError(f"{path}: {error}") from error


def _folder(run: Path, name: str) -> Path:
    """Return the folder of a replay: right below RUN/replays, or a path."""
    known = [one.name for one in (run / "replays").glob("*")] if (run / "replays").is_dir() else []
    if name in known:
        return run / "replays" / name
    if (Path(name) / FACTS).is_file():
        return Path(name)
    told = ", ".join(sorted(known)) or "none (debate replay makes them)"
    raise ReplayError(f"{run}: no replay {name!r}; there are {told}")


def _facts(path: Path) -> Mapping[str, Json]:
    """Return the figures of a replay; ReplayError for what is none, and for a newer schema."""
    try:
        refuse_no_file(path)
        facts = parse_line(path.read_bytes())
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}; the replay was cut off, run it again") from error
    except FieldError as error:
        raise ReplayError(f"{path}: is no replay: {error}") from error
    schema = facts.get("schema") if isinstance(facts, dict) else None
    if not isinstance(facts, dict) or type(schema) is not int or schema < 1:
        raise ReplayError(f"{path}: is no replay: schema: expected {SCHEMA}, got {schema!r:.60}")
    if schema > SCHEMA:
        raise ReplayError(f"{path}: schema: {schema} is newer than {SCHEMA}, which this version reads")
    return facts
