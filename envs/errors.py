"""Errors in data and environments: each is a ValueError whose message is one line and says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # a lone surrogate, which files and tokenizers cannot encode


def one_line(text: str) -> str:
    r"""Return the text as one line, with unprintable characters escaped.

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
    """A data set, a file or a row cannot be used; the message names it and says what to do."""


class UnreachableError(DataError):
    """The data is not in this machine's cache, and the hub cannot be reached."""


class EnvironmentSpecError(_OneLineError):
    """An environment is unknown, cannot be imported, or does not fit the protocol."""


class MissingPackageError(DataError, ImportError):
    """An optional package is needed for this data and is not installed."""


class DataWarning(UserWarning):
    """Data has a fault but can be used; the message is one line."""


def shorten(value: object, limit: int = 80) -> str:
    """Return ``repr(value)`` cut to ``limit`` characters, so that an error stays one line.

    >>> shorten("x" * 100, limit=8)
    "'xxxx..."
    """
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def listed(name: str, values: Iterable[T], *other: type) -> tuple[T, ...]:
    """Return a user's list as a tuple; raise DataError unless all items are texts (or of the other types).

    >>> listed("levels", [1, "2"], int)
    (1, '2')
    """
    of = " or ".join(("texts", *("whole numbers" for _ in other)))
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError(f"{name}: needs a list of {of}, got {shorten(values)}")
    items = tuple(values)
    for value in items:
        if isinstance(value, bool) or not isinstance(value, (str, *other)):
            raise DataError(f"{name}: needs a list of {of}; {shorten(value)} is not one")
    return items
