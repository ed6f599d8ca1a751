"""Brings an index up to date with the shards: what is new is added, what changed is read again."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import cast

import orjson

from transcripts.codec import from_line
from transcripts.errors import FieldError, TranscriptError
from transcripts.files import PlainFile, reading
from transcripts.index.facts import Facts, IndexEntry, ProblemFacts, facts_of
from transcripts.index.schema import MOST_DEBATES, key_of
from transcripts.names import shard_paths, shard_step
from transcripts.record import check_record
from transcripts.sealed import LARGEST, SealedFile

Tell = Callable[[int, int], None]
"""Called with how much is done, and how much there is to do: shards, or bytes of text."""


def tell_nobody(done: int, total: int) -> None:
    """Show no progress."""


MOST_DAMAGED = 1000
"""Lines of a shard that are no debates, and are noted; what has more of them is not read on."""
COMMIT_S = 0.5
"""Seconds after which what was read is committed, for others to see."""
INSERT = f"INSERT INTO debates VALUES ({', '.join('?' * (4 + len(Facts._fields)))})"


@dataclass(frozen=True, slots=True)
class ShardState:
    """What the index knows of a shard: bytes and debates taken in, the hash of all their lines, and size and
    times of the file then.
    """

    bytes: int = 0
    debates: int = 0
    digest: bytes = b""
    size: int = -1
    mtime: int = -1
    ctime: int = -1

    def after(self, start: int, line: bytes) -> ShardState:
        """Return what is known with one line more, which begins at a byte."""
        return ShardState(start + len(line), self.debates + 1, chained(self.digest, line))


@dataclass(slots=True)
class Indexer:
    """Adds to one index within a transaction. ``added`` counts debates."""

    connection: sqlite3.Connection
    added: int = 0
    _problems: dict[ProblemFacts, int] = field(default_factory=dict[ProblemFacts, int])
    _persona_lists: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])

    def load_names(self) -> None:
        """Read what problems and lists of personas are known."""
        for key, *facts in self.connection.execute("SELECT * FROM problems"):
            self._problems[ProblemFacts(*facts)] = key
        for key, names in self.connection.execute("SELECT key, names FROM persona_lists"):
            self._persona_lists[tuple(orjson.loads(names))] = key

    def add(self, key: int, start: int, entry: IndexEntry) -> None:
        """Add one debate."""
        keys = (key, start, self._problem(entry.problem), self._personas_key(entry.personas))
        self.connection.execute(INSERT, (*keys, *entry.facts))
        if entry.answers:
            self.connection.executemany(
                "INSERT INTO answers VALUES (?, ?)", [(a, key) for a in entry.answers]
            )
        self.added += 1

    def _problem(self, facts: ProblemFacts) -> int:
        key = self._problems.get(facts)
        if key is None:
            key = self._problems[facts] = len(self._problems) + 1
            self.connection.execute("INSERT INTO problems VALUES (?, ?, ?, ?, ?, ?, ?)", (key, *facts))
        return key

    def _personas_key(self, names: tuple[str, ...]) -> int:
        key = self._persona_lists.get(names)
        if key is None:
            key = self._persona_lists[names] = len(self._persona_lists) + 1
            self.connection.execute(
                "INSERT INTO persona_lists VALUES (?, ?)", (key, orjson.dumps(names).decode())
            )
            rows = [(name, key) for name in set(names)]
            self.connection.executemany("INSERT INTO personas VALUES (?, ?)", rows)
        return key

    def remove(self, step: int) -> None:
        """Take a step's debates out."""
        low, high = key_of(step, 0), key_of(step + 1, 0)
        for table, column in (("debates", "key"), ("answers", "debate")):
            self.connection.execute(f"DELETE FROM {table} WHERE {column} >= ? AND {column} < ?", (low, high))
        for table in ("shards", "damage"):
            self.connection.execute(f"DELETE FROM {table} WHERE step = ?", (step,))


def known_shards(connection: sqlite3.Connection) -> dict[int, ShardState]:
    """Return what the index knows, by step."""
    return {step: ShardState(*rest) for step, *rest in connection.execute("SELECT * FROM shards")}


def stale_shards(folder: Path, known: Mapping[int, ShardState]) -> tuple[dict[int, Path], set[int]]:
    """Return the shards whose files are not as the index knows them, and the steps that are gone."""
    shards = {cast(int, shard_step(path)): path for path in shard_paths(folder)}
    stale = {step: path for step, path in shards.items() if not _is_as_known(path, known.get(step))}
    return stale, known.keys() - shards.keys()


