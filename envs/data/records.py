"""Read rows of JSONL, JSON and Parquet files and of the hub, each with its location for error messages.

Files are read without ``datasets``: its Arrow tables give all rows the same fields, and do not know a row's
line.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

from debate.files import LARGEST_DATA, open_plain, plain_lines, read_plain
from debate.settings import install_hint
from envs.errors import HALF_CHARACTER, DataError, MissingPackageError, UnreachableError, shorten
from envs.hub import is_reachable, spare_retries, why_not

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # not allowed in names and options
LARGEST_JSON = 1 << 30  # maximum bytes of a JSON file, which is read as a whole
SHUFFLE_BUFFER = 10_000  # rows of a stream in the shuffle buffer
SUFFIXES = (".parquet", ".jsonl", ".json")
NO_DATA = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")  # the hub's metadata
SPLITS = ("train", "training", "test", "validation", "valid", "val", "dev")  # also as a file's whole name
_SHARD = re.compile(r"(\w[\w.-]*?)-\d+-of-\d+(?:-[0-9a-f]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Record:
    """One row: its values by field name, and its location ("FILE, line N") for error messages.

    ``renamed`` maps our nouns (question, answer, id, level, subject, choices) to the user's field names.
    """

    location: str
    index: int
    values: Mapping[str, object]
    renamed: Mapping[str, str]

    def find(self, noun: str, *names: str) -> tuple[str, object] | None:
        """Return the field and the value of the first of ``names`` that is present; None if none is.

        The user's own field name replaces ``names``; "a.b" is the field b of the object a.
        """
        if noun not in self.renamed:
            return next(((name, self.values[name]) for name in names if name in self.values), None)
        path = self.renamed[noun]
        if path in self.values:
            return path, self.values[path]
        value: object = self.values
        for name in path.split("."):
            if not isinstance(value, Mapping) or name not in value:
                return None
            value = value[name]
        return path, value

    def value(self, noun: str, *names: str) -> object:
        """Return the value of a required field; raise the row's error if it is missing."""
        field = self.find(noun, *names)
        if field is None:
            wanted = self.renamed.get(noun) or " or ".join(dict.fromkeys(names)) or noun
            fault = "is missing; name your own with fields={...} (env.fields, held_out.fields)"
            raise self.error(wanted, fault)
        return field[1]

    def text(self, noun: str, *names: str) -> str:
        """Return a required field as nonempty text; raise the row's error if this is impossible."""
        value, field = self.value(noun, *names), self.field(noun, *names)
        text = as_text(value)
        if text is None:
            raise self.error(field, "is neither text nor a finite number", value)
        if not text:
            raise self.error(field, "is empty", value)
        return self.whole(field, text)

    def whole(self, field: str, text: str, *, one_line: bool = False) -> str:
        """Return a field's text; raise the row's error for a lone surrogate (``one_line``: or a control)."""
        if HALF_CHARACTER.search(text):
            raise self.error(field, "contains half a character (a lone surrogate)", text)
        if one_line and (control := CONTROL.search(text)):
            raise self.error(field, f"contains a control character ({control[0]!r})", text)
        return text

    def field(self, noun: str, *names: str) -> str:
        """Return the name of a noun's field in this row, or the expected name if the field is missing."""
        present = self.find(noun, *names)
        return present[0] if present else self.renamed.get(noun) or (names[0] if names else noun)

    def error(self, field: str, problem: str, value: object = None) -> DataError:
        """Return the error for this row: its location, the field, the fault, the value and the keys present.

        >>> row = Record("a.jsonl, line 3", 0, {"question": "?", "answer": ""}, {})
        >>> print(row.error("answer", "is empty", ""))
        a.jsonl, line 3, field 'answer': is empty (value ''; keys present: question, answer)
        """
        keys = ", ".join(self.values) or "none"
        fault = f"{problem} (value {shorten(value)}; keys present: {keys})"
        return DataError(f"{self.location}, field {field!r}: {fault}")


