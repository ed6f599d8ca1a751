"""Find the debates of a run by a filter and read them one by one, even while the run continues."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self

from debate.types import Completion, TurnId
from transcripts.annotations import FILE, Annotation, Annotations, Kind, Place, annotate, read_annotations
from transcripts.causes import causes_in
from transcripts.codec import from_line
from transcripts.errors import FieldError, TranscriptError
from transcripts.files import OpenFiles, shard_name
from transcripts.filters.compile import Query, compile_filter, plain_words
from transcripts.frames import Table, frame_of
from transcripts.index.build import (
    UNREAD,
    Tell,
    body_of,
    line_hash,
    open_both,
    stale_shards,
    tell_nobody,
    text_read,
    update,
    update_text,
)
from transcripts.index.database import (
    INDEX,
    MOST_DEBATES,
    begin,
    connect,
    id_of,
    index_home,
    key_of,
    naming_index,
    refuse_unreadable,
    remove,
    run_and_shards,
    with_rebuilding,
)
from transcripts.index.rows import COLUMNS, JOINS, DebateRow, StepRow, row_of, step_row, steps_sql
from transcripts.record import Record

if TYPE_CHECKING:
    from pandas import DataFrame  # pyright: ignore[reportMissingTypeStubs]

DOCUMENT = "ON debates.key = d.key AND debates.line = d.line"


class RunStore:
    """The debates of one run. Safe to use from several threads.

    The run itself is never changed, except that ``annotate`` appends to its annotations. An index and the
    full text are kept in the user's cache, and are rebuilt if they are missing or damaged.
    """

    def __init__(self, run: Path, shards: Path) -> None:
        self.run, self._shards = run, shards
        self.folder, self._temporary = index_home(run)
        self._files, self._lock = OpenFiles(), RLock()
        self._causes: dict[int, frozenset[str]] = {}
        self._annotations: tuple[object, Annotations] = (None, Annotations())
        self._searched: object = None
        """The version of the index at which the full text was complete."""
        self._connection = self._connect()

    @classmethod
    def open(cls, run: Path | str, *, refresh: bool = True, tell: Tell = tell_nobody) -> RunStore:
        """Open a run by its folder, or by the folder of its shards, and update the index.

        ``tell`` is called with the number of shards indexed and the total. TranscriptError if there is no
        run, or if this version cannot read it; nothing is written then.
        """
        home, shards = run_and_shards(Path(run))
        refuse_unreadable(home, shards)
        store = cls(home, shards)
        if refresh:
            store.refresh(tell=tell)
        return store

    def _connect(self) -> sqlite3.Connection:
        connection = open_both(self.folder)
        connection.create_function("holds", 3, self._holds)
        connection.create_function("caused", 3, self._caused)
        connection.create_function("marks", 1, self._marks)
        return connection

    def _rebuild(self) -> int:
        """Rebuild the index and return how many debates it has."""
        remove(self.folder)
        damaged, self._connection, self._searched = self._connection, self._connect(), None
        damaged.close()
        return self._refresh(tell_nobody)

    def refresh(self, *, tell: Tell = tell_nobody) -> int:
        """Index the new debates of the run and return how many were added.

        Nothing happens while another process updates the index.
        """
        rebuilt = 0

        def rebuild() -> None:
            nonlocal rebuilt
            rebuilt = self._rebuild()

        with self._lock:
            return with_rebuilding(lambda: self._refresh(tell), rebuild, self.folder) + rebuilt

    def _refresh(self, tell: Tell) -> int:
        self._refuse_cleared()
        stale, gone = stale_shards(self._connection, self._shards)
        if not stale and not gone:
            return 0
        self._files.close()
        with closing(connect(self.folder, INDEX)) as writer:
            if not begin(writer):
                return 0
            added = update(writer, self._shards, tell)
            writer.execute("COMMIT")
        return added

    def _refuse_cleared(self) -> None:
        """Raise DatabaseError, which causes a rebuild, if the cache was cleared."""
        if not (self.folder / INDEX).exists():
            raise sqlite3.DatabaseError("the index is gone")

    @property
    def damage(self) -> list[str]:
        """Messages about what could not be read, one line each."""
        rows = self._rows("SELECT step, number, message FROM damage ORDER BY step, number")
        return [message if number < 0 else f"step {step}, {message}" for step, number, message in rows]

    def debates(
        self, filter: str = "", *, newest: bool = False, after: str | None = None, limit: int = 50
    ) -> list[DebateRow]:
        """Return the first debates that match a filter, in the order of the run or newest first.

        ``after``: the id of the last debate of the previous page. FilterError points at an error. The first
        search for words builds the full text, which takes a while; ``index_text`` does this in advance.
        """
        query = compile_filter(filter)
        keys, values = self._keys(query, newest, after)
        order = "DESC" if newest else "ASC"
        sql = f"SELECT {COLUMNS} FROM ({keys} LIMIT ?) d {JOINS} ORDER BY d.key {order}"
        return self._rows(sql, (*values, limit), query, row_of)

    def frame(self, table: Table, filter: str = "") -> DataFrame:
        """Return a table of the run as a pandas DataFrame: "debates", "turns", "votes", "annotations" or
        "metrics".

        ``filter`` selects debates. ValueError for an unknown table.
        """
        return frame_of(self, table, filter)

    def count(self, filter: str = "") -> int:
        """Return how many debates match a filter."""
        query = compile_filter(filter)
        keys, values = self._keys(query, None, None)
        return self._rows(f"SELECT count(*) FROM ({keys})", values, query)[0][0]

    def version(self) -> tuple[int, ...]:
        """Return numbers that change with the debates and the annotations of the run."""
        [(changes,)] = self._rows("PRAGMA main.data_version")
        return changes, self.count(), self.annotations().lines

    def counts(self, filters: Sequence[str], within: str = "") -> list[int]:
        """Return how many debates match each filter as well as ``within``, in one pass over the index.

        ValueError for a filter that searches words; ``within`` may.
        """
        queries = [compile_filter(filter) for filter in filters]
        if any(query.words for query in queries):
            raise ValueError("filters: a search for words has to be counted on its own")
        query = compile_filter(within)
        keys, values = self._keys(query, None, None)
        counted = ", ".join(f"count(*) FILTER (WHERE {one.where})" for one in queries)
        given = [value for one in queries for value in one.parameters]
        return list(self._rows(f"SELECT {counted} FROM ({keys}) debates", (*given, *values), query)[0])

    def personas(self) -> list[str]:
        """Return the names of the personas of the run, in the order in which they first took part."""
        sql = "SELECT name FROM personas GROUP BY name ORDER BY min(personas_key), name"
        return [name for (name,) in self._rows(sql)]

    def steps(self, filter: str = "") -> list[StepRow]:
        """Return the figures of the debates that match a filter, for each step that has any, in order.

        The figures are read from the index alone.
        """
        return self._figures(filter, by_step=True)

    def overall(self, filter: str = "") -> StepRow:
        """Return one row of figures over all debates that match a filter. Its ``step`` is None."""
        return self._figures(filter, by_step=False)[0]

    def _figures(self, filter: str, *, by_step: bool) -> list[StepRow]:
        query = compile_filter(filter)
        keys, values = self._keys(query, None, None)
        sql = steps_sql(keys, by_step=by_step, whole=not filter.strip())
        return self._rows(sql, values, query, step_row)

    def _keys(self, query: Query, newest: bool | None, after: str | None) -> tuple[str, tuple[Any, ...]]:
        """Return the SELECT of a query's debates, and its parameters. ``newest`` None: in any order."""
        values: list[Any] = []
        tables, conditions = "debates", [query.where]
        if query.match is not None:
            tables = f"words CROSS JOIN documents d ON d.document = words.rowid CROSS JOIN debates {DOCUMENT}"
            conditions.insert(0, "words MATCH ?")
            values.append(query.match)
        values += query.parameters
        if after is not None:
            conditions.append(f"debates.key {'<' if newest else '>'} ?")
            values.append(self._key(after))
        order = "" if newest is None else f" ORDER BY debates.key{' DESC' if newest else ''}"
        return f"SELECT debates.* FROM {tables} WHERE {' AND '.join(conditions)}{order}", tuple(values)

    def debate(self, id: str, *, tokens: bool = False) -> Record:
        """Return one debate by its id (step and index in the step, such as 12.3).

        ``tokens``: include its token arrays. TranscriptError if there is no debate with this id.
        """
        key = self._key(id)
        rows = self._rows("SELECT start FROM debates WHERE key = ?", (key,))
        if not rows:
            step, number = divmod(key, MOST_DEBATES)
            damage = self._rows("SELECT message FROM damage WHERE step = ? AND number = ?", (step, number))
            if damage:
                raise TranscriptError(f"{self.run}: debate {id_of(key)} cannot be read: {damage[0][0]}")
            raise TranscriptError(f"{self.run}: no debate {id_of(key)}; {self._held(step)}")
        return self._record(key, rows[0][0], tokens)

    def tokens(self, id: str) -> dict[TurnId, Completion]:
        """Return the completions of a debate with their token arrays, by turn."""
        return {turn.id: turn.completion for turn in self.debate(id, tokens=True).debate.turns}

    def records(self, filter: str = "", *, tokens: bool = False) -> Iterator[tuple[str, Record]]:
        """Yield the ids and debates that match a filter, in the order of the run, reading one at a time.

        TranscriptError names a debate that cannot be read.
        """
        query, after = compile_filter(filter), None
        while True:
            keys, values = self._keys(query, False, after)
            page = self._rows(f"SELECT key, start FROM ({keys} LIMIT 500) ORDER BY key", values, query)
            for key, start in page:
                yield id_of(key), self._record(key, start, tokens)
            if not page:
                return
            after = id_of(page[-1][0])

    def _record(self, key: int, start: int, tokens: bool) -> Record:
        """Return the debate whose line begins at a byte of its shard."""
        try:
            with self._lock:
                shard = self._shards / shard_name(key // MOST_DEBATES)
                tokens_at = partial(self._files.token_line, shard) if tokens else None
                return from_line(self._line(key, start), tokens_at)
        except FieldError as error:
            raise TranscriptError(f"{self.run}: debate {id_of(key)}: {error}") from error
        except OSError as error:
            raise TranscriptError(f"{self.run}: debate {id_of(key)}: {error.strerror}") from error

    def _line(self, key: int, start: int) -> bytes:
        return self._files.line(self._shards / shard_name(key // MOST_DEBATES), start)

    def _held(self, step: int) -> str:
        [(low, high)] = self._rows("SELECT min(step), max(step) FROM shards")
        if low is None:
            return "the run has none yet"
        within = (key_of(step, 0), key_of(step + 1, 0))
        [(last,)] = self._rows("SELECT max(key) FROM debates WHERE key >= ? AND key < ?", within)
        if last is None:
            return f"there are steps {low} to {high}"
        return f"step {step} has debates 0 to {last % MOST_DEBATES}"

    def _key(self, id: str) -> int:
        step, _, index = id.partition(".")
        whole = all(part.isdecimal() and len(part) < 12 for part in (step, index))
        if not whole or int(index) >= MOST_DEBATES:
            name, colon, ref = id.rpartition(":")
            hint = f"; {ref} of an evaluation is in {self.run / 'evaluations' / name}" if colon else ""
            raise TranscriptError(
                f"{id!r} is not a debate: write STEP.INDEX, counted from 0, as in 12.3{hint}"
            )
        return key_of(int(step), int(index))

    def annotations(self) -> Annotations:
        """Return the stars, notes and labels of the run as they are now."""
        path = self.run / FILE
        try:
            state = path.stat()
        except OSError:
            return Annotations()
        known = state.st_ino, state.st_size, state.st_mtime_ns
        if self._annotations[0] != known:
            self._annotations = known, read_annotations(self.run)
        return self._annotations[1]

    def annotate(self, kind: Kind, id: str, value: str) -> Annotation:
        """Star, note or label a debate, turn or pair, named as in transcripts/annotations.py.

        An empty value removes it. FieldError if the id or the value does not fit; TranscriptError without
        such a debate; OSError if it cannot be written.
        """
        return annotate(self.run, self.debate(Place.of(id).debate), kind, id, value)

    def text_read(self) -> tuple[int, int]:
        """Return how many bytes of transcripts the full text covers, and how many there are."""
        with self._lock, naming_index(self.folder):
            return text_read(self._connection)

    def index_text(self, *, seconds: float | None = None, tell: Tell = tell_nobody) -> bool:
        """Build the full text completely, or for at most ``seconds``. Return whether it is complete.

        ``tell`` is called with bytes read and total bytes. Other threads can search the existing part in the
        meantime.
        """
        with naming_index(self.folder):
            return update_text(self.folder, self._shards, seconds=seconds, tell=tell)

    def _rows(
        self,
        sql: str,
        values: tuple[Any, ...] = (),
        query: Query | None = None,
        make: Callable[[tuple[Any, ...]], Any] = tuple,
    ) -> list[Any]:
        """Return ``make(row)`` for each row. A damaged index is rebuilt.

        Word searches wait until the full text is complete, unless another process is building it.
        """

        def fetch() -> list[Any]:
            if query is not None and query.words:
                self._refuse_cleared()
                version = self._connection.execute("PRAGMA main.data_version").fetchone()
                unread = f"SELECT 1 FROM debates WHERE {UNREAD} LIMIT 1"
                if version != self._searched and self._connection.execute(unread).fetchone():
                    update_text(self.folder, self._shards)
                else:
                    self._searched = version
            return [make(row) for row in self._connection.execute(sql, values).fetchall()]

        with self._lock:
            return with_rebuilding(fetch, self._rebuild, self.folder)

    def _holds(self, key: int, start: int, wanted: str) -> bool:
        """Return whether a debate's text contains the text ``wanted``, except for case and whitespace."""
        body = body_of(self._line(key, start))
        if body is None or (wanted not in body.casefold() and " " not in wanted):
            return False
        return " " not in wanted or wanted in plain_words(body)

    def _caused(self, key: int, start: int, cause: str) -> bool:
        """Return whether a debate has a wrong solution with this cause. Each debate is analysed once."""
        line = self._line(key, start)
        known = line_hash(line)
        if known not in self._causes:
            self._causes[known] = causes_in(line)
        return cause in self._causes[known]

    def _marks(self, kind: Kind) -> str:
        return self.annotations().marks(kind)

    def close(self) -> None:
        """Close all files and databases."""
        with self._lock:
            self._files.close()
            self._connection.close()
            if self._temporary is not None:
                self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
