"""One debate of a replay: its line in debates.jsonl, found by its id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import msgspec

from debate.types import TurnId
from rewards import STREAMS
from transcripts.codec import decode
from transcripts.errors import FieldError
from transcripts.record import PARTS

_ID = b'{"id":"'
Pair: TypeAlias = tuple[float | None, float | None]
Column: TypeAlias = tuple[float | None, ...]


class _Columns(msgspec.Struct):
    """Numbers by stream, one for each turn."""

    rewards: dict[str, Column]
    advantages: dict[str, Column]


class _Line(msgspec.Struct):
    """A line of debates.jsonl; ``new`` holds the streams that are not as in ``old``."""

    id: str
    step: int
    problem: str
    change: float
    differs: bool
    personas: tuple[str, ...]
    turns: tuple[TurnId, ...]
    old: _Columns
    new: _Columns


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
        return _debate(decode(line, _Line))
    except FieldError as error:
        raise ReplayError(f"{path}: debate {id}: {error}") from error
    except IndexError as error:
        raise ReplayError(f"{path}: debate {id}: personas: fewer than agents") from error


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


def _debate(line: _Line) -> DebateReplay:
    rewards, advantages = (
        _pairs(line, kind, names) for kind, names in (("rewards", STREAMS), ("advantages", PARTS))
    )
    turns = tuple(
        TurnChange(
            turn,
            line.personas[turn.agent],
            {name: column[index] for name, column in rewards.items()},
            {name: column[index] for name, column in advantages.items()},
        )
        for index, turn in enumerate(line.turns)
    )
    return DebateReplay(line.id, line.step, line.problem, line.change, line.differs, turns)


def _pairs(line: _Line, kind: str, names: Iterable[str]) -> dict[str, list[Pair]]:
    """Return for each stream the numbers of the turns, old and new; what is not in ``new`` is as before."""
    old, new = getattr(line.old, kind), getattr(line.new, kind)
    found: dict[str, list[Pair]] = {}
    for name in names:
        before = _column(line, old, f"old.{kind}", name)
        after = _column(line, new, f"new.{kind}", name) if name in new else before
        found[name] = list(zip(before, after, strict=True))
    return found


def _column(line: _Line, columns: Mapping[str, Column], where: str, name: str) -> Column:
    if name not in columns:
        raise FieldError(f"{where}.{name}", "missing")
    if len(columns[name]) != len(line.turns):
        raise FieldError(f"{where}.{name}", f"{len(columns[name])} numbers for {len(line.turns)} turns")
    return columns[name]
