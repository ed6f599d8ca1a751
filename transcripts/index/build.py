"""Update an index and its full text from the shards. Unchanged lines are skipped."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import cast

import orjson

from transcripts.codec import from_line
from transcripts.errors import FieldError, TranscriptError
from transcripts.files import LARGEST, OpenFiles, reading, shard_name, shard_paths, shard_step
from transcripts.index.database import FULL_TEXT, INDEX, MOST_DEBATES, begin, commit, connect, key_of
from transcripts.index.facts import IndexEntry, ProblemFacts, facts_of
from transcripts.record import check_record

Tell = Callable[[int, int], None]
"""Called with progress: how much is done, and how much there is to do, in shards or bytes of text."""

MOST_DAMAGED = 1000
"""The maximum number of invalid lines noted per shard. A shard with more is not read further."""
COMMIT_S = 0.5
"""Seconds between commits, which make additions visible to other processes."""
PART = "\n\ue000\n"
"""Separates two messages. This private character is a separate word, so no phrase spans two messages."""


UNREAD = "NOT EXISTS (SELECT 1 FROM text.documents d WHERE d.key = debates.key AND d.line = debates.line)"
"""The SQL condition for debates missing from the full text, over the index with the full text attached."""


def tell_nobody(done: int, total: int) -> None:
    """Show no progress."""


def stale_shards(connection: sqlite3.Connection, folder: Path) -> tuple[dict[int, Path], set[int]]:
    """Return the shards whose files have changed since they were indexed, and the steps that are gone."""
    known = {step: tuple(state) for step, *state in connection.execute("SELECT * FROM shards")}
    shards = {cast(int, shard_step(path)): path for path in shard_paths(folder)}
    stale = {step: path for step, path in shards.items() if _state(path) != known.get(step, ())}
    return stale, known.keys() - shards.keys()


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except FileNotFoundError:  # it is being sealed right now
        return None
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns


def update(connection: sqlite3.Connection, folder: Path, tell: Tell = tell_nobody) -> int:
    """Update the index and return how many debates were added.

    The caller must hold the write lock. The index is committed at intervals.
    """
    stale, gone = stale_shards(connection, folder)
    indexer = _Indexer(connection)
    for step in gone:
        indexer.take_in(step, None)
    began = time.monotonic()
    for count, (step, path) in enumerate(stale.items(), start=1):
        indexer.take_in(step, path)
        tell(count, len(stale))
        if time.monotonic() - began > COMMIT_S:
            commit(connection)
            began = time.monotonic()
    return indexer.added


class _Indexer:
    """Adds debates to one index within a transaction. ``added`` counts the debates."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self.added = 0
        self._problems = {
            ProblemFacts(*facts): key for key, *facts in self._execute("SELECT * FROM problems")
        }
        self._personas = dict(self._execute("SELECT names, key FROM persona_lists"))

    def take_in(self, step: int, path: Path | None) -> None:
        """Update a step from its shard, or remove it if ``path`` is None.

        Damage is noted, and the file is not read again until it changes.
        """
        state = path and _state(path)
        if path is not None and state is None:
            return
        self._execute("DELETE FROM shards WHERE step = ?", (step,))
        self._execute("DELETE FROM damage WHERE step = ?", (step,))
        within = "SELECT key, start, line FROM debates WHERE key >= ? AND key < ?"
        rows = self._execute(within, (key_of(step, 0), key_of(step + 1, 0)))
        known = {key: (start, hash_) for key, start, hash_ in rows}
        if path is not None and state is not None:
            try:
                self._read(step, path, known)
            except FileNotFoundError:  # it is being sealed or set aside; the next update will see it
                return
            except TranscriptError as error:
                self._note(step, -1, str(error))
            except OSError as error:
                self._note(step, -1, f"{path}: cannot be read: {error.strerror}")
            self._execute("INSERT INTO shards VALUES (?, ?, ?, ?)", (step, *state))
        for key in known:
            self._remove(key)

    def _read(self, step: int, path: Path, known: dict[int, tuple[int, int]]) -> None:
        """Read the complete lines of a shard, and remove from ``known`` each debate that still exists."""
        damaged = damaged_bytes = 0
        with reading(path) as file:
            for number, (start, line) in enumerate(file.lines()):
                if not line.endswith(b"\n"):
                    return  # it is being written
                key, hash_ = key_of(step, number), line_hash(line)
                before = known.pop(key, None) if number < MOST_DEBATES else None
                if before == (start, hash_):
                    continue
                if before is not None:
                    self._remove(key)
                try:
                    if number >= MOST_DEBATES:
                        raise FieldError("", f"more than {MOST_DEBATES} debates in a step")
                    self._add((key, start, len(line), hash_), read_facts(line))
                except (ValueError, OverflowError) as error:  # or SQLite cannot store a text or a number
                    self._note(step, number, f"line {number + 1}: {error}")
                    damaged, damaged_bytes = damaged + 1, damaged_bytes + len(line)
                if damaged > MOST_DAMAGED or damaged_bytes > LARGEST:  # a shard may unpack endlessly
                    raise TranscriptError(
                        f"{path}: damaged: {damaged:,} lines ({damaged_bytes:,} bytes) are not debates; the "
                        "lines after them are not read"
                    )

    def _add(self, place: tuple[int, int, int, int], entry: IndexEntry) -> None:
        row = (*place, self._problem(entry.problem), self._personas_key(entry.personas), *entry.facts)
        self._execute(f"INSERT INTO debates VALUES ({', '.join('?' * len(row))})", row)
        for answer in entry.answers:
            self._execute("INSERT INTO answers VALUES (?, ?)", (answer, place[0]))
        self.added += 1

    def _remove(self, key: int) -> None:
        self._execute("DELETE FROM debates WHERE key = ?", (key,))
        self._execute("DELETE FROM answers WHERE debate = ?", (key,))

    def _note(self, step: int, number: int, message: str) -> None:
        self._execute("INSERT OR REPLACE INTO damage VALUES (?, ?, ?)", (step, number, message))

    def _problem(self, facts: ProblemFacts) -> int:
        key = self._problems.get(facts)
        if key is None:
            key = self._problems[facts] = len(self._problems) + 1
            self._execute("INSERT INTO problems VALUES (?, ?, ?, ?, ?, ?, ?)", (key, *facts))
        return key

    def _personas_key(self, names: tuple[str, ...]) -> int:
        text = orjson.dumps(names).decode()
        key = self._personas.get(text)
        if key is None:
            key = self._personas[text] = len(self._personas) + 1
            self._execute("INSERT INTO persona_lists VALUES (?, ?)", (key, text))
            for name in set(names):
                self._execute("INSERT INTO personas VALUES (?, ?)", (name, key))
        return key


