"""Load problems: any data set, file or synthetic family as a tuple of problems, or one clear error."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path

from debate.seeds import derive_seed
from debate.types import Problem
from envs.data.catalog import DATA_SETS, find_data_set
from envs.data.data_set import OWN_FILE, DataSet, hub_data_set
from envs.data.records import Record, read_files, read_hub
from envs.data.rows import Reader
from envs.data.selection import Selection
from envs.data.shards import files_of, of_split
from envs.errors import DataError, shorten
from envs.families import FAMILIES

NOUNS = (
    "question",
    "answer",
    "id",
    "level",
    "subject",
    "choices",
    "solution",
    "split",
    "kind",
    "rubric",
    "reference",
)
OWN_FILE_NAMES = ("file", "jsonl", "json", "parquet", "open")
"""Names for your own data; under "open" problems have no answers, and none is looked for."""


def load_problems(
    name: str,
    *,
    split: str = "train",
    limit: int | None = None,
    seed: int | None = None,
    path: str | PathLike[str] | None = None,
    levels: Iterable[str | int] | None = None,
    subjects: Iterable[str] | None = None,
    ids: Iterable[str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> tuple[Problem, ...]:
    """Return the problems of a data set, of your own file (name "file"), or of a synthetic family.

    A data set goes by its name or its hub id; any other "owner/name" of the hub is read as a file of your own
    is. ``path`` reads a local JSONL, JSON or Parquet file instead of the hub, or the shards of a folder or a
    glob (a shard named for another split is not read); ``fields`` names its fields, e.g.
    ``{"question": "prompt", "answer": "gold"}``. ``levels``, ``subjects`` and ``ids`` keep what they name,
    and what matches nothing is an error. ``seed`` shuffles (the same order for every ``limit``), ``limit``
    keeps the first n. Split "all" reads every row of a local file.

    >>> [problem.question for problem in load_problems("words", split="test", limit=1, seed=0, levels=[1])]
    ['Ann has 9 books. Ann loses 1. How many books?']
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise DataError(f"limit: needs a whole number of at least 1, got {shorten(limit)}")
    if name in FAMILIES:
        _refuse(name, path=path, subjects=subjects, ids=ids, fields=fields)
        return FAMILIES[name].of_levels(levels).problems(split=split, limit=limit, seed=seed)
    entry = entry_of(name, path)
    selection = Selection.of(levels=levels, subjects=subjects, ids=ids)
    drawn = None if seed is None else derive_seed(seed, "problems", entry.name, split)
    rows = rows_of(entry, split, path, checked_fields(fields), drawn)
    reader = Reader(entry, split, is_open=name == "open", seed=seed or 0)
    in_order = drawn is None or (entry.streamed and path is None)  # a stream shuffles itself
    problems = reader.read(rows, selection, enough=limit if entry.streamed and in_order else None)
    if drawn is not None and not in_order:
        random.Random(drawn).shuffle(problems)
    return tuple(problems[:limit])


def entry_of(name: str, path: str | PathLike[str] | None) -> DataSet:
    """Return the data set of a name, a hub id or a file of one's own; DataError where there is none."""
    if name in OWN_FILE_NAMES:
        if path is None:
            raise DataError(f"{name!r}: give path= the file to read")
        return OWN_FILE
    entry = find_data_set(name) or hub_data_set(name)
    if entry is None:
        valid = ", ".join((*DATA_SETS, *FAMILIES, "file"))
        raise DataError(
            f"name: {name!r} is not a known data set; valid: {valid} (your own: 'file' with path=...)"
        )
    return entry


def rows_of(
    entry: DataSet, split: str, path: str | PathLike[str] | None, renamed: Mapping[str, str], seed: int | None
) -> Iterator[Record]:
    """Return the rows of a split that belong to the data set."""
    if path is None:
        if not entry.hub_id:
            raise DataError(
                f"{entry.name}: is not on the hub; give path= (env.path) its file of {entry.home}"
            )
        if split not in entry.splits and not entry.own:
            raise DataError(f"split: {entry.name} has {', '.join(entry.splits)}; got {split!r}")
        home = (entry.hub_id, entry.configs, entry.splits.get(split, split), renamed)
        rows = read_hub(*home, streamed=entry.streamed, seed=None if seed is None else seed % 2**32)
    else:
        files = files_of(path)
        if split != "all" and files != (Path(path),):
            files = of_split(path, files, (split, entry.splits.get(split, split)))
        rows = read_files(files, renamed)
        if split != "all" and (entry.split_field or "split" in renamed):
            rows = _of_split(rows, split, entry.split_field or "split", path)
    return rows if entry.keep is None else filter(entry.keep, rows)


def _of_split(rows: Iterable[Record], split: str, field: str, path: str | PathLike[str]) -> Iterator[Record]:
    """Yield the rows of a split and those that name none; DataError if there are neither."""
    known: set[str] = set()
    any_row = False
    for row in rows:
        named = row.find("split", field)
        known.add(str(named[1] if named else None))
        if named is None or named[1] in (split, None):
            any_row = True
            yield row
    if not any_row:
        had = ", ".join(sorted(known))
        raise DataError(f"{path}: no row of split {split!r}; the file has {had}, or use 'all'")


def checked_fields(fields: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the names of fields by our nouns; DataError for an unknown noun."""
    if fields is not None and not isinstance(fields, Mapping):
        raise DataError(f"fields: needs a table from our names to yours, got {shorten(fields)}")
    for noun, name in (fields or {}).items():
        if noun not in NOUNS:
            raise DataError(f"fields: {noun!r} cannot be named; valid: {', '.join(NOUNS)}")
        if not isinstance(name, str) or not name:
            raise DataError(f"fields: {noun!r} needs the name of a field, got {shorten(name)}")
    return fields or {}


def _refuse(name: str, **options: object) -> None:
    for option, value in options.items():
        if value is not None:
            raise DataError(
                f"{option}: the synthetic family {name!r} takes none; it takes split, limit, seed, levels"
            )
