"""The replays of a run (``debate replay``): what another scheme would have given, in sum and each debate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
Columns: TypeAlias = dict[str, tuple[float | None, ...]]
"""Numbers by stream, one for each turn."""


class ReplayError(ValueError):
    """A replay that cannot be read; the message names file, field and value."""


class _Scheme(msgspec.Struct):
    rewards: Columns
    advantages: Columns


class _Line(msgspec.Struct):
    """A line of debates.jsonl; ``new`` holds the streams that are not as in ``old``."""

    id: str
    step: int
    problem: str
    change: float
    differs: bool
    personas: tuple[str, ...]
    turns: tuple[TurnId, ...]
    old: _Scheme
    new: _Scheme
    rounds: int | None = None


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


class Question(Value, frozen=True, forbid_unknown_fields=False):
    """What a replay was asked: both schemes as tables, and the first and last step (None: the run's)."""

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
        path = self.folder / DEBATES
        try:
            file_now = path.stat()
            start = _starts(path, file_now.st_mtime_ns, file_now.st_size).get(id.encode())
            if start is None:
                return None
            with open_plain(path) as file:
                file.seek(start)
                return _debate(decode(file.readline(LARGEST), _Line))
        except OSError as error:
            raise _unreadable(path, error) from error
        except FieldError as error:
            raise ReplayError(f"{path}: debate {id}: {error}") from error
        except IndexError as error:
            raise ReplayError(f"{path}: debate {id}: personas: fewer than agents") from error


def replays(run: Path) -> list[ReplayName]:
    """Return the replays of a run by name, those that cannot be read with the reason."""
    try:
        names = sorted(child.name for child in (run / "replays").iterdir() if child.is_dir())
    except OSError:
        return []
    found: list[ReplayName] = []
    for name in names:
        try:
            facts = read_replay(run, name).facts
        except ReplayError as error:
            found.append(ReplayName(name, problem=str(error)))
        else:
            found.append(ReplayName(name, facts.overrides, facts.debates, facts.changed))
    return found


def read_replay(run: Path, name: str) -> StoredReplay:
    """Return a replay of a run by its name, or at a path of its own (``--out``).

    ReplayError, in one line, where it is not there, damaged or of a newer schema.
    """
    known = [path.name for path in (run / "replays").glob("*")]
    folder = run / "replays" / name if name in known else Path(name)
    path = folder / FACTS
    if name not in known and not path.is_file():
        names = ", ".join(sorted(known)) or "none (debate replay makes them)"
        raise ReplayError(f"{run}: no replay {name!r}; there are {names}")
    try:
        data = read_plain(path)
        schema = decode(data, dict[str, Any]).get("schema")
    except OSError as error:
        raise _unreadable(path, error) from error
    except FieldError as error:
        raise ReplayError(f"{path}: is not a replay: {error}") from error
    if type(schema) is not int or schema < 1:
        raise ReplayError(f"{path}: is not a replay: schema: expected {SCHEMA}, got {schema!r:.60}")
    if schema > SCHEMA:
        raise ReplayError(f"{path}: schema: {schema} is newer than {SCHEMA}, which this version reads")
    try:
        return StoredReplay(folder, decode(data, ReplayFacts))
    except FieldError as error:
        raise ReplayError(f"{path}: {error}") from error


def _unreadable(path: Path, error: OSError) -> ReplayError:
    torn = "; the replay was interrupted, run it again" if isinstance(error, FileNotFoundError) else ""
    return ReplayError(f"{path}: {error.strerror}{torn}")


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
    old: Columns = getattr(line.old, kind)
    new: Columns = getattr(line.new, kind)
    for where, columns in (("old", old), ("new", new)):
        for name in names:
            if where == "old" and name not in columns:
                raise FieldError(f"old.{kind}.{name}", "missing")
            if name in columns and len(columns[name]) != len(line.turns):
                count = f"{len(columns[name])} numbers for {len(line.turns)} turns"
                raise FieldError(f"{where}.{kind}.{name}", count)
    return [
        {name: (old[name][index], new.get(name, old[name])[index]) for name in names}
        for index in range(len(line.turns))
    ]
