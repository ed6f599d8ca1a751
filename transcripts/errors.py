"""Errors of transcripts. Each message is one line that names the file, line or field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import msgspec

PATH = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
MISSING = re.compile("Object missing required field `(.*)`")
UNKNOWN = re.compile("Object contains unknown field `(.*)`")


class TranscriptError(ValueError):
    """A transcript cannot be read, or a record cannot be written without loss."""


class FieldError(ValueError):
    """A value does not fit its field. ``field`` is the dotted path within the record."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field, self.problem = field, problem

    def within(self, outer: str) -> FieldError:
        """Return the error with its path prefixed by an outer path.

        >>> FieldError("[1].text", "missing").within("turns").field
        'turns[1].text'
        """
        dot = "." if outer and self.field and not self.field.startswith("[") else ""
        return FieldError(f"{outer}{dot}{self.field}", self.problem)


def field_error(error: msgspec.ValidationError) -> FieldError:
    """Return msgspec's validation error as a FieldError with the path of the field."""
    parts = cast("re.Match[str]", PATH.fullmatch(str(error)))
    message, where = parts[1], parts[2] or ""
    if isinstance(error.__cause__, FieldError):  # of settings
        return error.__cause__.within(where)
    if missing := MISSING.fullmatch(message):
        return FieldError(missing[1], "missing").within(where)
    if unknown := UNKNOWN.fullmatch(message):
        return FieldError(unknown[1], "no such field").within(where)
    plain = message.replace("`", "")
    return FieldError(where, plain[:1].lower() + plain[1:])


class TranscriptWriteError(OSError):
    """A file could not be written: full disk, missing permission, or read-only folder."""

    @classmethod
    def of(cls, error: OSError, path: Path) -> TranscriptWriteError:
        """Return the error with the path and the system's reason, and say that earlier data is intact."""
        reason = error.strerror or str(error)
        return cls(error.errno, f"cannot write {path}: {reason}; what was written before is intact")

    def __str__(self) -> str:
        return str(self.args[-1])


class TornTailWarning(UserWarning):
    """The last line of a file is torn because writing was interrupted. It is ignored."""
