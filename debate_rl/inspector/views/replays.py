"""The replays of a run (``debate replay``): what another scheme would have paid, in sum and each debate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from debate.values import Value
from debate_rl.inspector.views.replay_debates import (
    DebateReplay,
    ReplayError,
    TurnChange,
    debate_of,
    refuse_no_file,
)
from debate_rl.replay.files import DEBATES, FACTS, SCHEMA
from transcripts.codec import decode
from transcripts.errors import FieldError

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


class StreamChange(Value, frozen=True):
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


class MostChanged(Value, frozen=True):
    """A debate, and the sum of |new - old| over its advantages."""

    id: str
    change: float


class _Schema(msgspec.Struct):
    schema: Any = None


class _Asked(msgspec.Struct):
    own: dict[str, Any]
    scheme: dict[str, Any]
    filter: str
    steps: tuple[int, int | None]


class _Facts(msgspec.Struct):
    """replay.json, as far as it is shown."""

    overrides: tuple[str, ...]
    asked: _Asked
    damaged_lines: int
    debates: int
    changed: int
    checked: int
    differ: int
    most_changed: tuple[MostChanged, ...]
    streams: tuple[StreamChange, ...]
    cells: tuple[StreamChange, ...]


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
    facts = _facts(folder / FACTS)
    return ReplayComparison(
        name=folder.name,
        folder=folder,
        overrides=facts.overrides,
        own=facts.asked.own,
        scheme=facts.asked.scheme,
        filter=facts.asked.filter,
        steps=facts.asked.steps,
        debates=facts.debates,
        changed=facts.changed,
        checked=facts.checked,
        differ=facts.differ,
        damaged_lines=facts.damaged_lines,
        streams=facts.streams,
        cells=facts.cells,
        most_changed=facts.most_changed,
    )


def _folder(run: Path, name: str) -> Path:
    """Return the folder of a replay: right below RUN/replays, or a path."""
    known = [one.name for one in (run / "replays").glob("*")] if (run / "replays").is_dir() else []
    if name in known:
        return run / "replays" / name
    if (Path(name) / FACTS).is_file():
        return Path(name)
    told = ", ".join(sorted(known)) or "none (debate replay makes them)"
    raise ReplayError(f"{run}: no replay {name!r}; there are {told}")


def _facts(path: Path) -> _Facts:
    """Return the figures of a replay; ReplayError for what is not one, and for a newer schema."""
    try:
        refuse_no_file(path)
        data = path.read_bytes()
        schema = decode(data, _Schema).schema
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}; the replay was cut off, run it again") from error
    except FieldError as error:
        raise ReplayError(f"{path}: is not a replay: {error}") from error
    if type(schema) is not int or schema < 1:
        raise ReplayError(f"{path}: is not a replay: schema: expected {SCHEMA}, got {schema!r:.60}")
    if schema > SCHEMA:
        raise ReplayError(f"{path}: schema: {schema} is newer than {SCHEMA}, which this version reads")
    try:
        return decode(data, _Facts)
    except FieldError as error:
        raise ReplayError(f"{path}: {error}") from error
