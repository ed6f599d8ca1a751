"""Our frozen dataclasses to plain JSON values and back, exactly, driven by their annotations.

Every value is checked against the declared type in both directions, so what was written can be read, and
a damaged line is refused with the path of the field. Numbers stay exact (repr of a float round-trips);
NaN and infinity are refused, because JSON has no word for them.
"""

from __future__ import annotations

import dataclasses
import re
import types
from enum import StrEnum
from functools import cache
from math import isfinite
from typing import Any, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from debate.config import DebateConfig
from debate.types import Span, TurnId
from transcripts.errors import FieldError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
"""The gap between two surrogates that JSON would read back as one character."""

AS_LISTS = (TurnId, Span)
"""Pairs of numbers that occur by the thousand: written as [a, b]."""


@cache
def fields_of(kind: type) -> dict[str, Any]:
    """Return the resolved field types of a dataclass, in order."""
    hints = get_type_hints(kind, localns={"DebateConfig": DebateConfig})
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@cache
def required_of(kind: type) -> frozenset[str]:
    """Return the fields without a default."""
    return frozenset(
        f.name
        for f in dataclasses.fields(kind)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    )


def encode(value: object, declared: Any, where: str = "") -> Json:
    """Return the JSON value of ``value``; FieldError where it is not of the declared type.

    >>> encode(TurnId(0, 2), TurnId)
    [0, 2]
    >>> encode(float("nan"), float, "rewards.peer")
    Traceback (most recent call last):
        ...
    transcripts.errors.FieldError: rewards.peer: nan is not a finite number
    """
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return _first_fit(encode, value, arguments, where)
    if origin is tuple:
        return _encode_tuple(value, arguments, where)
    if declared is str and isinstance(value, str):
        return _pieces(value)
    if origin is Literal or declared in (str, int, float, bool, types.NoneType):
        return _scalar(value, declared, where)
    if not isinstance(value, declared):
        raise FieldError(where, f"expected {declared.__name__}, got {_shown(value)}")
    if issubclass(declared, StrEnum):
        return str(value)
    if issubclass(declared, BaseModel):
        return _encode_model(cast(BaseModel, value), where)
    pairs = {
        name: encode(getattr(value, name), kind, _at(where, name))
        for name, kind in fields_of(declared).items()
    }
    return list(pairs.values()) if declared in AS_LISTS else pairs


def decode(value: Json, declared: Any, where: str = "") -> Any:
    """Return the value of the declared type; FieldError naming the field where the JSON does not fit.

    >>> decode([0, 2], TurnId)
    TurnId(agent=0, round=2)
    >>> decode([0, "2"], TurnId, "turn")
    Traceback (most recent call last):
        ...
    transcripts.errors.FieldError: turn.round: expected int, got '2'
    """
    origin, arguments = get_origin(declared), get_args(declared)
    if origin in (Union, types.UnionType):
        return _first_fit(decode, value, arguments, where)
    if origin is tuple:
        return _decode_tuple(value, arguments, where)
    if declared is str and isinstance(value, list):
        return _join(value, where)
    if origin is Literal or declared in (str, int, float, bool, types.NoneType):
        return _scalar(value, declared, where)
    if issubclass(declared, StrEnum):
        return _decode_enum(value, declared, where)
    if issubclass(declared, BaseModel):
        return _decode_model(value, declared, where)
    return _decode_dataclass(value, declared, where)


def _at(where: str, name: str | int) -> str:
    if isinstance(name, int):
        return f"{where}[{name}]"
    return f"{where}.{name}" if where else name


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _scalar(value: object, declared: Any, where: str) -> Any:
    if get_origin(declared) is Literal:
        if isinstance(value, str) and value in get_args(declared):
            return value
        raise FieldError(where, f"expected one of {', '.join(get_args(declared))}, got {_shown(value)}")
    if declared is float:
        return _number(value, where)
    if type(value) is not declared:
        name = "null" if declared is types.NoneType else declared.__name__
        raise FieldError(where, f"expected {name}, got {_shown(value)}")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(where, f"expected a number, got {_shown(value)}")
    try:
        number = float(value)
    except OverflowError as error:
        raise FieldError(where, f"{_shown(value)} is too large") from error
    if not isfinite(number):
        raise FieldError(where, f"{value} is not a finite number")
    return number


