"""Shards: one file of JSON lines per step, transcripts/step_000012.jsonl, one debate a line.

Token arrays lie beside them in tokens/step_000012.jsonl and are written first, so a debate that is there has
its tokens; an array line without its debate is harmless.

A finished shard is sealed: packed to a fraction of its size, and still read from any byte. The packed file is
built beside the plain one, brought to the disk and renamed; then the plain one goes. A process that is killed
anywhere leaves the plain file whole, or the sealed one, or both, which are the same.
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
"""Ends the name of a sealed file that is being built; it begins with a dot."""


class ShardWriter:
    """Appends the debates of one step to its shard, one unbuffered write each; synced when closed.

    ``tokens=False`` leaves out token ids, log-probabilities and offsets: about a tenth of the size, enough
    for rewards and advantages, not for the loss. TranscriptError for a step that is sealed.
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
                raise FieldError("", f"it has {len(line):,} bytes, and a line at most {LARGEST:,}")
        except FieldError as error:
            raise TranscriptError(f"{self.path}: cannot store problem {record.group}: {error}") from error
        if self._arrays is not None and arrays is not None:
            self._arrays.write(arrays)
        self._file.write(line)

    def _arrays_of(self, record: Record) -> bytes | None:
        """Return the line of token arrays; None without any, and, with a warning, if it is too long."""
        arrays = token_line(record.debate)
        if arrays is not None and len(arrays) >= LARGEST:
            left_out = f"the token arrays of problem {record.group} are left out: {len(arrays):,} bytes"
            warnings.warn(f"{self.path}: {left_out}, and a line has at most {LARGEST:,}", stacklevel=3)
            return None
        return arrays

    def close(self, *, sync: bool = True) -> None:
        """Bring the shard to the disk, unless ``sync`` is False, and close it."""
        try:
            if self._arrays is not None:
                self._arrays.close(sync=sync)
        finally:
            self._file.close(sync=sync)

    def seal(self) -> Path:
        """Close the shard, nothing more will follow, and return the path of its sealed form.

        The sealed files come to the disk, and the plain ones, which then go, need not.
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
    """Append the records to the step's shard, seal it if nothing will follow, and return its path."""
    with ShardWriter(folder, step, tokens=tokens) as writer:
        for record in records:
            writer.write(record)
        return writer.seal() if seal else writer.path


def seal_shard(path: Path) -> Path:
    """Seal a step's debates and their token arrays; return the sealed path of the debates.

    A torn last line is cut off first. Nothing happens to what is sealed already.
    """
    for part in (tokens_name(path), plain_name(path)):
        if part.is_file():
            _seal_file(part)
    return sealed_name(path)


def seal_before(folder: Path, step: int) -> list[Path]:
    """Seal what sealing left plain of the steps before ``step``; nothing may write to them any more.

    Takes away files whose sealing was cut off. Returns the sealed paths.
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
    LineFile(path).close(sync=False)  # cuts a torn tail off
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
    """Move the shards of ``step`` and later to superseded/: a resumed run writes these steps again.

    Returns where they went; nothing is deleted. The token arrays go to superseded/tokens/.
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
    """Return the name with a number, from 2, before its suffixes.

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

    A shard may be named plain or sealed, whichever it is. ``tokens=False`` reads no token arrays; where
    their file is not there, the records have none. A torn last line is reported to ``on_torn`` and left out.
    Anything else that is not a record raises TranscriptError with file, line and field; so does a path that
    is not there.
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
