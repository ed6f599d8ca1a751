"""What the nouns of a debate are made of: frozen values, stored and read back as they are, and spans."""

from __future__ import annotations

import re
from collections.abc import Iterable
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


def blanked(text: str, spans: Iterable[Span], lead: str = "") -> str:
    r"""Return a text whose spans are replaced by ``lead`` and line breaks of the same length.

    Of spans that are not in order, or not within the text, what is.

    >>> blanked("0123456789", [Span(1, 3), Span(5, 9)], "ab")
    '0ab34ab\n\n9'
    >>> blanked("0123", [Span(2, 10**18), Span(-5, 1)])
    '01\n\n'
    """
    parts: list[str] = []
    at = 0
    for span in spans:
        start, end = max(at, span.start), min(span.end, len(text))
        if start < end:
            parts += [text[at:start], lead[: end - start].ljust(end - start, "\n")]
            at = end
    return "".join((*parts, text[at:]))


def whole_text(text: str) -> str:
    r"""Return the text with U+FFFD for each half of a character (lone surrogate); its length stays.

    >>> whole_text("a\ud83d")
    'a�'
    """
    return text if text.isascii() else HALVES.sub("\ufffd", text)
