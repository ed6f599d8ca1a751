"""Shards: one file of JSON lines per step, transcripts/step_000012.jsonl, with one debate per line.

Token arrays are in tokens/step_000012.jsonl. They are written first, so a stored debate always has its
tokens. An array line without its debate is harmless.

A finished shard is sealed: compressed to a fraction of its size, but still readable from any byte. The sealed
file is built next to the plain one, synced to the disk and renamed; then the plain file is deleted. Wherever
a process is killed, it leaves the complete plain file, the sealed file, or both with the same content.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Self

from transcripts.append import LineFile, sync_folder
from transcripts.codec import from_line, to_line, token_line
from transcripts.errors import FieldError, TornTailWarning, TranscriptError, TranscriptWriteError
from transcripts.files import (
    ASIDE,
    LARGEST,
    SEALED,
    TOKENS,
    OpenFiles,
    plain_name,
    reading,
    sealed_name,
    shard_name,
    shard_paths,
    shard_step,
    tokens_name,
    write_sealed,
)
from transcripts.record import Record

FRESH = ".new"
"""The suffix of a sealed file under construction, whose name also starts with a dot."""


class ShardWriter:
    """Appends the debates of one step to its shard, each with one unbuffered write. Synced when closed.

    ``tokens=False`` omits token ids, log-probabilities and offsets. The file is then about a tenth of the
    size, and sufficient for rewards and advantages but not for the loss. TranscriptError for a sealed step.
    """

    def __init__(self, folder: Path, step: int, *, tokens: bool = True) -> None:
        self.step, self._tokens = step, tokens
        self.path = folder / shard_name(step)
        if sealed_name(self.path).exists() and not self.path.exists():
            raise TranscriptError(f"{sealed_name(self.path)}: is sealed; nothing can be added to it")
        self._file = LineFile(self.path)
        self._arrays: LineFile | None = None

    def write(self, record: Record) -> None:
        """Append one record of this step."""
        if record.step != self.step:
            raise TranscriptError(f"{self.path}: a record of step {record.step} does not belong here")
        try:
            arrays = self._arrays_of(record) if self._tokens else None
            if arrays is not None and self._arrays is None:
                self._arrays = LineFile(tokens_name(self.path))
            line = to_line(record, self._arrays.end if self._arrays is not None and arrays else None)
            if len(line) >= LARGEST:
                raise FieldError("", f"it has {len(line):,} bytes, but a line may have at most {LARGEST:,}")
        except FieldError as error:
            raise TranscriptError(f"{self.path}: cannot store problem {record.group}: {error}") from error
        if self._arrays is not None and arrays is not None:
            self._arrays.write(arrays)
        self._file.write(line)

    def _arrays_of(self, record: Record) -> bytes | None:
        """Return the line of token arrays.

        None if there are none or, with a warning, if the line is too long.
        """
        arrays = token_line(record.debate)
        if arrays is not None and len(arrays) >= LARGEST:
            left_out = f"the token arrays of problem {record.group} are left out: {len(arrays):,} bytes"
            warnings.warn(f"{self.path}: {left_out}, but a line may have at most {LARGEST:,}", stacklevel=3)
            return None
        return arrays

    def close(self, *, sync: bool = True) -> None:
        """Sync the shard to the disk unless ``sync`` is False, and close it."""
        try:
            if self._arrays is not None:
                self._arrays.close(sync=sync)
        finally:
            self._file.close(sync=sync)

    def seal(self) -> Path:
        """Close and seal the shard, and return the path of the sealed file.

        Only the sealed files are synced to the disk, because the plain files are then deleted.
        """
        self.close(sync=False)
        return seal_shard(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def write_step(
    folder: Path, step: int, records: Iterable[Record], *, tokens: bool = True, seal: bool = False
) -> Path:
    """Append the records to the step's shard, seal it if ``seal`` is set, and return its path."""
    with ShardWriter(folder, step, tokens=tokens) as writer:
        for record in records:
            writer.write(record)
        return writer.seal() if seal else writer.path


def seal_shard(path: Path) -> Path:
    """Seal a step's debates and their token arrays, and return the sealed path of the debates.

    A torn last line is cut off first. Files that are already sealed are unchanged.
    """
    for part in (tokens_name(path), plain_name(path)):
        if part.is_file():
            _seal_file(part)
    return sealed_name(path)


