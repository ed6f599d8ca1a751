"""One debate as one line of JSON, and back. The token arrays have a line of their own (``token_lines``).

Strict in both directions: a field too many, another type or a number that JSON has not is refused with the
path of the field, and nothing is written that would be read back as anything else.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from math import isfinite
from typing import Annotated, Any, TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import BaseModel, ValidationError

from debate.types import Debate
from debate.values import HALVES, Value
from rewards.labels import Credit
from rewards.likelihood import Likelihoods
from rewards.types import Rewards, Truth, Verdicts
from transcripts.errors import FieldError, field_error
from transcripts.record import Record, Timing, TurnAdvantages
from transcripts.token_lines import joined, without_arrays

SCHEMA_VERSION = 1
"""Of a line. A change that lines written before do not fit raises it."""
BEYOND = re.compile(r"[^\x00-\x7f]+")
TokensAt: TypeAlias = Callable[[int], bytes]
"""Returns the token line that begins at a byte; b"" where there is none."""
T = TypeVar("T")


class Line(Value, frozen=True, kw_only=True):
    """A line: ``tokens`` is where, in the shard of token arrays, the debate's line begins."""

    schema: int
    tokens: int | None = None
    debate: Debate
    step: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    group: str
    correct: tuple[tuple[Truth, ...], ...] | None = None
    rewards: Rewards | None = None
    advantages: tuple[TurnAdvantages, ...] = ()
    timing: Timing | None = None
    mode: str | UnsetType = UNSET
    verdicts: Verdicts | UnsetType = UNSET
    likelihoods: Likelihoods | UnsetType = UNSET
    credit: Credit | UnsetType = UNSET

    def record(self) -> Record:
        """Return the record of the line."""
        return Record(
            self.debate,
            self.step,
            self.group,
            self.correct,
            self.rewards,
            self.advantages,
            self.timing,
            self.mode,
            self.verdicts,
            self.likelihoods,
            self.credit,
        )


def _to_json(value: object) -> msgspec.Raw | float:
    """Return what msgspec does not know as JSON: settings, and the floats of NumPy."""
    if isinstance(value, BaseModel):
        return _settings_json(cast(Any, value))
    if isinstance(value, float):
        return float(value)
    raise TypeError(f"expected a value that JSON has, got {shown(value)}")


@lru_cache(maxsize=64)
def _settings_json(value: BaseModel) -> msgspec.Raw:
    return msgspec.Raw(value.model_dump_json().encode())


def _from_json(kind: type[BaseModel], value: object) -> BaseModel:
    return _settings(kind, msgspec.json.encode(value))


@lru_cache(maxsize=64)
def _settings(kind: type[BaseModel], data: bytes) -> BaseModel:
    """Return settings; the debates of a run share theirs. FieldError names the key."""
    try:
        return kind.model_validate(msgspec.json.decode(data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise FieldError(where, first["msg"].removeprefix("Value error, ")) from error


ENCODER = msgspec.json.Encoder(enc_hook=_to_json)
DECODER = msgspec.json.Decoder(Line, dec_hook=_from_json)


class _Schema(msgspec.Struct):
    schema: Any = None


def to_line(record: Record, tokens_at: int | None = None) -> bytes:
    """Return all but the token arrays as one line of JSON in ASCII, without newline.

    ``tokens_at``: where the arrays are. FieldError where a value would not be read back as it is.
    """
    record = without_tokens(record)
    names = [field.name for field in dataclasses.fields(record)]
    line = Line(schema=SCHEMA_VERSION, tokens=tokens_at, **{name: getattr(record, name) for name in names})
    try:
        data = in_ascii(ENCODER.encode(line))
        read = DECODER.decode(data).record()
    except msgspec.ValidationError as error:
        raise field_error(error) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise _first_wrong(record) or FieldError("", str(error)) from error
    if (read, read.timing) != (record, record.timing):
        raise _first_wrong(record, read) or FieldError("", "is not read back as it is")
    return data


def in_ascii(data: bytes) -> bytes:
    r"""Return JSON with every character beyond ASCII as its escape.

    >>> in_ascii('"2 × 2"'.encode())
    b'"2 \\u00d7 2"'
    """
    if data.isascii():
        return data
    return BEYOND.sub(lambda run: json.dumps(run[0])[1:-1], data.decode()).encode("ascii")


def from_line(line: bytes, tokens_at: TokensAt | None = None) -> Record:
    """Return the record of a line, with its token arrays where ``tokens_at`` finds them.

    FieldError where the line is not a record, with an empty field where it is not JSON at all.
    """
    decoded = _line(line)
    arrays = tokens_at(decoded.tokens) if tokens_at is not None and decoded.tokens is not None else b""
    if arrays:
        decoded = msgspec.structs.replace(decoded, debate=joined(decoded.debate, arrays))
    return decoded.record()


def _line(line: bytes) -> Line:
    try:
        decoded = DECODER.decode(line)
    except msgspec.ValidationError as error:
        check_schema(line)
        raise field_error(error) from error
    except (ValueError, RecursionError) as error:
        raise _not_json(error) from error
    if decoded.schema != SCHEMA_VERSION:
        check_schema(line)
    return decoded


def check_schema(line: bytes) -> None:
    """Raise FieldError for a line that is not a debate, or not of the schema that this version reads."""
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
            "schema", f"version {version}; this version of debate-rl reads {SCHEMA_VERSION} alone"
        )


def decode(data: bytes, kind: type[T]) -> T:
    """Return JSON as a type; FieldError with the field that does not fit, "" where it is not JSON.

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


def convert(value: object, kind: type[T], where: str = "") -> T:
    """Return a JSON value as a type; FieldError names the field within ``where`` that does not fit."""
    try:
        return msgspec.convert(value, kind, dec_hook=_from_json)
    except msgspec.ValidationError as error:
        raise field_error(error).within(where) from error


def _not_json(error: Exception) -> FieldError:
    if isinstance(error, UnicodeDecodeError):
        return FieldError("", f"not UTF-8 text (byte {error.start})")
    return FieldError("", f"not a whole line of JSON: {error}")


def _leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a value with their paths."""
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
    """Return what cannot be written, or what is read as something else, by its path."""
    back = dict(_leaves(read)) if read is not None else {}
    for where, value in _leaves(record):
        if isinstance(value, float) and not isfinite(value):
            return FieldError(where, f"{value} is not a finite number")
        if isinstance(value, str) and HALVES.search(value):
            return FieldError(where, "holds half a character (a lone surrogate)")
        if not isinstance(value, BaseModel | str | int | float | None):
            return FieldError(where, f"cannot be stored: {shown(cast(object, value))}")
        if read is not None and back.get(where) != value:
            return FieldError(where, f"{shown(value)} is read back as {shown(back.get(where))}")
    return None


def without_tokens(record: Record) -> Record:
    """Return the record without token ids, log-probabilities and offsets; how many there were is kept."""
    debate = without_arrays(record.debate)
    return record if debate is record.debate else dataclasses.replace(record, debate=debate)


def shown(value: object) -> str:
    """Return a value for a message, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
