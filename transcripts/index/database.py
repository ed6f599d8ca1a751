"""The databases of a run in the user's cache, both derived from the shards: index.sqlite and fulltext.sqlite.

They are rebuilt if they are missing, damaged or of another version. They are never in the run folder, so that
a database made by others is never opened. A debate's key combines its step and its index in the step, so keys
are in the order of the run. Its line begins at byte ``start`` of its shard and has the hash ``line``. Damage
that does not concern a single line has the number -1.

The full text is an FTS5 index without a second copy of the text. It only grows: a document belongs to a
debate as long as its key and hash are in the index.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from transcripts.codec import check_schema
from transcripts.errors import FieldError, TranscriptError
from transcripts.files import reading, shard_paths
from transcripts.index.facts import REALS, Facts, ProblemFacts

INDEX, FULL_TEXT = "index.sqlite", "fulltext.sqlite"
MARKS = {INDEX: (0x44424C54, 10), FULL_TEXT: (0x44424C57, 5)}
"""PRAGMA application_id and user_version of our databases. A database with other values is rebuilt.

The version covers the tables and the meaning of the facts.
"""
_MARKS = ("application_id", "user_version")
MOST_DEBATES = 1 << 24
"""The maximum number of debates in a step."""
LOOKED_AT = 100
"""The number of lines checked at the start of a shard. A shard with no debate among them is refused."""
RUN = "run"
"""A link to the run, in the folder of its index. An index whose run is gone is deleted."""
T = TypeVar("T")

_FACTS = ", ".join(f"{name} {'REAL' if name in REALS else 'INTEGER'}" for name in Facts._fields)
TABLES = {
    INDEX: f"""
CREATE TABLE shards(step INTEGER PRIMARY KEY, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL);
CREATE TABLE problems(key INTEGER PRIMARY KEY, {", ".join(f"{name} TEXT" for name in ProblemFacts._fields)});
CREATE TABLE persona_lists(key INTEGER PRIMARY KEY, names TEXT NOT NULL);
CREATE TABLE personas(name TEXT, personas_key INTEGER, PRIMARY KEY(name, personas_key)) WITHOUT ROWID;
CREATE TABLE answers(answer TEXT, debate INTEGER, PRIMARY KEY(answer, debate)) WITHOUT ROWID;
CREATE TABLE damage(step INTEGER, number INTEGER, message TEXT, PRIMARY KEY(step, number)) WITHOUT ROWID;
CREATE TABLE debates(key INTEGER PRIMARY KEY, start INTEGER NOT NULL, size INTEGER NOT NULL,
    line INTEGER NOT NULL, problem_key INTEGER NOT NULL, personas_key INTEGER NOT NULL, {_FACTS});
CREATE INDEX of_problem ON debates(problem_key);
CREATE INDEX cyclic ON debates(key) WHERE cycle > 0;
CREATE INDEX faulty ON debates(key) WHERE malformed > 0;
""",
    FULL_TEXT: f"""
CREATE VIRTUAL TABLE words USING fts5(body, content='', columnsize=0, tokenize='unicode61');
CREATE TABLE documents(document INTEGER PRIMARY KEY, key INTEGER NOT NULL, line INTEGER NOT NULL,
    size INTEGER NOT NULL, UNIQUE(key, line));
INSERT INTO words(words, rank) VALUES ('hashsize', {16 << 20});
""",
}


def key_of(step: int, number: int) -> int:
    """Return the key of a debate.

    >>> key_of(1, 2)
    16777218
    """
    return step * MOST_DEBATES + number


def id_of(key: int) -> str:
    """Return the id of a debate: its step and its index in the step.

    >>> id_of(16777218)
    '1.2'
    """
    return f"{key // MOST_DEBATES}.{key % MOST_DEBATES}"


def connect(folder: Path, name: str) -> sqlite3.Connection:
    """Open a database of a folder.

    A missing or damaged database, or one of another version, is created anew.
    """
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    path = folder / name
    try:
        return _open(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        return _open(path)


def _open(path: Path) -> sqlite3.Connection:
    """Open one of our databases, creating its tables if it is empty. DatabaseError for any other database."""
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA cache_size = -16000")
        connection.execute("PRAGMA synchronous = NORMAL")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            _make(connection, path.name)
        marks = [connection.execute(f"PRAGMA {mark}").fetchone()[0] for mark in _MARKS]
        if tuple(marks) != MARKS[path.name]:
            raise sqlite3.DatabaseError(f"{path}: not an index of this version")
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'"):
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection, name: str) -> None:
    marks = "".join(f"PRAGMA {mark} = {value};" for mark, value in zip(_MARKS, MARKS[name], strict=True))
    try:
        connection.executescript(f"PRAGMA page_size = 16384; BEGIN IMMEDIATE; {TABLES[name]} {marks} COMMIT;")
    except sqlite3.OperationalError as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if "already exists" not in str(error):  # another process was faster
            raise


def begin(connection: sqlite3.Connection) -> bool:
    """Begin a write transaction. Return False if another process or thread is writing."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return False
        raise
    finally:
        connection.execute("PRAGMA busy_timeout = 5000")
    return True