def _is_as_known(path: Path, known: ShardState | None) -> bool:
    if known is None:
        return False
    try:
        state = path.stat()
    except FileNotFoundError:  # sealed in this moment
        return False
    return (state.st_size, state.st_mtime_ns, state.st_ctime_ns) == (known.size, known.mtime, known.ctime)


def update(connection: sqlite3.Connection, folder: Path, tell: Tell = tell_nobody) -> int:
    """Bring the index up to date and return how many debates were added; the caller holds the write lock.

    It is committed every now and then, and begun again.
    """
    known = known_shards(connection)
    stale, gone = stale_shards(folder, known)
    indexer = Indexer(connection)
    if stale or gone:
        indexer.load_names()
    for step in gone:
        indexer.remove(step)
    began = time.monotonic()
    for count, (step, path) in enumerate(stale.items()):
        index_shard(indexer, path, step, known.get(step, ShardState()))
        tell(count + 1, len(stale))
        if time.monotonic() - began > COMMIT_S:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
    return indexer.added


def index_shard(indexer: Indexer, path: Path, step: int, known: ShardState) -> None:
    """Take in what a shard holds beyond what is known of it; all of it where it is another file.

    What cannot be read of it is noted, and not tried again before the file changes.
    """
    try:
        state = path.stat()
    except FileNotFoundError:
        return  # sealed or set aside in this moment: the next look will tell
    indexer.connection.execute("DELETE FROM damage WHERE step = ? AND number < 0", (step,))
    now = known
    try:
        with reading(path) as file:
            lines = lines_behind(file, known)
            if lines is None:
                indexer.remove(step)
                lines, now = whole_lines(file), ShardState()
            damaged = _Damaged(path)
            for start, line in lines:
                if not _index_line(indexer, step, now.debates, start, line):
                    damaged.count(line)
                now = now.after(start, line)
    except FileNotFoundError:
        pass
    except TranscriptError as error:
        _note(indexer, step, -1, str(error))
    except OSError as error:
        _note(indexer, step, -1, f"{path}: cannot be read: {error.strerror}")
    seen = (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    row = (step, now.bytes, now.debates, now.digest, *seen)
    indexer.connection.execute("INSERT OR REPLACE INTO shards VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def whole_lines(file: PlainFile | SealedFile) -> Iterator[tuple[int, bytes]]:
    """Yield the whole lines, with where each begins: one without newline is being written."""
    return ((at, line) for at, line in file.lines() if line.endswith(b"\n"))


def lines_behind(file: PlainFile | SealedFile, known: ShardState) -> Iterator[tuple[int, bytes]] | None:
    """Return the whole lines behind what is known of a file; None where it is another one up to there."""
    lines, now = whole_lines(file), ShardState()
    try:
        while now.bytes < known.bytes:
            now = now.after(*next(lines))
    except (StopIteration, TranscriptError):
        return None
    return lines if (now.bytes, now.digest) == (known.bytes, known.digest) else None


def chained(digest: bytes, line: bytes) -> bytes:
    """Return the hash of lines and one more, from the hash of those before."""
    hash = blake2b(digest, digest_size=16)
    hash.update(line)
    return hash.digest()


@dataclass(slots=True)
class _Damaged:
    """Counts what is not a debate in a shard, which may unpack to lines without end."""

    path: Path
    lines: int = 0
    bytes: int = 0

    def count(self, line: bytes) -> None:
        """TranscriptError where there is so much of it that the shard is not read on."""
        self.lines, self.bytes = self.lines + 1, self.bytes + len(line)
        if self.lines > MOST_DAMAGED or self.bytes > LARGEST:
            raise TranscriptError(
                f"{self.path}: damaged: {self.lines:,} lines ({self.bytes:,} bytes) are no debates; what "
                "follows them is not read"
            )


def _index_line(indexer: Indexer, step: int, number: int, start: int, line: bytes) -> bool:
    """Add a line's debate and return whether it is one; what is not is noted and keeps its number."""
    try:
        if number >= MOST_DEBATES:
            raise FieldError("", f"more than {MOST_DEBATES} debates in a step")
        indexer.add(key_of(step, number), start, read_facts(line))
        return True
    except (ValueError, OverflowError) as error:  # of text or a number that SQLite has no room for, too
        _note(indexer, step, number, f"line {number + 1}: {error}")
        return False


def read_facts(line: bytes) -> IndexEntry:
    """Return what the index holds of a line; FieldError where it is not a debate, or unlike its protocol."""
    record = from_line(line)
    try:
        check_record(record)
        return facts_of(record)
    except (LookupError, ValueError) as error:
        raise FieldError("", str(error)) from error


def _note(indexer: Indexer, step: int, number: int, message: str) -> None:
    indexer.connection.execute("INSERT OR REPLACE INTO damage VALUES (?, ?, ?)", (step, number, message))
