"""Encode a debate as one line of JSON, and its token arrays as a separate line, and decode both exactly.

Encoding and decoding are strict: an unknown field, a wrong type or a number that JSON cannot represent is
refused with the path of the field. Nothing is written that would be read back as a different value.

A token array is a string: the type of its numbers ("u2", "i4", "i8" or "f8"), a colon, and their
little-endian bytes in base64. A line of token arrays has the debate's seed, then the arrays of each turn and
each summary, or null if the engine returned no tokens.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import isfinite
from operator import is_
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast, get_type_hints

import msgspec
from pydantic import BaseModel, ValidationError

from debate.files import plain_lines
from debate.policy import token_counts
from debate.types import Completion, Debate
from debate.values import HALVES, Value
from transcripts.errors import FieldError, TranscriptError, field_error
from transcripts.record import Record

SCHEMA_VERSION = 1
"""The schema version of a line. Raise it for changes that older lines do not fit."""
BEYOND = re.compile(r"[^\x00-\x7f]+")
TokensAt: TypeAlias = Callable[[int], bytes]
"""Returns the token line that begins at a byte, or b"" if there is none."""
T = TypeVar("T")
ARRAYS = ("prompt_tokens", "tokens", "logprobs", "offsets", "forced")
"""The token arrays of a completion."""
FORMS = {"u2": "H", "i4": "i", "i8": "q", "f8": "d"}
SWAP = sys.byteorder == "big"
_TYPES = get_type_hints(Record, include_extras=True)


Line: Any = msgspec.defstruct(
    "Line",
    [
        ("schema", int),
        ("tokens", int | None, None),
        *(
            (one.name, _TYPES[one.name])
            if one.default is dataclasses.MISSING
            else (one.name, _TYPES[one.name], one.default)
            for one in dataclasses.fields(Record)
        ),
    ],
    bases=(Value,),
    frozen=True,
    kw_only=True,
)
"""A record as a line. ``tokens``: the byte at which the debate's line begins in the shard of token arrays."""


def _to_json(value: object) -> msgspec.Raw | float:
    """Return settings and NumPy floats as JSON, which msgspec cannot encode."""
    if isinstance(value, BaseModel):
        return _settings_json(cast(Any, value))
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"expected a value that JSON can represent, got {shown(value)}")


@lru_cache(maxsize=64)
def _settings_json(value: BaseModel) -> msgspec.Raw:
    return msgspec.Raw(value.model_dump_json().encode())


def _from_json(kind: type[BaseModel], value: object) -> BaseModel:
    return _settings(kind, msgspec.json.encode(value))


@lru_cache(maxsize=64)
def _settings(kind: type[BaseModel], data: bytes) -> BaseModel:
    """Return settings from JSON, cached because the debates of a run share them. FieldError names the key."""
    try:
        return kind.model_validate(msgspec.json.decode(data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise FieldError(where, first["msg"].removeprefix("Value error, ")) from error


ENCODER = msgspec.json.Encoder(enc_hook=_to_json)
DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Line, dec_hook=_from_json)


class _Schema(msgspec.Struct):
    schema: Any = None


def to_line(record: Record, tokens_at: int | None = None) -> bytes:
    """Return a record without its token arrays as one line of ASCII JSON, without newline.

    ``tokens_at``: the byte at which its arrays begin. FieldError if a value would not be read back unchanged.
    """
    record = without_tokens(record)
    values = {one.name: getattr(record, one.name) for one in dataclasses.fields(record)}
    try:
        data = in_ascii(ENCODER.encode(Line(schema=SCHEMA_VERSION, tokens=tokens_at, **values)))
        read = _record(DECODER.decode(data))
    except msgspec.ValidationError as error:
        raise field_error(error) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise _first_wrong(record) or FieldError("", str(error)) from error
    if (read, read.timing) != (record, record.timing):
        raise _first_wrong(record, read) or FieldError("", "changes when it is written and read back")
    return data


def in_ascii(data: bytes) -> bytes:
    r"""Return JSON with every non-ASCII character escaped.

    >>> in_ascii('"2 × 2"'.encode())
    b'"2 \\u00d7 2"'
    """
    if data.isascii():
        return data
    return BEYOND.sub(lambda run: json.dumps(run[0])[1:-1], data.decode()).encode("ascii")


def from_line(line: bytes, tokens_at: TokensAt | None = None) -> Record:
    """Return the record of a line, with its token arrays if ``tokens_at`` finds them.

    FieldError if the line is not a record; its field is empty if the line is not JSON at all.
    """
    try:
        decoded = DECODER.decode(line)
    except msgspec.ValidationError as error:
        check_schema(line)
        raise field_error(error) from error
    except (ValueError, RecursionError) as error:
        raise _not_json(error) from error
    if decoded.schema != SCHEMA_VERSION:
        check_schema(line)
    arrays = tokens_at(decoded.tokens) if tokens_at is not None and decoded.tokens is not None else b""
    record = _record(decoded)
    return dataclasses.replace(record, debate=with_tokens(record.debate, arrays)) if arrays else record


def _record(line: Any) -> Record:
    return Record(*(getattr(line, one.name) for one in dataclasses.fields(Record)))


def check_schema(line: bytes) -> None:
    """Raise FieldError for a line that is not a debate, or has another schema version."""
    try:
        version = msgspec.json.decode(line, type=_Schema).schema
    except msgspec.ValidationError as error:
        raise FieldError("schema", "not a debate transcript: the line is not a JSON object") from error
    except (ValueError, RecursionError) as error:
        raise _not_json(error) from error
    if type(version) is not int:
        raise FieldError("schema", "not a debate transcript: the line has no schema version")
    if version != SCHEMA_VERSION:
        raise FieldError(
            "schema", f"version {version}; this version of debate-rl only reads {SCHEMA_VERSION}"
        )


def decode(data: bytes, kind: type[T]) -> T:
    """Return JSON as a type. FieldError names the field that does not fit, or "" if it is not JSON.

    >>> decode(b"[0, 2]", tuple[int, int])
    (0, 2)
    >>> decode(b"[0, true]", tuple[int, int])
    Traceback (most recent call last):
        ...
    transcripts.errors.FieldError: [1]: expected int, got bool
    """
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_from_json)
    except msgspec.ValidationError as error:
        raise field_error(error) from error
    except (ValueError, RecursionError) as error:
        raise _not_json(error) from error


