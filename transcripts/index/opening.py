"""Finds the shards and the index of a run, and opens it: damaged or of another version, it begins again.

The index lies in the user's cache, never in the run folder, so that no database of others is ever opened.
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
from transcripts.files import reading
from transcripts.index.schema import connect
from transcripts.names import shard_paths

INDEX, FULL_TEXT = "index.sqlite", "fulltext.sqlite"
LOOKED_AT = 100
"""Lines of a shard: where none of them is a debate of ours, it is not taken for one."""
RUN = "run"
"""A link to the run in the folder of its index: an index whose run is gone is taken away."""


def run_and_shards(folder: Path) -> tuple[Path, Path]:
    """Return a run's folder and that of its shards, by the name of either; TranscriptError without shards."""
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


def cache_folder(run: Path) -> Path:
    """Return the folder for the index of a run, in the user's cache, named after the run's path."""
    name = sha256(os.fsencode(run.resolve())).hexdigest()[:32]
    return _indexes() / name


def _indexes() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    cache = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
    return cache / "debate-rl" / "index"


T = TypeVar("T")


def refuse_unreadable(run: Path, shards: Path) -> None:
    """Raise TranscriptError where there is nothing of ours: no shard, or none that begins with debates."""
    try:
        paths = shard_paths(shards)
    except OSError as error:
        raise TranscriptError(f"{shards}: cannot be read: {error.strerror}") from error
    if not paths and not (run / "config.toml").is_file():
        raise TranscriptError(f"{run}: not the folder of a run (no transcripts in it)")
    first: TranscriptError | None = None
    for path in paths:
        try:
            return refuse_foreign(path)
        except TranscriptError as error:
            first = first or error
    if first is not None:
        raise first


def refuse_foreign(path: Path) -> None:
    """Raise TranscriptError where none of a shard's first lines is a debate of this schema."""
    first: FieldError | None = None
    try:
        with reading(path) as file:
            for _, line in islice(file.lines(), LOOKED_AT):
                try:
                    return check_schema(line) if line.endswith(b"\n") else None
                except FieldError as error:
                    first = first or error
        if first is not None:
            raise TranscriptError(f"{path}:1: {first}") from first
    except FileNotFoundError:
        pass  # set aside or sealed in this moment
    except OSError as error:
        raise TranscriptError(f"{path}: cannot be read: {error.strerror}") from error


def index_home(run: Path) -> tuple[Path, TemporaryDirectory[str] | None]:
    """Return the folder in which the index of a run is kept: in the user's cache, or else a temporary one.

    Never in the run: what lies there may be of anybody's making, and a database can hold what runs.
    """
    folder = cache_folder(run)
    try:
        if not folder.is_dir():
            remove_orphans(folder.parent)
        open_index(folder).close()
        with suppress(FileExistsError):
            (folder / RUN).symlink_to(run.resolve())
        return folder, None
    except (OSError, RuntimeError, sqlite3.OperationalError):  # RuntimeError: there is no home
        temporary = TemporaryDirectory(prefix="debate-rl-")
        return Path(temporary.name), temporary


def remove_orphans(indexes: Path) -> None:
    """Delete the indexes whose runs are gone."""
    for folder in indexes.iterdir() if indexes.is_dir() else ():
        with suppress(OSError):  # another process is at it, or somebody's file lies here
            if not os.path.lexists(os.readlink(folder / RUN)):
                shutil.rmtree(folder)


def open_index(folder: Path) -> sqlite3.Connection:
    """Open the index in a folder; one that is damaged or of another version begins again."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    path = folder / INDEX
    try:
        return _checked(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        path.unlink(missing_ok=True)
        return _checked(path)


def _checked(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    try:
        for table in ("shards", "debates", "problems", "persona_lists", "personas", "answers", "damage"):
            connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" in str(error):
            raise
        raise sqlite3.DatabaseError(f"{path}: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def means_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means a damaged database, and not of a busy one or a wrong statement."""
    known = (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.InterfaceError)
    if isinstance(error, sqlite3.OperationalError):
        return any(words in str(error) for words in ("no such", "disk I/O", "unable to open"))
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, known)


def remove(folder: Path) -> None:
    """Take a damaged index and its full text away."""
    for name in (INDEX, FULL_TEXT):
        (folder / name).unlink(missing_ok=True)


def with_rebuilding(work: Callable[[], T], rebuild: Callable[[], None], folder: Path) -> T:
    """Return what ``work`` returns; where it finds the index damaged, build it again and try once more.

    OSError with the folder of the index where that cannot be written.
    """
    with naming_index(folder):
        try:
            return work()
        except sqlite3.Error as error:
            if not means_damage(error):
                raise
        rebuild()
        return work()


@contextmanager
def naming_index(folder: Path) -> Generator[None]:
    """Raise what befalls an index, as on a full disk, as an OSError with its folder."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, f"the index cannot be used: {error}", str(folder)) from error