def line_hash(line: bytes) -> int:
    """Return a 64-bit hash of a line, which SQLite can store."""
    return int.from_bytes(blake2b(line, digest_size=8).digest(), "big", signed=True)


def read_facts(line: bytes) -> IndexEntry:
    """Return the index entry of a line. FieldError if it is not a debate or does not fit its protocol."""
    record = from_line(line)
    try:
        check_record(record)
        return facts_of(record)
    except (LookupError, ValueError) as error:
        raise FieldError("", str(error)) from error


def open_both(folder: Path) -> sqlite3.Connection:
    """Open the index of a folder for reading, with its full text attached as ``text``."""
    connect(folder, FULL_TEXT).close()
    connection = connect(folder, INDEX)
    connection.execute("ATTACH ? AS text", (os.fsencode(folder / FULL_TEXT),))  # a path may not be UTF-8
    return connection


def text_read(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the bytes of the debates in the full text, and of all debates in the index."""
    [(whole,)] = connection.execute("SELECT coalesce(sum(size), 0) FROM debates")
    [(missing,)] = connection.execute(f"SELECT coalesce(sum(size), 0) FROM debates WHERE {UNREAD}")
    return whole - missing, whole


def update_text(
    folder: Path, shards: Path, *, seconds: float | None = None, tell: Tell = tell_nobody
) -> bool:
    """Add missing debates to the full text, in order. Return whether it is complete.

    Stops after ``seconds``; the next call continues from there. Returns False at once if another process or
    thread is adding to it. ``tell`` is called with bytes read and total bytes.
    """
    until = float("inf") if seconds is None else time.monotonic() + seconds
    with closing(open_both(folder)) as index:
        done, whole = text_read(index)
        missing = f"SELECT key, start, size, line FROM debates WHERE {UNREAD} ORDER BY key"
        rows = index.execute(missing).fetchall()
    began = time.monotonic()
    with closing(connect(folder, FULL_TEXT)) as text, closing(OpenFiles()) as files:
        if not begin(text):
            return False
        for key, start, size, hash_ in rows:
            if time.monotonic() >= until:
                break
            line = files.line(shards / shard_name(key // MOST_DEBATES), start)
            if line_hash(line) == hash_:  # otherwise the shard has changed in the meantime
                row = text.execute("INSERT INTO documents VALUES (NULL, ?, ?, ?)", (key, hash_, size))
                body = body_of(line) or ""
                text.execute("INSERT INTO words(rowid, body) VALUES (?, ?)", (row.lastrowid, body))
            done += size
            tell(done, whole)
            if time.monotonic() - began > COMMIT_S:
                commit(text)
                began = time.monotonic()
        text.execute("COMMIT")
    return done == whole


def body_of(line: bytes) -> str | None:
    """Return the question of a debate and its replies as one text, or None if the line is not a debate."""
    try:
        debate = from_line(line).debate
    except FieldError:
        return None
    return PART.join((debate.problem.question, *(turn.completion.text for turn in debate.turns)))