def commit(connection: sqlite3.Connection) -> None:
    """Commit, so that others see the changes, and begin the next transaction."""
    connection.execute("COMMIT")
    connection.execute("BEGIN IMMEDIATE")


def run_and_shards(folder: Path) -> tuple[Path, Path]:
    """Return the folders of a run and of its shards, given either.

    TranscriptError if there is no such folder.
    """
    try:
        inner = folder / "transcripts"
        if inner.is_dir():
            return folder, inner
        if not folder.is_dir():
            reason = "not a folder" if folder.exists() else "there is no such folder"
            raise TranscriptError(f"{folder}: {reason}")
    except OSError as error:
        raise TranscriptError(f"{folder}: cannot be read: {error.strerror}") from error
    return (folder.parent if folder.name == "transcripts" else folder), folder


def refuse_unreadable(run: Path, shards: Path) -> None:
    """Raise TranscriptError if the folder is not a run, or no shard begins with a debate of this package."""
    try:
        paths = shard_paths(shards)
    except OSError as error:
        raise TranscriptError(f"{shards}: cannot be read: {error.strerror}") from error
    if not paths and not (run / "config.toml").is_file():
        raise TranscriptError(f"{run}: not the folder of a run (no transcripts in it)")
    first: TranscriptError | None = None
    for path in paths:
        try:
            return _refuse_foreign(path)
        except TranscriptError as error:
            first = first or error
        except FileNotFoundError:  # set aside or sealed right now
            return None
        except OSError as error:
            first = first or TranscriptError(f"{path}: cannot be read: {error.strerror}")
    if first is not None:
        raise first


def _refuse_foreign(path: Path) -> None:
    """Raise TranscriptError if none of a shard's first lines is a debate of this schema."""
    first: FieldError | None = None
    with reading(path) as file:
        for _, line in islice(file.lines(), LOOKED_AT):
            try:
                return check_schema(line) if line.endswith(b"\n") else None
            except FieldError as error:
                first = first or error
    if first is not None:
        raise TranscriptError(f"{path}:1: {first}") from first


def cache_folder(run: Path) -> Path:
    """Return the folder for the index of a run, in the user's cache, named after a hash of the run's path."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
    return cache / "debate-rl" / "index" / sha256(os.fsencode(run.resolve())).hexdigest()[:32]


def index_home(run: Path) -> tuple[Path, TemporaryDirectory[str] | None]:
    """Return the folder for the index of a run: in the user's cache, or else a temporary one."""
    try:
        folder = cache_folder(run)
        if not folder.is_dir():
            _remove_orphans(folder.parent)
        connect(folder, INDEX).close()
        with suppress(FileExistsError):
            (folder / RUN).symlink_to(run.resolve())
        return folder, None
    except (OSError, RuntimeError, sqlite3.OperationalError):  # RuntimeError: there is no home folder
        temporary = TemporaryDirectory(prefix="debate-rl-")
        return Path(temporary.name), temporary


def _remove_orphans(indexes: Path) -> None:
    """Delete the indexes whose runs are gone."""
    for folder in indexes.iterdir() if indexes.is_dir() else ():
        with suppress(OSError):  # another process is deleting it, or it contains foreign files
            if not os.path.lexists(os.readlink(folder / RUN)):
                shutil.rmtree(folder)


def remove(folder: Path) -> None:
    """Delete a damaged index and its full text."""
    for name in (INDEX, FULL_TEXT):
        (folder / name).unlink(missing_ok=True)


def with_rebuilding(work: Callable[[], T], rebuild: Callable[[], object], folder: Path) -> T:
    """Return the result of ``work``. If it finds the index damaged, rebuild the index and try once more.

    OSError with the folder of the index if the index cannot be written.
    """
    with naming_index(folder):
        try:
            return work()
        except sqlite3.Error as error:
            if not _means_damage(error):
                raise
        rebuild()
        return work()


def _means_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means a damaged database, and not a busy one or an invalid statement."""
    if isinstance(error, sqlite3.OperationalError):
        return any(words in str(error) for words in ("no such", "disk I/O", "unable to open"))
    known = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.InterfaceError)
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, known)


@contextmanager
def naming_index(folder: Path) -> Generator[None]:
    """Convert an error of the index, such as a full disk, to an OSError with its folder."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, f"the index cannot be used: {error}", str(folder)) from error
