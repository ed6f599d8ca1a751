"""A file of what verifier models have stated, one line each: it outlasts kills, and runs may share it.

Lines are only added, each by one write under the file's lock. What is not a whole line of this form (a torn
last one, after a kill or a full disk) is passed over, and asked again.
"""

from __future__ import annotations

import fcntl
import os
import warnings
from pathlib import Path
from typing import Self

import msgspec

from debate.files import naming, plain_lines
from envs.errors import DataError, DataWarning
from envs.rubrics.verdicts import Stated
from envs.types import FAULTS

LONGEST_SAID = 20_000
"""Characters of a completion that are stored."""


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``key``: the content that was asked about; ``model``: whose words ``said`` are."""

    key: str
    model: str
    value: str | None = None
    fault: str = ""
    said: str = ""
    prompt_tokens: int = 0
    tokens: int = 0


_DECODER = msgspec.json.Decoder(Line)


class VerdictCache:
    """What was stated, by key. DataError where the path cannot be such a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Stated] = {}
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._read(path)
        except (OSError, ValueError) as error:
            raise DataError(f"verifier.cache={path}: {getattr(error, 'strerror', None) or error}") from error

    def _read(self, path: Path) -> None:
        lines = [line for line in plain_lines(path) if line.strip()]
        damaged = 0
        for line in lines:
            try:
                kept = _DECODER.decode(line)
            except (msgspec.DecodeError, RecursionError):
                damaged += 1
                continue
            if (kept.value is None) == (kept.fault in FAULTS):
                self._known[kept.key] = Stated(kept.value, kept.fault)
        if lines and not self._known:
            raise ValueError("is a file of something else; name another")
        if damaged > 1:  # one is what a kill leaves
            warnings.warn(
                f"{path}: {damaged} lines cannot be read and are passed over", DataWarning, stacklevel=5
            )

    def get(self, key: str) -> Stated | None:
        """Return what was stated before; None where nothing was."""
        return self._known.get(key)

    def put(self, line: Line) -> None:
        """Keep a line; OSError, with the file's name, where it cannot be written."""
        self._known[line.key] = Stated(line.value, line.fault)
        if self._path is None:
            return
        data = msgspec.json.encode(line) + b"\n"
        with naming(self._path):
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                size = os.fstat(self._fd).st_size
                ends_whole = size == 0 or os.pread(self._fd, 1, size - 1) == b"\n"
                rest = memoryview(data if ends_whole else b"\n" + data)
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._path is not None:
            self._path = None
            os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
