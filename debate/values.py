"""The base of a debate's data types: frozen values that are stored and loaded unchanged, and spans."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import Field, make_dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, cast

import msgspec

HALVES = re.compile("[\ud800-\udfff]")


class _Fields:
    """Makes ``dataclasses.replace``, ``fields`` and ``asdict`` work on a value."""

    def __get__(self, value: object, kind: type[msgspec.Struct]) -> dict[str, Field[Any]]:
        return _fields_of(kind)


@cache
def _fields_of(kind: type[msgspec.Struct]) -> dict[str, Field[Any]]:
    return cast(Any, make_dataclass(kind.__name__, kind.__struct_fields__)).__dataclass_fields__


class Value(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A frozen value, hashed and compared by content. An unknown field in JSON is an error.

    It is a msgspec ``Struct``, so loading a record takes no longer than parsing its JSON. Values contain only
    values, texts, numbers and tuples. So no cycle can arise, and the garbage collector can skip them.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = _Fields()  # type: ignore[assignment]


class Span(NamedTuple):
    """The characters ``text[start:end]`` of a completion's text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of the span.

        >>> Span(1, 3).of("abcd")
        'bc'
        """
        return text[self.start : self.end]


def blanked(text: str, spans: Iterable[Span], lead: str = "") -> str:
    r"""Return a text with each span replaced by ``lead`` and line breaks, keeping its length.

    Only the parts of spans that are in order and within the text are replaced.

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
    r"""Return the text with each lone surrogate replaced by U+FFFD. The length does not change.

    >>> whole_text("a\ud83d")
    'a�'
    """
    return text if text.isascii() else HALVES.sub("\ufffd", text)
