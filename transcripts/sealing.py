"""Finished shards are packed to a fraction of their size, and still read from any byte.

The packed file is built beside the plain one, brought to the disk and renamed; then the plain one goes. A
process that is killed anywhere leaves the plain file whole, or the sealed one, or both, which are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from transcripts.append import LineFile, sync_folder
from transcripts.errors import TranscriptWriteError
from transcripts.files import reading
from transcripts.names import SEALED, TOKENS, plain_name, sealed_name, shard_step, tokens_name
from transcripts.sealed import write_sealed

FRESH = ".new"
"""Ends the name of a sealed file that is being built; it begins with a dot."""


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
    for part in (folder, folder / TOKENS):
        for left in part.glob(f".step_*{SEALED}{FRESH}") if part.is_dir() else ():
            left.unlink(missing_ok=True)
    plain = {path for part in (folder, folder / TOKENS) if part.is_dir() for path in _plain(part, step)}
    names = sorted({path.name for path in plain})
    return [seal_shard(folder / name) for name in names]


def _plain(folder: Path, step: int) -> Iterator[Path]:
    for path in folder.iterdir():
        number = shard_step(path)
        if number is not None and number < step and path.suffix != SEALED:
            yield path


def _seal_file(path: Path) -> None:
    LineFile(path).close(sync=False)  # cuts a torn tail off
    sealed = sealed_name(path)
    fresh = path.with_name(f".{sealed.name}{FRESH}")
    try:
        _build(path, fresh)
        fresh.replace(sealed)
        sync_folder(path.parent)
        path.unlink()
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise TranscriptWriteError.of(error, sealed) from error


def _build(path: Path, fresh: Path) -> None:
    with reading(path) as lines, fresh.open("wb") as out:
        write_sealed((line for _, line in lines.lines()), out)
        out.flush()
        os.fsync(out.fileno())