def decoded_lines(path: Path, kind: type[T], what: str) -> Iterator[T]:
    """Yield the complete lines of a file of JSON lines as a type, or nothing without the file.

    TranscriptError names a line that is not ``what``. OSError if the file cannot be read.
    """
    for number, line in enumerate(plain_lines(path) if path.exists() else (), start=1):
        if line.endswith(b"\n"):  # the last line may still be written
            try:
                yield decode(line, kind)
            except FieldError as error:
                raise TranscriptError(f"{path}:{number}: is not {what}: {error}") from error


def convert(value: object, kind: type[T], where: str = "") -> T:
    """Return a JSON value as a type. FieldError names the field within ``where`` that does not fit."""
    try:
        return msgspec.convert(value, kind, dec_hook=_from_json)
    except msgspec.ValidationError as error:
        raise field_error(error).within(where) from error


def _not_json(error: Exception) -> FieldError:
    if isinstance(error, UnicodeDecodeError):
        return FieldError("", f"not UTF-8 text (byte {error.start})")
    return FieldError("", f"not a complete line of JSON: {error}")


def _leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values nested in a value, with their paths."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, tuple):
        parts = [(f"{where}[{n}]", part) for n, part in enumerate(cast("tuple[Any, ...]", value))]
    elif dataclasses.is_dataclass(cast(object, value)):
        dot = "." if where else ""
        parts = [(f"{where}{dot}{name}", getattr(value, name)) for name in value.__dataclass_fields__]
    else:
        yield where, value
    for path, part in parts:
        if part is not msgspec.UNSET:
            yield from _leaves(part, path)


def _first_wrong(record: Record, read: Record | None = None) -> FieldError | None:
    """Return an error for the first value that cannot be written or is read back differently, or None."""
    back = dict(_leaves(read)) if read is not None else {}
    for where, value in _leaves(record):
        if isinstance(value, float) and not isfinite(value):
            return FieldError(where, f"{value} is not a finite number")
        if isinstance(value, str) and HALVES.search(value):
            return FieldError(where, "contains half a character (a lone surrogate)")
        if not isinstance(value, BaseModel | str | int | float | None):
            return FieldError(where, f"cannot be stored: {shown(cast(object, value))}")
        if read is not None and back.get(where) != value:
            return FieldError(where, f"{shown(value)} is read back as {shown(back.get(where))}")
    return None


def shown(value: object) -> str:
    """Return a value for a message, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Arrays(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The packed arrays of a completion, "" for an empty one, and the engine's token counts."""

    prompt_tokens: str = ""
    tokens: str = ""
    logprobs: str = ""
    offsets: str = ""
    forced: str = ""
    prompt_count: int | None = None
    token_count: int | None = None


