"""What the nouns of a debate are made of: frozen values, stored and read back as they are, and spans."""

from __future__ import annotations

import re
from dataclasses import Field, make_dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, cast

import msgspec

HALVES = re.compile("[\ud800-\udfff]")


class _Fields:
    """Says of a value what ``dataclasses`` asks: ``replace``, ``fields`` and ``asdict`` work on it."""

    def __get__(self, value: object, kind: type[msgspec.Struct]) -> dict[str, Field[Any]]:
        return _fields_of(kind)


@cache
def _fields_of(kind: type[msgspec.Struct]) -> dict[str, Field[Any]]:
    return cast(Any, make_dataclass(kind.__name__, kind.__struct_fields__)).__dataclass_fields__


class Value(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A frozen value: hashed and compared by content. Read from JSON, an unknown field is an error.

    It is a msgspec ``Struct`` because a record then takes no longer to read than JSON alone. Values hold
    values, texts, numbers and tuples, so that no cycle can arise and the garbage collector need not look.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = _Fields()  # type: ignore[assignment]


class Span(NamedTuple):
    """Characters ``text[start:end]`` of a completion's text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of the span.

        >>> Span(1, 3).of("abcd")
        'bc'
        """
        return text[self.start : self.end]


def whole_text(text: str) -> str:
    r"""Return the text with U+FFFD for each half of a character (lone surrogate); its length stays.

    >>> whole_text("a\ud83d")
    'a�'
    """
    return text if text.isascii() else HALVES.sub("\ufffd", text)
