"""Read complete files from untrusted sources, with limits on size: plain files, JSON and TOML.

The limits matter because reading a pipe blocks, a device has no end, a sparse file may claim a terabyte, and
a short text can make a parser fill the memory.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar, cast

LARGEST = 16 << 20
"""Maximum bytes of a file that is read at once, such as JSON."""
LARGEST_TOML = 1 << 20
LARGEST_DATA = 16 << 30
"""Maximum bytes of a file of problems. A larger data set needs several files."""
DEEPEST = 64
"""Maximum parts of a dotted key. A parser's memory grows with the square of this number."""
NESTED = 2 * DEEPEST
"""Maximum nesting depth of tables and lists. Code that reads them later may recurse once per level."""
TOO_DEEP = f"it is nested more than {NESTED} deep"
T = TypeVar("T")
_DEEP_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""", re.ASCII
)


def open_plain(path: Path, most: int | None = None) -> BufferedReader:
    """Open a plain file for reading. OSError if it is not a plain file or has more than ``most`` bytes."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    state = os.fstat(fd)
    if stat.S_ISREG(state.st_mode) and (most is None or state.st_size <= most):
        return os.fdopen(fd, "rb")
    os.close(fd)
    if not stat.S_ISREG(state.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    raise OSError(errno.EFBIG, f"has {_size(state.st_size)}, more than {_size(most or 0)}", str(path))


def _size(count: int) -> str:
    """Format a number of bytes.

    >>> _size(1 << 40), _size(16 << 20), _size((16 << 20) + 1)
    ('1,024 GiB', '16 MiB', '16,777,217 bytes')
    """
    shift, unit = next(((s, u) for s, u in ((30, "GiB"), (20, "MiB")) if count % (1 << s) == 0), (0, "bytes"))
    return f"{count >> shift:,} {unit}"


def read_plain(path: Path, most: int = LARGEST) -> bytes:
    """Return the bytes of a plain file. OSError if it is not a plain file or has more than ``most`` bytes."""
    with open_plain(path, most) as file:
        data = file.read(most + 1)
    if len(data) > most:  # a system file may hold more bytes than its stated size
        raise OSError(errno.EFBIG, f"has more than {_size(most)}", str(path))
    return data


def plain_lines(path: Path, longest: int = LARGEST) -> Iterator[bytes]:
    """Yield the lines of a plain file, each with its newline if it has one.

    The file may have any size. OSError if it is not a plain file or a line has more than ``longest`` bytes.
    """
    with open_plain(path) as file:
        while line := file.readline(longest + 1):
            if len(line) > longest:
                raise OSError(errno.EFBIG, f"a line is longer than {_size(longest)}", str(path))
            yield line


def read_json(path: Path) -> Any:
    """Return the parsed content of a JSON file.

    OSError if it cannot be read; ValueError with the path if it is not JSON.
    """
    try:
        return _shallow(json.loads, read_plain(path))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. OSError if it cannot be read; ValueError if it is not TOML."""
    text = read_plain(path, LARGEST_TOML).decode()
    if _DEEP_KEY.search(text):
        raise ValueError(f"a key has more than {DEEPEST} parts")
    return _shallow(tomllib.loads, text)


def _shallow(parse: Callable[[T], Any], text: T) -> Any:
    """Return the result of parsing a text. ValueError if tables and lists are nested too deeply."""
    try:
        level = [value := parse(text)]
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    for _ in range(NESTED):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise ValueError(TOO_DEEP)
    return value


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


@contextmanager
def naming(path: Path | str) -> Generator[None]:
    """Add the path of the file being written to an OSError that names no file (such as "disk full")."""
    try:
        yield
    except OSError as error:
        name_error(error, path)
        raise


def name_error(error: OSError, path: Path | str) -> None:
    """Add the path to a system error that has no filename."""
    if error.filename is None and error.errno and error.strerror == os.strerror(error.errno):
        error.filename = str(path)


def write_text(path: Path | str, text: str) -> None:
    """Write a UTF-8 text file. An OSError names the file."""
    with naming(path):
        Path(path).write_text(text, encoding="utf-8")
