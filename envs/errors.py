"""Errors in data and environments: always a ValueError, always one line that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # a lone surrogate: no file and no tokenizer can hold it


def one_line(text: str) -> str:
    r"""Return text in one line, with what cannot be printed escaped.

    >>> one_line("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _OneLineError(ValueError):
    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class DataError(_OneLineError):
    """A data set, a file or a row that cannot be used; the message names it and says what to do."""


class UnreachableError(DataError):
    """Data of the hub that this machine does not hold, and a hub that cannot be reached."""


class EnvironmentSpecError(_OneLineError):
    """An environment that is not known, cannot be imported, or does not fit the protocol."""


class MissingPackageError(DataError, ImportError):
    """An optional package is needed for this data and is not installed."""


class DataWarning(UserWarning):
    """Data that can be used although something is wrong with it; the message is one line."""


def row_error(
    location: str, field: str, problem: str, *, value: object = None, keys: Iterable[str] = ()
) -> DataError:
    """Return the error of a bad row: file and line, field, what is wrong, the value, the keys present.

    >>> print(row_error("a.jsonl, line 3", "answer", "is empty", value="", keys=("question", "answer")))
    a.jsonl, line 3, field 'answer': is empty (value ''; keys present: question, answer)
    """
    present = ", ".join(keys) or "none"
    return DataError(
        f"{location}, field {field!r}: {problem} (value {shorten(value)}; keys present: {present})"
    )


def shorten(value: object, limit: int = 80) -> str:
    """Return ``repr(value)`` cut to ``limit`` characters, so that an error stays one line.

    >>> shorten("x" * 100, limit=8)
    "'xxxx..."
    """
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def listed(name: str, values: Iterable[T], *other: type) -> tuple[T, ...]:
    """Return a user's list as a tuple; DataError for anything but a list of texts (or of the other types).

    >>> listed("levels", [1, "2"], int)
    (1, '2')
    """
    of = " or ".join(("texts", *("whole numbers" for _ in other)))
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError(f"{name}: needs a list of {of}, got {shorten(values)}")
    items = tuple(values)
    for value in items:
        if isinstance(value, bool) or not isinstance(value, (str, *other)):
            raise DataError(f"{name}: needs a list of {of}; {shorten(value)} is none")
    return items
