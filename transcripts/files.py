"""Read files of lines, plain or sealed (compressed), by the same byte positions, and name these files.

The shard of a step is step_000012.jsonl, and its token arrays are tokens/step_000012.jsonl. When they are
sealed, both names end in .zst.

A sealed file stores its lines as Zstandard frames of about 128 kB with a seek table, so a line at any byte is
read by unpacking one frame. The format is Zstandard's own seekable format (contrib/seekable_format in
facebook/zstd), which ``zstd -d`` unpacks. Frames end at line ends. Byte positions refer to the unpacked text.
"""

from __future__ import annotations

import errno
import re
import struct
import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from debate.files import open_plain
from transcripts.errors import FieldError, TranscriptError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SEALED = ".zst"
TOKENS = "tokens"
ASIDE = "superseded"
SHARD_NAME = re.compile(r"step_([0-9]{6,11})\.jsonl(?:\.zst)?")
FRAME = 128 << 10
"""Unpacked bytes of lines in a frame. A longer line has its own frame."""
LARGEST = 64 << 20
"""Maximum unpacked bytes of a line, and so of a frame.

A file that claims more was not written by this package.
"""
MOST_FRAMES = 1 << 18
"""Maximum frames of a file: 32 GiB of unpacked lines."""
OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}
SKIPPABLE, SEEKABLE = 0x184D2A5E, 0x8F92EAB1
FOOTER = struct.Struct("<IBI")
HEAD = struct.Struct("<II")
MOST_OPEN = 8


def shard_name(step: int) -> str:
    """Return the file name of a step's shard.

    >>> shard_name(12)
    'step_000012.jsonl'
    """
    return f"step_{step:06d}.jsonl"


def shard_step(path: Path) -> int | None:
    """Return the step from a shard's name, sealed or not, or None for any other file.

    >>> shard_step(Path("step_000012.jsonl.zst")), shard_step(Path("notes.jsonl"))
    (12, None)
    """
    match = SHARD_NAME.fullmatch(path.name)
    step = int(match[1]) if match else -1
    return step if plain_name(path).name == shard_name(step) else None


def plain_name(path: Path) -> Path:
    """Return the plain (unsealed) path of a shard."""
    return path.with_name(path.name.removesuffix(SEALED))


def sealed_name(path: Path) -> Path:
    """Return the sealed path of a shard."""
    return path.with_name(path.name.removesuffix(SEALED) + SEALED)


def tokens_name(path: Path) -> Path:
    """Return the plain path of the token arrays of a shard."""
    return path.parent / TOKENS / plain_name(path).name


def shard_paths(folder: Path) -> list[Path]:
    """Return the shards of a transcripts folder, or of a run folder, sorted by step.

    If sealing was interrupted and a step has both files, return the plain file, which is always complete.
    """
    inner = folder / "transcripts"
    paths: dict[int, Path] = {}
    for path in (inner if inner.is_dir() else folder).iterdir():
        step = shard_step(path)
        if step is not None and (step not in paths or path.suffix != SEALED):
            paths[step] = path
    return [paths[step] for step in sorted(paths)]