def _pieces(text: str) -> str | list[Json]:
    r"""Return the text, in pieces where JSON would melt two surrogates into one character.

    A lone surrogate survives as its escape; two in a row read back as one character, so they are parted.

    >>> _pieces("a\ud83d\ude00")
    ['a\ud83d', '\ude00']
    """
    if text.isascii():
        return text
    pieces = PAIR.split(text)
    return text if len(pieces) == 1 else list(pieces)


def _join(pieces: list[Json], where: str) -> str:
    if not all(isinstance(piece, str) for piece in pieces):
        raise FieldError(where, f"expected str, got {_shown(pieces)}")
    return "".join(cast(list[str], pieces))


def _first_fit(way: Any, value: object, options: tuple[Any, ...], where: str) -> Any:
    """Try the members of a union; with one member beside None its own error is kept, deep path and all."""
    if value is None and types.NoneType in options:
        return None
    others = [option for option in options if option is not types.NoneType]
    if len(others) == 1:
        return way(value, others[0], where)
    for option in others:
        try:
            return way(value, option, where)
        except FieldError:
            continue
    names = ", ".join("null" if o is types.NoneType else getattr(o, "__name__", str(o)) for o in options)
    raise FieldError(where, f"expected one of {names}, got {_shown(value)}")


def _members(value: list[Any] | tuple[Any, ...], arguments: tuple[Any, ...], where: str) -> list[Any]:
    if arguments[-1] is Ellipsis:
        return [arguments[0]] * len(value)
    if len(value) != len(arguments):
        raise FieldError(where, f"expected {len(arguments)} values, got {len(value)}")
    return list(arguments)


def _encode_tuple(value: object, arguments: tuple[Any, ...], where: str) -> Json:
    if not isinstance(value, tuple):
        raise FieldError(where, f"expected a tuple, got {_shown(value)}")
    items = cast("tuple[Any, ...]", value)
    if arguments[0] is int and arguments[-1] is Ellipsis and all(type(item) is int for item in items):
        return list(items)  # token ids: one pass
    kinds = zip(items, _members(items, arguments, where), strict=True)
    return [encode(item, kind, _at(where, i)) for i, (item, kind) in enumerate(kinds)]


def _decode_tuple(value: Json, arguments: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise FieldError(where, f"expected a list, got {_shown(value)}")
    if arguments[0] is int and arguments[-1] is Ellipsis and all(type(item) is int for item in value):
        return tuple(value)
    kinds = zip(value, _members(value, arguments, where), strict=True)
    return tuple(decode(item, kind, _at(where, i)) for i, (item, kind) in enumerate(kinds))


def _decode_enum(value: Json, declared: type[StrEnum], where: str) -> StrEnum:
    try:
        return declared(cast(str, value))
    except ValueError as error:
        raise FieldError(where, f"expected one of {', '.join(declared)}, got {_shown(value)}") from error


def _decode_dataclass(value: Json, declared: type, where: str) -> object:
    kinds = fields_of(declared)
    if declared in AS_LISTS and isinstance(value, list) and len(value) == len(kinds):
        value = dict(zip(kinds, value, strict=True))
    if not isinstance(value, dict):
        raise FieldError(where, f"expected {declared.__name__}, got {_shown(value)}")
    for name in value:
        if name not in kinds:
            raise FieldError(_at(where, name), f"no such field; {declared.__name__} has {', '.join(kinds)}")
    for name in required_of(declared) - value.keys():
        raise FieldError(_at(where, name), "missing")
    return declared(**{name: decode(item, kinds[name], _at(where, name)) for name, item in value.items()})


def _encode_model(value: BaseModel, where: str) -> Json:
    """Return the settings as JSON; what could not be read back (text that is not Unicode) is refused here."""
    try:
        return cast(Json, type(value).model_validate_json(value.model_dump_json()).model_dump(mode="json"))
    except ValueError as error:
        raise FieldError(where, f"cannot be stored: {error}") from error


def _decode_model(value: Json, declared: type[BaseModel], where: str) -> BaseModel:
    try:
        return declared.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join([where, *(str(part) for part in first["loc"])])
        raise FieldError(place, first["msg"].removeprefix("Value error, ")) from error
