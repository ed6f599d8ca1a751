"""The token arrays of a debate as one line of their own: exact to the bit, and shorter than as plain JSON.

An array is a string: the type of its numbers ("u2", "i4", "i8" or "f8"), a colon, and their little-endian
bytes in base64. A line holds the debate's seed, then for each turn and each summary its arrays, or null where
the engine gave no tokens.
"""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Sequence
from math import isfinite
from operator import is_
from typing import Any, cast

import msgspec

from debate.policy import token_counts
from debate.types import Completion, Debate
from transcripts.errors import FieldError, field_error

ARRAYS = ("prompt_tokens", "tokens", "logprobs", "offsets", "forced")
"""The token arrays of a completion."""
TYPES = {"u2": "H", "i4": "i", "i8": "q", "f8": "d"}
SWAP = sys.byteorder == "big"


class Arrays(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The packed arrays of a completion, "" for an empty one, and the counts that the engine reported."""

    prompt_tokens: str = ""
    tokens: str = ""
    logprobs: str = ""
    offsets: str = ""
    forced: str = ""
    prompt_count: int | None = None
    token_count: int | None = None


class TokenLine(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The arrays of a debate's turns, then of its summaries."""

    seed: int
    completions: tuple[Arrays | None, ...]


DECODER = msgspec.json.Decoder(TokenLine)


def token_line(debate: Debate) -> bytes | None:
    """Return the line of a debate, without newline; None where no completion has any token.

    FieldError for what is not a token id or not a finite log-probability.
    """
    completions = [item.completion for item in (*debate.turns, *debate.summaries)]
    packed = tuple(_packed(item, f"tokens[{index}]") for index, item in enumerate(completions))
    if all(arrays is None for arrays in packed):
        return None
    return msgspec.json.encode(TokenLine(debate.seed, packed))


def _packed(completion: Completion, where: str) -> Arrays | None:
    if not _has_arrays(completion):
        return None
    packed = {
        name: pack(values, real=name == "logprobs", where=f"{where}.{name}")
        for name in ARRAYS
        if (values := getattr(completion, name))
    }
    return Arrays(**packed, prompt_count=completion.prompt_count, token_count=completion.token_count)


def _has_arrays(completion: Completion) -> bool:
    return any(getattr(completion, name) for name in ARRAYS)


def pack(values: Sequence[float], *, real: bool, where: str = "") -> str:
    """Return numbers as a string; FieldError where one is of another type, not finite or beyond 64 bits.

    >>> pack((1, 2), real=False)
    'u2:AQACAA=='
    """
    if not set(map(type, values)) <= ({int, float} if real else {int}):
        raise FieldError(where, f"expected {'numbers' if real else 'whole numbers'}, got {values!r:.60}")
    for name in ("f8",) if real else ("u2", "i4", "i8"):
        try:
            packed = array(TYPES[name], values)
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
    """Return the numbers of a packed string; FieldError where it is not one.

    >>> unpack("u2:AQACAA==")
    [1, 2]
    """
    name, _, packed = text.partition(":")
    if name not in TYPES:
        raise FieldError(where, "not a packed array")
    values: array[Any] = array(TYPES[name])
    try:
        values.frombytes(b64decode(packed, validate=True))
    except ValueError as error:
        raise FieldError(where, f"not a packed array: {error}") from error
    if SWAP:
        values.byteswap()
    if name == "f8" and not all(map(isfinite, values)):
        raise FieldError(where, "a number is not finite")
    return cast("list[int] | list[float]", values.tolist())


def joined(debate: Debate, line: bytes) -> Debate:
    """Return the debate with the arrays of its token line; FieldError where they are another debate's."""
    try:
        decoded = DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise field_error(error).within("tokens") from error
    except (ValueError, RecursionError) as error:
        raise FieldError("tokens", f"not a line of token arrays: {error}") from error
    if decoded.seed != debate.seed:
        raise FieldError("tokens", "are those of another debate")
    count = len(debate.turns) + len(debate.summaries)
    if len(decoded.completions) != count:
        raise FieldError("tokens", f"expected {count} completions")
    return _with_completions(debate, [
        item.completion if arrays is None else _unpacked(item.completion, arrays, f"tokens[{index}]")
        for index, (item, arrays) in enumerate(
            zip((*debate.turns, *debate.summaries), decoded.completions, strict=True)
        )
    ])  # fmt: skip


def _unpacked(completion: Completion, arrays: Arrays, where: str) -> Completion:
    lists = {
        name: tuple(unpack(packed, f"{where}.{name}")) for name in ARRAYS if (packed := getattr(arrays, name))
    }
    counts = {"prompt_count": arrays.prompt_count, "token_count": arrays.token_count}
    return msgspec.structs.replace(completion, **lists, **counts)


def without_arrays(debate: Debate) -> Debate:
    """Return the debate without token ids, log-probabilities and offsets; how many there were is kept."""
    before = [item.completion for item in (*debate.turns, *debate.summaries)]
    after = [_text_only(completion) for completion in before]
    return debate if all(map(is_, before, after)) else _with_completions(debate, after)


def _text_only(completion: Completion) -> Completion:
    empty: dict[str, Any] = dict.fromkeys(ARRAYS, ()) if _has_arrays(completion) else {}
    prompt, generated = token_counts(completion)
    counts = (prompt or completion.prompt_count, generated or completion.token_count)
    if not empty and counts == (completion.prompt_count, completion.token_count):
        return completion
    return msgspec.structs.replace(completion, **empty, prompt_count=counts[0], token_count=counts[1])


def _with_completions(debate: Debate, completions: Sequence[Completion]) -> Debate:
    """Return the debate with other completions, of its turns and then of its summaries."""
    turns, rest = completions[: len(debate.turns)], completions[len(debate.turns) :]
    replace = msgspec.structs.replace
    return replace(
        debate,
        turns=tuple(replace(turn, completion=c) for turn, c in zip(debate.turns, turns, strict=True)),
        summaries=tuple(replace(item, completion=c) for item, c in zip(debate.summaries, rest, strict=True)),
    )