class PlainFile:
    """Reads a file of lines that may be growing. ``size``: its bytes when it was opened."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file
        self.size = file.seek(0, 2)

    def line(self, start: int) -> bytes:
        """Return the line that begins at a byte, with its newline if it has one; b"" at the end."""
        self._file.seek(start)
        line = self._file.readline(LARGEST + 1)
        if len(line) > LARGEST:
            raise TranscriptError(f"{self.path}: the line at byte {start} is longer than {LARGEST >> 20} MiB")
        return line

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines, each with the byte at which it begins."""
        start = 0
        while line := self.line(start):
            yield start, line
            start += len(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class SealedFile(PlainFile):
    """Reads a sealed file. ``size``: the bytes of the unpacked text. TranscriptError if it is damaged."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        super().__init__(path, file)
        packed, unpacked = self._table(self.size)
        self._packed = [0, *accumulate(packed)]
        self._starts = [0, *accumulate(unpacked)]
        self.size = self._starts[-1]
        self._held: tuple[int, bytes] = (-1, b"")

    def _table(self, end: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the packed and the unpacked sizes of the frames."""
        if end < HEAD.size + FOOTER.size:
            raise self._damaged("it is cut off")
        self._file.seek(end - FOOTER.size)
        count, flags, magic = FOOTER.unpack(self._file.read(FOOTER.size))
        entry = 12 if flags & 0x80 else 8
        start = end - FOOTER.size - count * entry - HEAD.size
        if magic != SEEKABLE or start < 0:
            raise self._damaged("it has no seek table at its end: cut off, or not sealed by debate-rl")
        if count > MOST_FRAMES:
            raise self._damaged(f"it claims {count:,} frames, more than {MOST_FRAMES:,}")
        self._file.seek(start)
        head = HEAD.unpack(self._file.read(HEAD.size))
        numbers = struct.unpack(f"<{count * entry // 4}I", self._file.read(count * entry))
        packed, unpacked = numbers[0 :: entry // 4], numbers[1 :: entry // 4]
        if head != (SKIPPABLE, count * entry + FOOTER.size) or sum(packed) != start:
            raise self._damaged("its seek table does not match the file")
        if max(unpacked, default=0) > LARGEST:
            raise self._damaged(f"a frame claims more than {LARGEST >> 20} MiB")
        return packed, unpacked

    def _damaged(self, why: str) -> TranscriptError:
        return TranscriptError(f"{self.path}: damaged: {why}")

    def _frame(self, number: int) -> bytes:
        if self._held[0] != number:
            self._file.seek(self._packed[number])
            packed = self._file.read(self._packed[number + 1] - self._packed[number])
            size = self._starts[number + 1] - self._starts[number]
            try:
                unpacking = zstd.ZstdDecompressor()
                data = unpacking.decompress(packed, size + 1)
            except zstd.ZstdError as error:
                raise self._damaged(f"frame {number}: {error}") from error
            if len(data) != size or not unpacking.eof:
                raise self._damaged(f"frame {number} does not have the size that the seek table states")
            if size > FRAME and data.find(b"\n") != size - 1:
                raise self._damaged(f"frame {number} has {size:,} bytes and is not one line")
            self._held = (number, data)
        return self._held[1]

    def line(self, start: int) -> bytes:
        """Return the line that begins at a byte, with its newline; b"" at the end and beyond."""
        if start >= self.size:
            return b""
        number = bisect_right(self._starts, start) - 1
        frame, inner = self._frame(number), start - self._starts[number]
        end = frame.find(b"\n", inner) + 1
        return frame[inner : end or len(frame)]


def write_sealed(lines: Iterable[bytes], out: BinaryIO) -> None:
    """Write lines, each with its newline, as frames and a seek table."""
    sizes: list[int] = []
    for block in _blocks(lines):
        frame = zstd.compress(block, options=OPTIONS)
        sizes += [len(frame), len(block)]
        out.write(frame)
    table = struct.pack(f"<{len(sizes)}I", *sizes)
    out.write(HEAD.pack(SKIPPABLE, len(table) + FOOTER.size))
    out.write(table)
    out.write(FOOTER.pack(len(sizes) // 2, 0, SEEKABLE))


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    block = bytearray()
    for line in lines:
        if block and len(block) + len(line) > FRAME:
            yield bytes(block)
            block.clear()
        block += line
    if block:
        yield bytes(block)


def open_file(path: Path) -> PlainFile:
    """Open a file of lines by its plain or sealed name, whichever exists.

    If both exist, the plain file is opened, because it is complete. A path with another suffix is read as it
    is. TranscriptError if it is not a plain file (reading a pipe would block), FileNotFoundError if it does
    not exist.
    """
    if path.suffix not in (".jsonl", SEALED):
        return PlainFile(path, _opened(path))
    try:
        return PlainFile(plain_name(path), _opened(plain_name(path)))
    except FileNotFoundError:
        pass
    try:
        file = _opened(sealed_name(path))
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, error.strerror, str(path)) from error
    try:
        return SealedFile(sealed_name(path), file)
    except BaseException:
        file.close()
        raise


def reading(path: Path) -> closing[PlainFile]:
    """Open a file of lines for use in a ``with`` statement."""
    return closing(open_file(path))


def _opened(path: Path) -> BinaryIO:
    try:
        return open_plain(path)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise TranscriptError(f"{path}: not a plain file") from error
        raise


class OpenFiles:
    """Reads single lines of shards.

    Some shards stay open, so a file can still be read after it was sealed.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Path, PlainFile] = OrderedDict()

    def line(self, path: Path, start: int) -> bytes:
        """Return the line that begins at a byte. FileNotFoundError if the file is gone."""
        if path not in self._open:
            self._open[path] = open_file(path)
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(path)
        return self._open[path].line(start)

    def token_line(self, shard: Path, start: int) -> bytes:
        """Return a line of a shard's token arrays, or b"" if there is none.

        FieldError for a negative byte.
        """
        if start < 0:
            raise FieldError("tokens", f"{start} is not a byte position in a file")
        try:
            line = self.line(tokens_name(shard), start)
        except FileNotFoundError:
            return b""
        return line if line.endswith(b"\n") else b""

    def close(self) -> None:
        """Close all files. The next read opens its file again."""
        while self._open:
            self._open.popitem()[1].close()