def seal_before(folder: Path, step: int) -> list[Path]:
    """Seal the plain files that remain from steps before ``step``, and return the sealed paths.

    Nothing may still write to these steps. Files left over from interrupted sealing are deleted.
    """
    if not folder.is_dir():
        return []
    names: set[str] = set()
    for part in (folder, folder / TOKENS):
        for path in part.iterdir() if part.is_dir() else ():
            number = shard_step(path)
            if path.name.startswith(".step_") and path.name.endswith(SEALED + FRESH):
                path.unlink(missing_ok=True)
            elif number is not None and number < step and path.suffix != SEALED:
                names.add(path.name)
    return [seal_shard(folder / name) for name in sorted(names)]


def _seal_file(path: Path) -> None:
    LineFile(path).close(sync=False)  # cuts off a torn last line
    sealed = sealed_name(path)
    fresh = path.with_name(f".{sealed.name}{FRESH}")
    try:
        with reading(path) as lines, fresh.open("wb") as out:
            write_sealed((line for _, line in lines.lines()), out)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(sealed)
        sync_folder(path.parent)
        path.unlink()
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise TranscriptWriteError.of(error, sealed) from error


def set_aside_from(folder: Path, step: int) -> list[Path]:
    """Move the shards of ``step`` and later to superseded/, because a resumed run writes these steps again.

    Returns their new paths; nothing is deleted. The token arrays are moved to superseded/tokens/.
    """
    if not folder.is_dir():
        return []
    parts = [folder, *([folder / TOKENS] if (folder / TOKENS).is_dir() else [])]
    steps = {number for part in parts for path in part.iterdir() if (number := shard_step(path)) is not None}
    return [path for number in sorted(steps) if number >= step for path in _set_aside(folder, number)]


def _set_aside(folder: Path, step: int) -> list[Path]:
    names = [Path(shard_name(step)), sealed_name(Path(shard_name(step)))]
    names = [*(TOKENS / name for name in names), *names]
    moved: list[Path] = []
    aside = folder / ASIDE
    number = 1
    while any((aside / _numbered(name, number)).exists() for name in names):
        number += 1
    for name in names:
        if (folder / name).exists():
            goal = aside / _numbered(name, number)
            try:
                goal.parent.mkdir(parents=True, exist_ok=True)
                moved.append((folder / name).rename(goal))
            except OSError as error:
                raise TranscriptWriteError.of(error, folder / name) from error
    return moved


def _numbered(name: Path, number: int) -> Path:
    """Return the name with a number, from 2 on, before its suffixes.

    >>> _numbered(Path("step_000012.jsonl.zst"), 2).name
    'step_000012.2.jsonl.zst'
    """
    stem, _, suffixes = name.name.partition(".")
    return name if number == 1 else name.with_name(f"{stem}.{number}.{suffixes}")


def warn_torn(message: str) -> None:
    """Report a torn last line as a warning."""
    warnings.warn(message, TornTailWarning, stacklevel=4)


def read_records(
    path: Path | str, *, tokens: bool = True, on_torn: Callable[[str], None] = warn_torn
) -> Iterator[Record]:
    """Yield the records of a shard, a transcripts folder or a run folder, in the order they were written.

    A shard may be given by its plain or its sealed name. With ``tokens=False``, or if their file does not
    exist, the records have no token arrays. A torn last line is reported to ``on_torn`` and ignored.
    TranscriptError, with file, line and field, for anything else that is not a record, and for a path that
    does not exist.
    """
    path = Path(path)
    try:
        shards = shard_paths(path) if path.is_dir() else [path]
        for shard in shards:
            yield from _read_shard(shard, tokens, on_torn)
    except OSError as error:
        raise TranscriptError(
            f"{error.filename or path}: cannot read transcripts: {error.strerror}"
        ) from error


def _read_shard(path: Path, tokens: bool, on_torn: Callable[[str], None]) -> Iterator[Record]:
    with reading(path) as file, closing(OpenFiles()) as files:
        tokens_at = partial(files.token_line, path) if tokens else None
        for number, (_, line) in enumerate(file.lines(), start=1):
            try:
                yield from_line(line, tokens_at)
            except FieldError as error:
                if error.field == "" and not line.endswith(b"\n"):
                    on_torn(
                        f"{path}:{number}: the last line was cut off while it was written; it is left out"
                    )
                else:
                    raise TranscriptError(f"{path}:{number}: {error}") from error
