"""Find the files that a path means: one file, or the shards of a folder or a glob, sorted by name.

A snapshot of the hub names the split in the file: ``data/train-00000-of-00002.parquet``.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from envs.errors import DataError, shorten

SUFFIXES = (".parquet", ".jsonl", ".json")
NO_DATA = ("dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json")
"""Files that the hub's libraries keep beside the data."""
SPLITS = ("train", "training", "test", "validation", "valid", "val", "dev")
"""Splits whose name alone can be a file's name."""

_SHOWN = 200
"""Characters that an error shows of a path that is too long."""
_SHARD = re.compile(r"(\w[\w.-]*?)-\d+-of-\d+(?:-[0-9a-f]+)?", re.ASCII)


def files_of(path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Return the files a path means, sorted; DataError for none, and for files of several kinds.

    Of a folder these are its JSONL, JSON or Parquet files, or else those of its folder "data", without hidden
    files and the hub's own notes.
    """
    if not isinstance(path, str | os.PathLike):
        raise DataError(f"path: needs a file, folder or glob, got {shorten(path)}")
    if not os.fspath(path):
        raise DataError("path: is empty; give a file, folder or glob")
    given = Path(path)
    try:
        if given.is_dir():
            return _alike(given, _data_files(given) or _data_files(given / "data"))
        is_glob = glob.has_magic(str(path)) and not given.exists()
        return _alike(given, _matching(given)) if is_glob else (given,)
    except OSError as error:  # a name that is too long, a folder that may not be read
        name = str(error.filename or path)
        name = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise DataError(f"{name}: {error.strerror or error}; give a file, folder or glob") from error


def of_split(path: str | os.PathLike[str], files: Sequence[Path], names: Sequence[str]) -> tuple[Path, ...]:
    """Return the shards whose file names name a split in ``names``, and those that name none.

    >>> shards = [Path("train-00000-of-00001.parquet"), Path("test.parquet"), Path("more.parquet")]
    >>> [file.name for file in of_split("data", shards, ["test"])]
    ['test.parquet', 'more.parquet']
    """
    named = {file: split_named(file) for file in files}
    kept = tuple(file for file, split in named.items() if split is None or split in names)
    if not kept:
        had = ", ".join(sorted({split for split in named.values() if split}))
        raise DataError(f"{path}: no file of split {names[0]!r}; its files are of {had}, or use 'all'")
    return kept


def split_named(file: Path) -> str | None:
    """Return the split that a file's name names; None if it names none.

    >>> [split_named(Path(name)) for name in ("train-00001-of-00002.parquet", "test.jsonl", "sums-2.jsonl")]
    ['train', 'test', None]
    """
    match = _SHARD.fullmatch(file.stem)
    return match[1] if match else file.stem if file.stem in SPLITS else None


def _matching(pattern: Path) -> list[Path]:
    """Return what matches a glob, sorted, one name for each file and split; folders only if named like data.

    ``**`` does not follow links to folders, so no folder is walked twice or for ever.
    """
    start, *parts = pattern.parts if pattern.is_absolute() else ("", *pattern.parts)
    paths = [Path(start)]
    for part, following in zip(parts, (*parts[1:], ""), strict=True):
        if (part, following) != ("**", "**"):
            paths = list(dict.fromkeys(_expanded(paths, part, is_last=not following)))
    files: dict[tuple[str, str | None], Path] = {}
    for path in sorted(paths):
        is_data = path.suffix.lower() in SUFFIXES or not path.is_dir()
        if is_data and path.name not in NO_DATA:
            files.setdefault((os.path.realpath(path), split_named(path)), path)
    return list(files.values())


def _expanded(folders: Sequence[Path], part: str, *, is_last: bool) -> Iterator[Path]:
    """Yield what one part of a glob matches in each folder; hidden names only if it begins with a point."""
    for folder in folders:
        if part == "**":
            pending = [folder]
            while pending:
                inside = pending.pop()
                children = [child for child in _listed(inside) if not child.name.startswith(".")]
                pending += (child for child in children if child.is_dir() and not child.is_symlink())
                yield from children if is_last else (inside,)
        elif glob.has_magic(part):
            shown = (c for c in _listed(folder) if part.startswith(".") or not c.name.startswith("."))
            yield from (child for child in shown if fnmatch.fnmatchcase(child.name, part))
        elif os.path.lexists(folder / part):
            yield folder / part


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _data_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and file.name not in NO_DATA and not file.name.startswith(".")
    )


def _alike(given: Path, files: Sequence[Path]) -> tuple[Path, ...]:
    if not files:
        none = "no JSONL, JSON or Parquet file in this folder, nor in its 'data'"
        none = none if given.is_dir() else "no file matches"
        raise DataError(f"{given}: {none}; give a file, folder or glob")
    by_kind = {file.suffix.lower(): file for file in reversed(files)}
    if len(by_kind) > 1:
        first, second = sorted(by_kind.values())[:2]
        raise DataError(
            f"{given}: has files of several kinds ({first.name}, {second.name}); give a glob of one kind, "
            f"as in {_example(given, first.suffix)}"
        )
    return tuple(files)


def _example(given: Path, suffix: str) -> str:
    return str((given if given.is_dir() else given.parent) / f"*{suffix}")
