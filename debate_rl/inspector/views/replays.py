"""The replays of a run (``debate replay``): rewards under another scheme, in total and by debate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from debate.files import LARGEST, open_plain, plain_lines, read_plain
from debate.types import TurnId
from debate.values import Value
from debate_rl.formatting import fixed, percent, round_name, round_number
from debate_rl.inspector.blocks import Block, Line, Link, Section, Span, Table, Words, cut, to_debate
from debate_rl.replay.summary import DEBATES, FACTS, SCHEMA
from rewards import STREAMS
from transcripts.codec import decode
from transcripts.errors import FieldError
from transcripts.record import PARTS, named

MOST_ROWS = 200
_ID = b'{"id":"'
OldNew: TypeAlias = tuple[float | None, float | None]
Columns: TypeAlias = dict[str, tuple[float | None, ...]]
"""Values by stream, one for each turn."""


class ReplayError(ValueError):
    """A replay that cannot be read. The message names file, field and value."""


class _Scheme(msgspec.Struct):
    rewards: Columns
    advantages: Columns


class _Line(msgspec.Struct):
    """A line of debates.jsonl. ``new`` contains only streams that differ from ``old``."""

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
    """A debate under both schemes. ``differs``: the stored values differ from the run's own scheme."""

    id: str
    step: int
    problem: str
    change: float
    differs: bool
    turns: tuple[TurnChange, ...]
    rounds: int | None = None


@dataclass(frozen=True, slots=True)
class ReplayName:
    """A replay's folder, overrides, number of debates and of changes. ``problem``: why it cannot be read."""

    name: str
    overrides: tuple[str, ...] = ()
    debates: int = 0
    changed: int = 0
    problem: str = ""


class StreamChange(Value, frozen=True):
    """Advantages of a stream, for one persona and round or for all. Fractions and means as in replay.json."""

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
    """The input of a replay: both schemes as tables, and the first and last step (None: the run's)."""

    own: dict[str, Any]
    scheme: dict[str, Any]
    filter: str
    steps: tuple[int, int | None]


class ReplayFacts(Value, frozen=True, forbid_unknown_fields=False):
    """replay.json: the figures by stream and by cell, and the debates that changed most.

    ``checked``: the number of debates with stored values; in ``differ`` of these, the stored values differ
    from the run's own scheme. ``rounds``: the round of the final ballot, None in files of earlier versions.
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
        """The folder's name."""
        return self.folder.name

    def debate(self, id: str) -> DebateReplay | None:
        """Return one debate, or None if the replay lacks it. ReplayError if it is damaged."""
        path = self.folder / DEBATES
        try:
            file_now = path.stat()
            start = _starts(path, file_now.st_mtime_ns, file_now.st_size).get(id.encode())
            if start is None:
                return None
            with open_plain(path) as file:
                file.seek(start)
                line = decode(file.readline(LARGEST), _Line)
            pairs = zip(_pairs(line, "rewards", STREAMS), _pairs(line, "advantages", PARTS), strict=True)
            by_turn = zip(line.turns, pairs, strict=True)
            turns = tuple(TurnChange(turn, line.personas[turn.agent], *pair) for turn, pair in by_turn)
            facts = (line.id, line.step, line.problem, line.change, line.differs)
            return DebateReplay(*facts, turns, line.rounds)
        except OSError as error:
            raise _unreadable(path, error) from error
        except FieldError as error:
            raise ReplayError(f"{path}: debate {id}: {error}") from error
        except IndexError as error:
            raise ReplayError(f"{path}: debate {id}: personas: there are fewer than agents") from error


def replays(run: Path) -> list[ReplayName]:
    """Return the replays of a run by name. Unreadable replays have the reason in ``problem``."""
    try:
        names = sorted(child.name for child in (run / "replays").iterdir() if child.is_dir())
    except OSError:
        return []
    listed: list[ReplayName] = []
    for name in names:
        try:
            facts = read_replay(run, name).facts
            listed.append(ReplayName(name, facts.overrides, facts.debates, facts.changed))
        except ReplayError as error:
            listed.append(ReplayName(name, problem=str(error)))
    return listed


def read_replay(run: Path, name: str) -> StoredReplay:
    """Return a replay of a run by its name, or at its own path (``--out``).

    ReplayError, in one line, if the replay is missing, damaged or has a newer schema.
    """
    known = [path.name for path in (run / "replays").glob("*")]
    folder = run / "replays" / name if name in known else Path(name)
    path = folder / FACTS
    if name not in known and not path.is_file():
        names = ", ".join(sorted(known)) or "none (debate replay makes them)"
        raise ReplayError(f"{run}: no replay {name!r}; there are {names}")
    what = "is not a replay: "
    try:
        data = read_plain(path)
        schema = decode(data, dict[str, Any]).get("schema")
        if type(schema) is not int or schema < 1:
            raise FieldError("schema", f"expected {SCHEMA}, got {schema!r:.60}")
        what = ""
        if schema > SCHEMA:
            raise FieldError("schema", f"{schema} is newer than {SCHEMA}, which this version reads")
        return StoredReplay(folder, decode(data, ReplayFacts))
    except OSError as error:
        raise _unreadable(path, error) from error
    except FieldError as error:
        raise ReplayError(f"{path}: {what}{error}") from error