class TokenLine(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A line of token arrays: those of a debate's turns, then those of its summaries."""

    seed: int
    completions: tuple[Arrays | None, ...]


TOKEN_DECODER = msgspec.json.Decoder(TokenLine)


def token_line(debate: Debate) -> bytes | None:
    """Return the token line of a debate, without newline, or None if no completion has tokens.

    FieldError for an invalid token id or a log-probability that is not finite.
    """
    completions = [item.completion for item in (*debate.turns, *debate.summaries)]
    packed = tuple(_packed(item, f"tokens[{index}]") for index, item in enumerate(completions))
    if all(arrays is None for arrays in packed):
        return None
    return msgspec.json.encode(TokenLine(debate.seed, packed))


def _packed(completion: Completion, where: str) -> Arrays | None:
    packed: dict[str, Any] = {
        name: pack(values, real=name == "logprobs", where=f"{where}.{name}")
        for name in ARRAYS
        if (values := getattr(completion, name))
    }
    if not packed:
        return None
    return Arrays(**packed, prompt_count=completion.prompt_count, token_count=completion.token_count)


def pack(values: Sequence[float], *, real: bool, where: str = "") -> str:
    """Return numbers as a packed string.

    FieldError for a wrong type, or a number not finite or beyond 64 bits.

    >>> pack((1, 2), real=False)
    'u2:AQACAA=='
    """
    if not set(map(type, values)) <= ({int, float} if real else {int}):
        raise FieldError(where, f"expected {'numbers' if real else 'whole numbers'}, got {values!r:.60}")
    for name in ("f8",) if real else ("u2", "i4", "i8"):
        try:
            packed = array(FORMS[name], values)
        except OverflowError:
            continue
        if real and not all(map(isfinite, packed)):
            bad = next(value for value in packed if not isfinite(value))
            raise FieldError(where, f"{bad} is not a finite number")
        if SWAP:
            packed.byteswap()
        return f"{name}:{b64encode(packed.tobytes()).decode('ascii')}"
    raise FieldError(where, f"{max(values, key=abs)} is too large")


def unpack(text: str, where: str = "") -> list[int] | list[float]:
    """Return the numbers of a packed string. FieldError if it is invalid.

    >>> unpack("u2:AQACAA==")
    [1, 2]
    """
    name, _, packed = text.partition(":")
    if name not in FORMS:
        raise FieldError(where, "not a packed array")
    values: array[Any] = array(FORMS[name])
    try:
        values.frombytes(b64decode(packed, validate=True))
    except ValueError as error:
        raise FieldError(where, f"not a packed array: {error}") from error
    if SWAP:
        values.byteswap()
    if name == "f8" and not all(map(isfinite, values)):
        raise FieldError(where, "a number is not finite")
    return cast("list[int] | list[float]", values.tolist())


def with_tokens(debate: Debate, line: bytes) -> Debate:
    """Return the debate with the arrays of its token line.

    FieldError if the line belongs to another debate.
    """
    try:
        decoded = TOKEN_DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise field_error(error).within("tokens") from error
    except (ValueError, RecursionError) as error:
        raise FieldError("tokens", f"not a line of token arrays: {error}") from error
    if decoded.seed != debate.seed:
        raise FieldError("tokens", "belong to another debate")
    count = len(debate.turns) + len(debate.summaries)
    if len(decoded.completions) != count:
        raise FieldError("tokens", f"expected {count} completions")
    items = zip((*debate.turns, *debate.summaries), decoded.completions, strict=True)
    completions = [
        item.completion if arrays is None else _unpacked(item.completion, arrays, f"tokens[{index}]")
        for index, (item, arrays) in enumerate(items)
    ]
    return _with_completions(debate, completions)


def _unpacked(completion: Completion, arrays: Arrays, where: str) -> Completion:
    lists = {
        name: tuple(unpack(packed, f"{where}.{name}")) for name in ARRAYS if (packed := getattr(arrays, name))
    }
    counts = {"prompt_count": arrays.prompt_count, "token_count": arrays.token_count}
    return msgspec.structs.replace(completion, **lists, **counts)


def without_tokens(record: Record) -> Record:
    """Return the record without token ids, log-probabilities and offsets, but with their counts."""
    before = [item.completion for item in (*record.debate.turns, *record.debate.summaries)]
    after = [_text_only(completion) for completion in before]
    if all(map(is_, before, after)):
        return record
    return dataclasses.replace(record, debate=_with_completions(record.debate, after))


def _text_only(completion: Completion) -> Completion:
    empty: dict[str, Any] = {name: () for name in ARRAYS if getattr(completion, name)}
    prompt, generated = token_counts(completion)
    counts = (prompt or completion.prompt_count, generated or completion.token_count)
    if not empty and counts == (completion.prompt_count, completion.token_count):
        return completion
    return msgspec.structs.replace(completion, **empty, prompt_count=counts[0], token_count=counts[1])


def _with_completions(debate: Debate, completions: Sequence[Completion]) -> Debate:
    """Return the debate with other completions: first of its turns, then of its summaries."""
    turns, rest = completions[: len(debate.turns)], completions[len(debate.turns) :]
    replace = msgspec.structs.replace
    return replace(
        debate,
        turns=tuple(replace(turn, completion=c) for turn, c in zip(debate.turns, turns, strict=True)),
        summaries=tuple(replace(item, completion=c) for item, c in zip(debate.summaries, rest, strict=True)),
    )
