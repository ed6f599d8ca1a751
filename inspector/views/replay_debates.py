"""One debate of a replay: its line in debates.jsonl, found by its id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from debate.types import TurnId
from learner.replay.reading import PARTS, STREAMS
from transcripts.codec import Json, decode
from transcripts.errors import FieldError
from transcripts.lines import parse_line

_ID = b'{"id":"'
Pair: TypeAlias = tuple[float | None, float | None]
_Column: TypeAlias = tuple[float | None, ...]


class ReplayError(ValueError):
    """A replay that cannot be read; the message names file, field and value."""


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


def debate_of(path: Path, id: str) -> DebateReplay | None:
    """Return a debate of debates.jsonl, None where it is not there; ReplayError where it is damaged."""
    try:
        refuse_no_file(path)
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


def refuse_no_file(path: Path) -> None:
    """Raise ReplayError for what is no plain file: a pipe would be waited for, a device has no end."""
    if path.exists() and not path.is_file():
        raise ReplayError(f"{path}: not a plain file")


@lru_cache(maxsize=4)
def _places(path: Path, changed: int, size: int) -> dict[bytes, int]:
    """Return where the line of each debate begins; the time of change and the size tell files apart."""
    places: dict[bytes, int] = {}
    at = 0
    with path.open("rb") as file:
        for line in file:
            if line.startswith(_ID) and line.endswith(b"\n"):
                places[line[len(_ID) :].partition(b'"')[0]] = at
            at += len(line)
    return places


def _read(data: Mapping[str, Json]) -> DebateReplay:
    personas: tuple[str, ...] = field_of(data, "personas", tuple[str, ...])
    turns: tuple[TurnId, ...] = field_of(data, "turns", tuple[TurnId, ...])
    rewards, advantages = (
        _pairs(data, kind, names, len(turns)) for kind, names in (("rewards", STREAMS), ("advantages", PARTS))
    )
    return DebateReplay(
        id=field_of(data, "id", str),
        step=field_of(data, "step", int),
        problem=field_of(data, "problem", str),
        change=field_of(data, "change", float),
        differs=field_of(data, "differs", bool),
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
    old, new = (table_of(table_of(data, when), kind, f"{when}.") for when in ("old", "new"))
    found: dict[str, list[Pair]] = {}
    for name in names:
        before: tuple[float | None, ...] = field_of(old, name, tuple[float | None, ...])
        after: tuple[float | None, ...] = (
            field_of(new, name, tuple[float | None, ...]) if name in new else before
        )
        for when, column in (("old", before), ("new", after)):
            if len(column) != turns:
                raise FieldError(f"{when}.{kind}.{name}", f"{len(column)} numbers for {turns} turns")
        found[name] = list(zip(before, after, strict=True))
    return found


def field_of(fields: Mapping[str, Json], name: str, declared: Any) -> Any:
    """Return a field as its declared type; FieldError where it is missing or something else."""
    if name not in fields:
        raise FieldError(name, "missing")
    return decode(fields[name], declared, name)


def table_of(fields: Mapping[str, Json], name: str, within: str = "") -> Mapping[str, Json]:
    """Return a field that is a table of fields; ``within`` is where it stands."""
    value = fields.get(name)
    if not isinstance(value, dict):
        raise FieldError(within + name, f"expected a table, got {value!r:.60}")
    return value