def _unreadable(path: Path, error: OSError) -> ReplayError:
    torn = "; the replay was interrupted, run it again" if isinstance(error, FileNotFoundError) else ""
    return ReplayError(f"{path}: {error.strerror}{torn}")


@lru_cache(maxsize=4)
def _starts(path: Path, changed: int, size: int) -> dict[bytes, int]:
    """Return the offset of each debate's line. Modification time and size identify the file's version."""
    starts: dict[bytes, int] = {}
    at = 0
    for line in plain_lines(path):
        if line.startswith(_ID) and line.endswith(b"\n"):
            starts[line[len(_ID) :].partition(b'"')[0]] = at
        at += len(line)
    return starts


def _pairs(line: _Line, kind: str, names: Sequence[str]) -> list[dict[str, OldNew]]:
    """Return the old and new values of each turn by stream. Streams that are not in ``new`` are unchanged."""
    old: Columns = getattr(line.old, kind)
    new: Columns = getattr(line.new, kind)
    for where, columns in (("old", old), ("new", new)):
        for name in names:
            if where == "old" and name not in columns:
                raise FieldError(f"old.{kind}.{name}", "missing")
            if name in columns and len(columns[name]) != len(line.turns):
                count = f"{len(columns[name])} numbers for {len(line.turns)} turns"
                raise FieldError(f"{where}.{kind}.{name}", count)
    both = {name: list(zip(old[name], new.get(name, old[name]), strict=True)) for name in names}
    return [{name: both[name][index] for name in names} for index in range(len(line.turns))]


CHANGE_HEADS = ("stream", "persona", "round", ">turns", ">sign changed", ">gained", ">lost")
CHANGE_HEADS += (">old", ">new", ">moved")


def replay_blocks(replay: StoredReplay) -> list[Block]:
    """Return a replay's figures in total and by persona and round, and the most changed debates."""
    facts, filter = replay.facts, replay.facts.asked.filter
    of = f" that match {filter}" if filter else ""
    blocks: list[Block] = [
        Line(Span(" ".join(facts.overrides) or "the run's own scheme", "code")),
        Line(f"{facts.changed:,} of {facts.debates:,} debates{of} have new advantages", name="replay-sum"),
        Line(f"in {facts.differ:,} of {facts.checked:,}, stored values differ from the run's own scheme"),
    ]
    if facts.damaged_lines:
        blocks.append(Line(f"{facts.damaged_lines:,} damaged lines; their groups lack a debate", "notice"))
    cells, more = cut(_changes(facts.cells, facts), MOST_ROWS)
    changed: list[str | Span] = []
    for one in facts.most_changed[:MOST_ROWS]:
        link = Link(("replays", replay.name), (("debate", one.id),))
        changed += [Span(one.id, link=link), f" ({one.change:.3g})  "]
    most = Line(changed or "none", name="most-changed")
    return [
        *blocks,
        Section("by stream", [Table(CHANGE_HEADS, list(_changes(facts.streams, facts)), name="streams")]),
        Section("most changed debates (sum of |new - old|)", [most]),
        Section("by persona and round", [Table(CHANGE_HEADS, cells, name="cells"), *more]),
    ]


def _changes(changes: Sequence[StreamChange], facts: ReplayFacts) -> Iterator[Sequence[Words]]:
    for one in changes:
        round_ = "all" if one.round is None else round_number(one.round, facts.rounds)
        shares = (percent(value) for value in (one.sign_changed, one.gained, one.lost))
        means = (fixed(value, "+.3f") for value in (one.old, one.new, one.moved))
        yield (one.stream, one.persona or "all", round_, f"{one.turns:,}", *shares, *means)


def debate_replay_blocks(debate: DebateReplay) -> list[Block]:
    """Return one debate under both schemes: the rewards and advantages of each turn, old and new."""
    streams = list(debate.turns[0].advantages) if debate.turns else []
    rows: list[Sequence[Words]] = []
    for turn in debate.turns:
        advantages = (_change(turn.advantages, name) for name in streams)
        paid = [name for name, values in turn.rewards.items() if any(values)]
        rewards = [f"{name} {_change(turn.rewards, name)}" for name in paid]
        where = (named(turn.turn), round_name(turn.turn.round, debate.rounds), turn.persona)
        rows.append((*where, *advantages, ", ".join(rewards)))
    blocks: list[Block] = [Table(("turn", "round", "persona", *streams, "rewards"), rows)]
    blocks.append(Line(f"sum of |new - old| over generator, judge and format: {debate.change:.3g}"))
    if debate.differs:
        blocks.append(Line("the stored values differ from the run's own scheme", "notice"))
    link = Span(f"debate {debate.id}", link=to_debate(debate.id))
    return [Section((link, f" under both schemes: {debate.problem}"), blocks, name="replay-debate")]


def _change(values: Mapping[str, OldNew], stream: str) -> str:
    old, new = values[stream]
    before, after = fixed(old, "+.3f"), fixed(new, "+.3f")
    return before if old == new else f"{before} → {after}"
