"""An append-only file of lines that stays valid: one write per line, and repair of a torn last line."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from transcripts.errors import TranscriptWriteError
from transcripts.files import LARGEST

BLOCK = 1 << 16


class LineFile:
    """Appends lines to a file, unbuffered, so that a killed process loses at most the line it was writing.

    A write that fails midway (full disk) is undone and raises TranscriptWriteError. Opening anything but a
    plain file raises it too, because a run may come from an untrusted source: a link could change another
    file. ``shared``: wait until no other process or thread has the file open in this way.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self.path, self._fd = path, -1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._new = not path.exists()
            if path.is_symlink() or (not self._new and not path.is_file()):
                raise OSError(errno.EINVAL, "not a plain file")
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(path, flags, 0o644)
            if shared:
                import fcntl  # not on Windows

                fcntl.flock(self._fd, fcntl.LOCK_EX)  # closing the file releases it
            repair_tail(self._fd)
            self.end = os.lseek(self._fd, 0, os.SEEK_END)
            """The number of bytes written so far, where the next line will begin."""
        except OSError as error:
            self.close(sync=False)
            raise TranscriptWriteError.of(error, path) from error

    def write(self, line: bytes) -> None:
        """Append one line, given without its newline. It is written completely or not at all."""
        data = line + b"\n"
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            with suppress(OSError):  # a line not cut off now is repaired when the file is next opened
                os.ftruncate(self._fd, self.end)
                os.lseek(self._fd, self.end, os.SEEK_SET)
            raise TranscriptWriteError.of(error, self.path) from error
        self.end += len(data)

    def read(self, begin: int, end: int) -> bytes:
        """Return the bytes from ``begin`` to ``end``, as they were written."""
        return os.pread(self._fd, end - begin, begin)

    def sync(self) -> None:
        """Sync all written lines, and a new file's name, to the disk, so that a power failure loses none."""
        try:
            os.fsync(self._fd)
            if self._new:
                sync_folder(self.path.parent)
                self._new = False
        except OSError as error:
            raise TranscriptWriteError.of(error, self.path) from error

    def close(self, *, sync: bool = True) -> None:
        """Sync all lines unless ``sync`` is False, then close the file. A second call does nothing."""
        if self._fd < 0:
            return
        try:
            if sync:
                self.sync()
        finally:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def sync_folder(folder: Path) -> None:
    """Sync the file names in a folder to the disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def free_name(path: Path) -> Path:
    """Return the path, with a number before its last suffix if the name is already taken."""
    count, free = 1, path
    while free.exists():
        count += 1
        free = path.with_name(f"{path.stem}.{count}{path.suffix}")
    return free


def repair_tail(fd: int) -> None:
    """Add the missing newline to a last line of complete JSON, or cut off a torn last line."""
    size = os.lseek(fd, 0, os.SEEK_END)
    start = _last_line_start(fd, size)
    if start == size:
        return
    if is_whole(os.pread(fd, size - start, start)):
        os.pwrite(fd, b"\n", size)
    else:
        os.ftruncate(fd, start)


def is_whole(line: bytes) -> bool:
    """Return whether a line is complete JSON. A truncated object is not.

    >>> is_whole(b'{"a": 1}'), is_whole(b'{"a": 1'), is_whole(b"")
    (True, False, False)
    """
    try:
        json.loads(line.decode())
    except (ValueError, RecursionError):
        return False
    return True


def _last_line_start(fd: int, size: int) -> int:
    """Return the index after the last newline; ``size`` if nothing follows it.

    OSError for a very long last line.
    """
    end = size
    while end > 0:
        begin = max(0, end - BLOCK)
        at = os.pread(fd, end - begin, begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        if size - begin > LARGEST:
            raise OSError(errno.EFBIG, f"its last line is longer than {LARGEST >> 20} MiB")
        end = begin
    return 0
