"""Files of lines to read, plain or sealed: the same bytes mean the same lines in both."""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from debate.files import open_plain
from transcripts.errors import FieldError, TranscriptError
from transcripts.names import SEALED, plain_name, sealed_name, tokens_name
from transcripts.sealed import LARGEST, SealedFile


class PlainFile:
    """Reads a file of lines that may be growing. ``size``: its bytes when it was opened."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file
        self.size = file.seek(0, 2)

    def line(self, start: int) -> bytes:
        """Return the line that begins at a byte, with its newline if it has one; b"" at the end."""
        self._file.seek(start)
        return self._next(start)

    def lines(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the lines from a byte on, each with the byte where it begins."""
        self._file.seek(start)
        while line := self._next(start):
            yield start, line
            start += len(line)

    def _next(self, start: int) -> bytes:
        line = self._file.readline(LARGEST + 1)
        if len(line) > LARGEST:
            raise TranscriptError(f"{self.path}: the line at byte {start} is longer than {LARGEST >> 20} MiB")
        return line

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_file(path: Path) -> PlainFile | SealedFile:
    """Open a file of lines by its plain or its sealed name, whichever of the two is there.

    The plain one goes first: where both are there it is whole. TranscriptError for what is not a plain file
    (a pipe would be waited for), FileNotFoundError where there is none.
    """
    try:
        return PlainFile(plain_name(path), _opened(plain_name(path)))
    except FileNotFoundError:
        pass
    sealed = sealed_name(path)
    try:
        file = _opened(sealed)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
    try:
        return SealedFile(sealed, file)
    except BaseException:
        file.close()
        raise


def reading(path: Path) -> closing[PlainFile | SealedFile]:
    """Open a file of lines for a while; a path that names neither a shard nor its seal is read as it is."""
    return closing(open_file(path) if path.suffix in (".jsonl", SEALED) else PlainFile(path, _opened(path)))


def _opened(path: Path) -> BinaryIO:
    try:
        return open_plain(path)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise TranscriptError(f"{path}: not a plain file") from error
        raise


MOST_OPEN = 8


class OpenFiles:
    """Reads single lines of shards, some of which stay open: a file that was sealed meanwhile still reads."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, PlainFile | SealedFile] = OrderedDict()

    def line(self, path: Path, start: int) -> bytes:
        """Return the line that begins at a byte; FileNotFoundError where the file is gone."""
        if path not in self._open:
            self._open[path] = open_file(path)
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(path)
        return self._open[path].line(start)

    def token_line(self, shard: Path, start: int) -> bytes:
        """Return a line of a shard's token arrays, b"" where none begins; FieldError below byte 0."""
        if start < 0:
            raise FieldError("tokens", f"{start} is not a byte of a file")
        try:
            line = self.line(tokens_name(shard), start)
        except FileNotFoundError:
            return b""
        return line if line.endswith(b"\n") else b""

    def close(self) -> None:
        """Close every file; the next read opens anew."""
        while self._open:
            self._open.popitem()[1].close()
