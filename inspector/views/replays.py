"""The replays of a run (``debate replay``): what another scheme would have paid, in sum and each debate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from debate.types import TurnId
from learner.replay.files import DEBATES, FACTS, SCHEMA
from learner.replay.reading import PARTS, STREAMS
from transcripts.codec import Json, decode
from transcripts.errors import FieldError
from transcripts.lines import parse_line

_ID = b'{"id":"'
Pair = tuple[float | None, float | None]


class ReplayError(ValueError):
    """A replay that cannot be read; the message names file, field and value."""


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
class TurnChange:
    """One turn under both schemes, by stream: rewards and advantages, (old, new), None without signal."""

    turn: TurnId
    persona: str
    rewards: Mapping[str, Pair]
    advantages: Mapping[str, Pair]


@dataclass(frozen=True, slots=True)
class DebateReplay:
    """A debate under both schemes. ``differs``: what is stored is not what the run's own scheme gives."""

    id: str
    step: int
    problem: str
    change: float
    differs: bool
    turns: tuple[TurnChange, ...]


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """A replay: both schemes, the figures by stream and by cell, and the debates that changed most.

    ``own`` and ``scheme`` are the tables rewards, advantages and debates_per_problem. ``steps``: the first and
    the last that were shown, None for the run's last. ``checked`` debates had something stored, and ``differ``
    of them something else than the run's own scheme gives.
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
        return _debate(self.folder / DEBATES, id)


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
        asked = _table(facts, "asked")
        return ReplayComparison(
            name=folder.name,
            folder=folder,
            overrides=_as(facts, "overrides", tuple[str, ...]),
            own=_table(asked, "own", "asked."),
            scheme=_table(asked, "scheme", "asked."),
            filter=_as(asked, "filter", str),
            steps=_as(asked, "steps", tuple[int, int | None]),
            damaged_lines=_as(facts, "damaged_lines", int),
            streams=_as(facts, "streams", tuple[StreamChange, ...]),
            cells=_as(facts, "cells", tuple[StreamChange, ...]),
            most_changed=_as(facts, "most_changed", tuple[MostChanged, ...]),
            **{name: _as(facts, name, int) for name in ("debates", "changed", "checked", "differ")},
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


def _as(fields: Mapping[str, Json], name: str, declared: Any) -> Any:
    if name not in fields:
        raise FieldError(name, "missing")
    return decode(fields[name], declared, name)


def _table(fields: Mapping[str, Json], name: str, within: str = "") -> Mapping[str, Json]:
    value = fields.get(name)
    if not isinstance(value, dict):
        raise FieldError(within + name, f"expected a table, got {value!r:.60}")
    return value


def _debate(path: Path, id: str) -> DebateReplay | None:
    try:
        found = path.stat()
        place = _places(path, found.st_mtime_ns, found.st_size).get(id.encode())
        if place is None:
            return None
        with path.open("rb") as file:
            file.seek(place)
            line = file.readline()
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}; the replay was cut off, run it again") from error
    try:
        return _read(cast("Mapping[str, Json]", parse_line(line)))
    except (FieldError, LookupError, TypeError, AttributeError) as error:
        told = error if isinstance(error, FieldError) else f"{type(error).__name__}: {error}"
        raise ReplayError(f"{path}: debate {id}: {told}") from error


@lru_cache(maxsize=4)
def _places(path: Path, changed: int, size: int) -> dict[bytes, int]:
    """Return where the line of each debate begins; the time of change and the size tell files apart."""
    places: dict[bytes, int] = {}
    at = 0
    with path.open("rb") as file:
        for line in file:
            if line.startswith(_ID):
                places[line[len(_ID) : line.index(b'"', len(_ID))]] = at
            at += len(line)
    return places


def _read(data: Mapping[str, Json]) -> DebateReplay:
    personas: tuple[str, ...] = _as(data, "personas", tuple[str, ...])
    turns: tuple[TurnId, ...] = _as(data, "turns", tuple[TurnId, ...])
    rewards, advantages = (
        _pairs(data, kind, names, len(turns)) for kind, names in (("rewards", STREAMS), ("advantages", PARTS))
    )
    return DebateReplay(
        id=_as(data, "id", str),
        step=_as(data, "step", int),
        problem=_as(data, "problem", str),
        change=_as(data, "change", float),
        differs=_as(data, "differs", bool),
        turns=tuple(
            TurnChange(
                turn,
                personas[turn.agent],
                {name: column[place] for name, column in rewards.items()},
                {name: column[place] for name, column in advantages.items()},
            )
            for place, turn in enumerate(turns)
        ),
    )


def _pairs(data: Mapping[str, Json], kind: str, names: Iterable[str], turns: int) -> dict[str, list[Pair]]:
    """Return for each stream the numbers of the turns, old and new; what is not in ``new`` is as before."""
    old, new = (_table(_table(data, when), kind, f"{when}.") for when in ("old", "new"))
    found: dict[str, list[Pair]] = {}
    for name in names:
        before: tuple[float | None, ...] = _as(old, name, tuple[float | None, ...])
        after: tuple[float | None, ...] = _as(new, name, tuple[float | None, ...]) if name in new else before
        for when, column in (("old", before), ("new", after)):
            if len(column) != turns:
                raise FieldError(f"{when}.{kind}.{name}", f"{len(column)} numbers for {turns} turns")
        found[name] = list(zip(before, after, strict=True))
    return found
