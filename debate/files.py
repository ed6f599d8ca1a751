"""Files that may be of anybody's making, read whole within bounds: plain files, JSON and TOML.

A pipe would be waited for, a device has no end, a sparse file may claim a terabyte, and a short text may make
a parser fill the memory.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

LARGEST = 16 << 20
"""Bytes of a file of facts or settings."""
LARGEST_TOML = 1 << 20
DEEPEST = 64
"""Parts of a dotted key: a parser's memory grows with their square."""
_DEEP_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""", re.ASCII
)


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file to read; OSError for anything else."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(fd, "rb")


def read_plain(path: Path, most: int = LARGEST) -> bytes:
    """Return the bytes of a plain file; OSError for anything else, and for more than ``most`` bytes."""
    with open_plain(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return data


def plain_lines(path: Path, longest: int = LARGEST) -> Iterator[bytes]:
    """Yield the lines of a plain file, each with its newline if it has one; a run's own files may be long.

    OSError for what is not a plain file, and for a line of more than ``longest`` bytes.
    """
    with open_plain(path) as file:
        while line := file.readline(longest + 1):
            if len(line) > longest:
                raise OSError(errno.EFBIG, f"a line is longer than {longest >> 20} MiB", str(path))
            yield line


def read_json(path: Path) -> Any:
    """Return what a file of JSON holds; OSError, or ValueError with the path where it is not JSON."""
    try:
        return json.loads(read_plain(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file; OSError, or ValueError (RecursionError) where it is not TOML."""
    text = read_plain(path, LARGEST_TOML).decode()
    if _DEEP_KEY.search(text):
        raise ValueError(f"a key has more than {DEEPEST} parts")
    return tomllib.loads(text)
