"""The replays of a run (``debate replay``): what another scheme would have given, in sum and each debate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from debate.files import LARGEST, open_plain, plain_lines, read_plain
from debate.types import TurnId
from debate.values import Value
from debate_rl.replay.summary import DEBATES, FACTS, SCHEMA
from rewards import STREAMS
from transcripts.codec import decode
from transcripts.errors import FieldError
from transcripts.record import PARTS

_ID = b'{"id":"'
OldNew: TypeAlias = tuple[float | None, float | None]
StreamColumn: TypeAlias = tuple[float | None, ...]


class _Columns(msgspec.Struct):
    """Numbers by stream, one for each turn."""

    rewards: dict[str, StreamColumn]
    advantages: dict[str, StreamColumn]


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
    rounds: int | None = None


class ReplayError(ValueError):
    """A replay that cannot be read; the message names file, field and value."""


@dataclass(frozen=True, slots=True)
class TurnChange:
    """One turn under both schemes, by stream: rewards and advantages, (old, new), None without signal."""

    turn: TurnId
    persona: str
    rewards: Mapping[str, OldNew]
    advantages: Mapping[str, OldNew]


@dataclass(frozen=True, slots=True)
class DebateReplay:
    """A debate under both schemes. ``differs``: what is stored is not what the run's own scheme gives.

    ``rounds``: R, None where an earlier version did not say.
    """

    id: str
    step: int
    problem: str
    change: float
    differs: bool
    turns: tuple[TurnChange, ...]
    rounds: int | None = None


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
    sign_changed: float
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


class Question(Value, frozen=True, forbid_unknown_fields=False):
    """What a replay was asked: both schemes, as tables rewards, advantages and group_size.

    ``steps``: the first and the last that were shown, None for the run's last.
    """

    own: dict[str, Any]
    scheme: dict[str, Any]
    filter: str
    steps: tuple[int, int | None]


class ReplayFacts(Value, frozen=True, forbid_unknown_fields=False):
    """replay.json: the figures by stream and by cell, and the debates that changed most.

    ``checked`` debates had something stored, and ``differ`` of them something else than the run's own scheme
    gives. ``rounds``: a round of this number is the final ballot; None where an earlier version did not say.
    """

    overrides: tuple[str, ...]
    asked: Question
    damaged_lines: int
    debates: int
    changed: int
    checked: int
    differ: int
    most_changed: tuple[MostChanged, ...]
    streams: tuple[StreamChange, ...]
    cells: tuple[StreamChange, ...]
    rounds: int | None = None


@dataclass(frozen=True, slots=True)
class StoredReplay:
    """A replay: its folder and its figures."""

    folder: Path
    facts: ReplayFacts

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    def debate(self, id: str) -> DebateReplay | None:
        """Return one debate, None where the replay did not show it; ReplayError where it is damaged.

        The first call goes through the file once to see where each debate begins.
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
        facts = read_replay(run, name).facts
    except ReplayError as error:
        return ReplayName(name, problem=str(error))
    return ReplayName(name, facts.overrides, facts.debates, facts.changed)


def read_replay(run: Path, name: str) -> StoredReplay:
    """Return a replay of a run by its name, or at a path of its own (``--out``).

    ReplayError, in one line, where it is not there, damaged or of a newer schema.
    """
    folder = _folder(run, name)
    return StoredReplay(folder, _facts(folder / FACTS))


def _folder(run: Path, name: str) -> Path:
    """Return the folder of a replay: right below RUN/replays, or a path."""
    known = [path.name for path in (run / "replays").glob("*")]
    if name in known:
        return run / "replays" / name
    if (Path(name) / FACTS).is_file():
        return Path(name)
    names = ", ".join(sorted(known)) or "none (debate replay makes them)"
    raise ReplayError(f"{run}: no replay {name!r}; there are {names}")


@contextmanager
def _plain_file(path: Path) -> Iterator[None]:
    """Raise ReplayError for what is not a plain file, and for one that cannot be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise ReplayError(f"{path}: {error.strerror}; the replay was interrupted, run it again") from error
    except OSError as error:
        raise ReplayError(f"{path}: {error.strerror}") from error


def _facts(path: Path) -> ReplayFacts:
    """Return the figures of a replay; ReplayError for what is not one, and for a newer schema."""
    with _plain_file(path):
        data = read_plain(path)
    try:
        schema = decode(data, _Schema).schema
    except FieldError as error:
        raise ReplayError(f"{path}: is not a replay: {error}") from error
    if type(schema) is not int or schema < 1:
        raise ReplayError(f"{path}: is not a replay: schema: expected {SCHEMA}, got {schema!r:.60}")
    if schema > SCHEMA:
        raise ReplayError(f"{path}: schema: {schema} is newer than {SCHEMA}, which this version reads")
    try:
        return decode(data, ReplayFacts)
    except FieldError as error:
        raise ReplayError(f"{path}: {error}") from error


def debate_of(path: Path, id: str) -> DebateReplay | None:
    """Return a debate of debates.jsonl, None where it is not there; ReplayError where it is damaged."""
    with _plain_file(path):
        file_now = path.stat()
        start = _starts(path, file_now.st_mtime_ns, file_now.st_size).get(id.encode())
        if start is None:
            return None
        with open_plain(path) as file:
            file.seek(start)
            line = file.readline(LARGEST)
    try:
        return _debate(decode(line, _Line))
    except FieldError as error:
        raise ReplayError(f"{path}: debate {id}: {error}") from error
    except IndexError as error:
        raise ReplayError(f"{path}: debate {id}: personas: fewer than agents") from error


@lru_cache(maxsize=4)
def _starts(path: Path, changed: int, size: int) -> dict[bytes, int]:
    """Return where the line of each debate begins; the time of change and the size tell files apart."""
    starts: dict[bytes, int] = {}
    at = 0
    for line in plain_lines(path):
        if line.startswith(_ID) and line.endswith(b"\n"):
            starts[line[len(_ID) :].partition(b'"')[0]] = at
        at += len(line)
    return starts


def _debate(line: _Line) -> DebateReplay:
    rewards, advantages = _pairs(line, "rewards", STREAMS), _pairs(line, "advantages", PARTS)
    turns = tuple(
        TurnChange(turn, line.personas[turn.agent], rewards[index], advantages[index])
        for index, turn in enumerate(line.turns)
    )
    return DebateReplay(line.id, line.step, line.problem, line.change, line.differs, turns, line.rounds)


def _pairs(line: _Line, kind: str, names: Sequence[str]) -> list[dict[str, OldNew]]:
    """Return for each turn its numbers by stream, old and new; what is not in ``new`` is as before."""
    old, new = getattr(line.old, kind), getattr(line.new, kind)
    before = [_column(line, old, f"old.{kind}", name) for name in names]
    after = [
        _column(line, new, f"new.{kind}", name) if name in new else column
        for name, column in zip(names, before, strict=True)
    ]
    return [
        {name: (a[index], b[index]) for name, a, b in zip(names, before, after, strict=True)}
        for index in range(len(line.turns))
    ]


def _column(line: _Line, columns: Mapping[str, StreamColumn], where: str, name: str) -> StreamColumn:
    if name not in columns:
        raise FieldError(f"{where}.{name}", "missing")
    if len(columns[name]) != len(line.turns):
        raise FieldError(f"{where}.{name}", f"{len(columns[name])} numbers for {len(line.turns)} turns")
    return columns[name]