def as_text(value: object) -> str | None:
    """Return text or a finite number as stripped text, integral floats without ".0"; else None.

    >>> as_text(27.0), as_text(0.5), as_text(" a "), as_text(None), as_text(True), as_text(float("nan"))
    ('27', '0.5', 'a', None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def files_of(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the sorted files of a path: one file, the shards in a folder (or its "data" folder), or a glob.

    Hidden and metadata files are left out. Raise DataError without files, or for files of several suffixes.
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"path: needs a file, folder or glob, got {shorten(path)}")
    if not os.fspath(path):
        raise DataError("path: is empty; give a file, folder or glob")
    given = Path(path)
    try:
        if given.is_dir():
            return _alike(given, _data_files(given.glob("*")) or _data_files(given.glob("data/*")))
        if glob.has_magic(str(path)) and not given.exists():
            start, pattern = Path(given.anchor), str(given.relative_to(given.anchor))
            found = start.glob(pattern if pattern.rpartition("/")[2] != "**" else f"{pattern}/*")
            hidden = "/." in f"/{pattern}"
            return _alike(given, _data_files(found, hidden=hidden, any_suffix=True))
        return (given,)
    except OSError as error:  # for example a name that is too long, or a folder without read permission
        name = str(error.filename or path)
        name = name if len(name) <= 200 else f"{name[:200]}..."
        raise DataError(f"{name}: {error.strerror or error}; give a file, folder or glob") from error


def _data_files(paths: Iterator[Path], *, hidden: bool = False, any_suffix: bool = False) -> list[Path]:
    """Return the data files among paths, sorted, with each file once for each split in its names."""
    files: dict[tuple[str, str | None], Path] = {}
    for path in sorted(paths):
        is_data = path.suffix.lower() in SUFFIXES or (any_suffix and not path.is_dir())
        is_hidden = any(part.startswith(".") and part != ".." for part in path.parts[-2:])
        if is_data and path.name not in NO_DATA and (hidden or not is_hidden):
            files.setdefault((os.path.realpath(path), split_named(path)), path)
    return list(files.values())


def _alike(given: Path, files: Sequence[Path]) -> tuple[Path, ...]:
    if not files:
        none = "no JSONL, JSON or Parquet file in this folder, nor in its 'data'"
        none = none if given.is_dir() else "no file matches"
        raise DataError(f"{given}: {none}; give a file, folder or glob")
    by_kind = {file.suffix.lower(): file for file in reversed(files)}
    if len(by_kind) > 1:
        first, second = sorted(by_kind.values())[:2]
        example = (given if given.is_dir() else given.parent) / f"*{first.suffix}"
        kinds = f"{first.name}, {second.name}"
        raise DataError(
            f"{given}: has files of several kinds ({kinds}); give a glob of one kind, as in {example}"
        )
    return tuple(files)


def of_split(path: str | os.PathLike[str], files: Sequence[Path], names: Sequence[str]) -> tuple[Path, ...]:
    """Return the files that are named for a split in ``names``, and the files that are named for no split.

    >>> shards = [Path("train-00000-of-00001.parquet"), Path("test.parquet"), Path("more.parquet")]
    >>> [file.name for file in of_split("data", shards, ["test"])]
    ['test.parquet', 'more.parquet']
    """
    named = {file: split_named(file) for file in files}
    kept = tuple(file for file, split in named.items() if split is None or split in names)
    if not kept:
        had = ", ".join(sorted({split for split in named.values() if split}))
        raise DataError(f"{path}: no file of split {names[0]!r}; use {had} or 'all'")
    return kept


def split_named(file: Path) -> str | None:
    """Return the split in a file's name, as in the hub's snapshots; None if there is none.

    >>> [split_named(Path(name)) for name in ("train-00001-of-00002.parquet", "test.jsonl", "sums-2.jsonl")]
    ['train', 'test', None]
    """
    match = _SHARD.fullmatch(file.stem)
    return match[1] if match else file.stem if file.stem in SPLITS else None


def read_files(paths: Sequence[Path], renamed: Mapping[str, str]) -> Iterator[Record]:
    """Yield the rows of several files in order, with one running index."""
    rows = (row for path in paths for row in _read_file(path, renamed))
    yield from (replace(row, index=index) for index, row in enumerate(rows))


def _read_file(path: Path, renamed: Mapping[str, str]) -> Iterator[Record]:
    """Yield the rows of a JSONL, JSON or Parquet file; a file with any other suffix is read as JSONL."""
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "is no plain file" if path.exists() else "no such file"
        raise DataError(f"{path}: {kind}; give path= a JSONL, JSON or Parquet file")
    readers = {".parquet": _parquet_rows, ".json": _json_rows}
    row = None
    try:
        open_plain(path, LARGEST_DATA).close()
        for location, row in readers.get(path.suffix.lower(), _jsonl_rows)(path):
            yield Record(location, 0, _mapping(row, location), renamed)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    if row is None:
        raise DataError(f"{path}: the data set is empty; it needs at least one row")


def _jsonl_rows(path: Path) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(plain_lines(path), start=1):
        location = f"{path}, line {number}"
        text = _decoded(line, location)
        if text.strip():
            yield location, _parsed(text, location)


def _json_rows(path: Path) -> Iterator[tuple[str, object]]:
    data = read_plain(path, LARGEST_JSON)
    value = _parsed(_decoded(data, str(path)), str(path))
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    if not isinstance(value, list):
        wanted = "a JSON list of objects (or an object with a list 'data')"
        raise DataError(f"{path}: needs {wanted}, got {shorten(value)}")
    yield from ((f"{path}, row {number}", row) for number, row in enumerate(value, start=1))


def _parquet_rows(path: Path) -> Iterator[tuple[str, object]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        needed = f"the 'pyarrow' package is needed to read Parquet: {install_hint('train')}"
        raise MissingPackageError(f"{path}: {needed}") from error
    try:
        with parquet.ParquetFile(path) as file:
            rows = (row for batch in file.iter_batches(batch_size=1024) for row in batch.to_pylist())
            yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows, start=1))
    except (OSError, ValueError) as error:  # pyarrow's own errors inherit from one of these
        raise DataError(f"{path}: is not a readable Parquet file ({shorten(str(error))})") from error


def _decoded(data: bytes, location: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if ", line " not in location:
            line = data.count(b"\n", 0, error.start) + 1
            location = f"{location}, line {line}"
        byte = data[error.start]
        raise DataError(f"{location}: is not UTF-8 (byte 0x{byte:02x}); save the file as UTF-8") from error


def _parsed(text: str, location: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        where = location if ", line " in location else f"{location}, line {error.lineno}"
        raise DataError(
            f"{where}: is not valid JSON: {error.msg} at column {error.colno} (got {shorten(text.strip())})"
        ) from error
    except RecursionError as error:
        raise DataError(f"{location}: is JSON nested too deeply to read") from error
    except ValueError as error:  # a duplicate key, or an integer with thousands of digits
        raise DataError(f"{location}: is JSON that cannot be read: {error}") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):  # otherwise the last value would win silently
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has the key {shorten(twice)} twice in one object")
    return values


def _mapping(row: object, location: str) -> Mapping[str, object]:
    if not isinstance(row, Mapping):
        raise DataError(f"{location}: needs an object with named fields, got {shorten(row)}")
    return row


def read_hub(
    hub_id: str,
    configs: tuple[str | None, ...],
    split: str,
    renamed: Mapping[str, str],
    *,
    streamed: bool = False,
    seed: int | None = None,
) -> Iterator[Record]:
    """Yield the rows of a split on the hub by configuration; ``seed`` shuffles a stream in a buffer."""
    count = 0
    for config in configs:
        location = "/".join(part for part in (hub_id, config) if part) + f"[{split}]"
        for i, row in enumerate(_hub_rows(location, hub_id, config, split, streamed=streamed, seed=seed)):
            yield Record(f"{location}, row {i}", count, _mapping(row, location), renamed)
            count += 1
    if not count:
        raise DataError(f"{hub_id}[{split}]: the data set is empty")


def _hub_rows(
    location: str, hub_id: str, config: str | None, split: str, *, streamed: bool, seed: int | None
) -> Iterator[object]:
    try:
        spare_retries()
        import datasets
    except ImportError as error:
        needed = f"needs the 'datasets' package to download it: {install_hint('train')}"
        raise MissingPackageError(f"{hub_id}: {needed}, or give path= a local file") from error
    try:
        if streamed:
            stream = datasets.load_dataset(hub_id, config, split=split, streaming=True)
            yield from stream if seed is None else stream.shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER)
        else:
            yield from datasets.load_dataset(hub_id, config, split=split)
    except Exception as error:  # the client may raise anything, even in the middle of a stream
        if isinstance(error, OSError) and not is_reachable():
            raise UnreachableError(f"{location}: {why_not()}; path= reads a local copy (env.path)") from error
        fault = f"could not be loaded ({shorten(str(error), 200)}); path= reads a local copy (env.path)"
        raise DataError(f"{location}: {fault}") from error
