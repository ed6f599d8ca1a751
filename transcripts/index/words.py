"""Full-text search over debates: fulltext.sqlite, an FTS5 index without a second copy of the text.

One row a debate, keyed as in the index; its text is the question and all turns, parted by a word nobody can
search. Words are runs of letters and digits; case and accents do not count.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from transcripts.codec import from_line
from transcripts.errors import FieldError
from transcripts.files import reading
from transcripts.index.build import ShardState, Tell, lines_behind, tell_nobody
from transcripts.index.schema import begin, connect, key_of
from transcripts.names import shard_name

APPLICATION = 0x44424C57
VERSION = 4
PART = "\n\ue000\n"
"""Between two messages: a private character, which is a word of its own, so no phrase spans them."""
COMMIT_S = 2.0
TABLES = f"""
BEGIN IMMEDIATE;
CREATE VIRTUAL TABLE words USING fts5(body, content='', columnsize=0, tokenize='unicode61');
CREATE TABLE read(step INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, debates INTEGER NOT NULL,
    digest BLOB NOT NULL);
INSERT INTO words(words, rank) VALUES ('hashsize', {16 << 20});
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
COMMIT;
"""


class Outdated(Exception):
    """The full text holds debates that are not there any more."""


def open_words(path: Path) -> sqlite3.Connection:
    """Open the full text for writing; what is damaged or of another version begins again."""
    try:
        connection = connect(path, application=APPLICATION, version=VERSION, tables=TABLES)
        connection.execute("SELECT count(*) FROM read")
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        return connect(path, application=APPLICATION, version=VERSION, tables=TABLES)
    return connection


def read_so_far(connection: sqlite3.Connection, schema: str = "main") -> dict[int, ShardState]:
    """Return what the full text holds, by step."""
    rows = connection.execute(f"SELECT step, bytes, debates, digest FROM {schema}.read")
    return {step: ShardState(*rest) for step, *rest in rows}


def is_outdated(read: Mapping[int, ShardState], known: Mapping[int, ShardState]) -> bool:
    """Return whether the full text holds what the index does not, as after a step was done again."""
    return any(
        step not in known
        or known[step].bytes < shard.bytes
        or (known[step].bytes == shard.bytes and known[step].digest != shard.digest)
        for step, shard in read.items()
    )


def is_complete(read: Mapping[int, ShardState], known: Mapping[int, ShardState]) -> bool:
    """Return whether the full text holds all that the index does, and nothing else."""
    if is_outdated(read, known):
        return False
    return all(read.get(step, ShardState()).bytes == shard.bytes for step, shard in known.items())


def update_words(
    path: Path,
    folder: Path,
    known: Mapping[int, ShardState],
    *,
    seconds: float | None = None,
    tell: Tell = tell_nobody,
) -> bool:
    """Add what the index knows and the full text does not; return whether it is complete.

    Stops after ``seconds``, and goes on from there the next time. False at once while another process or
    thread adds to it. ``tell`` gets bytes read, and bytes in all.
    """
    until = float("inf") if seconds is None else time.monotonic() + seconds
    for _ in range(2):
        with closing(open_words(path)) as connection:
            if not begin(connection):
                return False
            read = read_so_far(connection)
            try:
                if is_outdated(read, known):
                    raise Outdated
                return _add_all(connection, folder, known, read, until, tell)
            except Outdated:
                connection.execute("ROLLBACK")
        path.unlink(missing_ok=True)
    return False


def _add_all(
    connection: sqlite3.Connection,
    folder: Path,
    known: Mapping[int, ShardState],
    read: Mapping[int, ShardState],
    until: float,
    tell: Tell,
) -> bool:
    total, done = sum(shard.bytes for shard in known.values()), sum(shard.bytes for shard in read.values())
    began, complete = time.monotonic(), True
    for step, goal in sorted(known.items()):
        before = read.get(step, ShardState())
        if before.bytes >= goal.bytes:
            continue
        complete = _add_shard(connection, folder, step, before, goal, until)
        done += goal.bytes - before.bytes
        tell(min(done, total), total)
        if not complete:
            break
        if time.monotonic() - began > COMMIT_S:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
    connection.execute("COMMIT")
    return complete


def _add_shard(
    connection: sqlite3.Connection,
    folder: Path,
    step: int,
    before: ShardState,
    goal: ShardState,
    until: float,
) -> bool:
    """Add a shard's text up to what the index knows of it; return whether that was all before ``until``."""
    now = before
    with reading(folder / shard_name(step)) as file:
        lines = lines_behind(file, before)
        if lines is None:
            raise Outdated
        for start, line in lines:
            if time.monotonic() > until:
                break
            body = body_of(line)
            if body is not None:
                row = (key_of(step, now.debates), body)
                connection.execute("INSERT INTO words(rowid, body) VALUES (?, ?)", row)
            now = now.after(start, line)
            if now.bytes >= goal.bytes:  # what follows may be damaged
                break
    row = (step, now.bytes, now.debates, now.digest)
    connection.execute("INSERT OR REPLACE INTO read VALUES (?, ?, ?, ?)", row)
    return now.bytes >= goal.bytes


def body_of(line: bytes) -> str | None:
    """Return the question of a debate and its replies, None where the line is not one."""
    try:
        debate = from_line(line).debate
    except FieldError:
        return None
    return PART.join((debate.problem.question, *(turn.completion.text for turn in debate.turns)))
