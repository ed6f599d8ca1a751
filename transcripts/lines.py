"""One debate as one line of JSON, and back. The token arrays have a line of their own (``token_lines``)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias, cast

import orjson

from debate.policy import token_counts
from debate.types import Completion, Debate
from transcripts.codec import Json, decode
from transcripts.encoding import ARRAYS, encode
from transcripts.errors import FieldError
from transcripts.index.facts import facts_of, to_json
from transcripts.migrations import SCHEMA_VERSION, migrate
from transcripts.record import Record
from transcripts.token_lines import completions_of, join_tokens

AT, FACTS = "tokens", "facts"
"""Fields of a line beside the record's: where, in the shard of token arrays, the debate's line begins, and
what an index holds of it. They stand before the record's, of which the first is the debate."""
BEYOND = re.compile(r"[^\x00-\x7f]+")
HEAD_ENDS = b',"debate":'
"""No text can hold this: a quote within a text is written with a backslash."""
TokensAt: TypeAlias = Callable[[int], bytes]
"""Returns the token line at a place; b"" where there is none."""


def to_line(record: Record, tokens_at: int | None = None) -> bytes:
    """Return all but the token arrays as one line of JSON in ASCII, without newline.

    ``tokens_at``: where the arrays are. FieldError where a value cannot be kept.
    """
    body = record_json(record)
    head: dict[str, Json] = {"schema": SCHEMA_VERSION}
    if tokens_at is not None:
        head[AT] = tokens_at
    with suppress(LookupError, TypeError, ValueError):  # a debate like no other is not worth a loss
        head[FACTS] = cast(Json, to_json(facts_of(body)))
    return dumped(head | body)


def dumped(fields: dict[str, Json]) -> bytes:
    r"""Return JSON in ASCII, every other character as its escape.

    >>> dumped({"text": "2 × 2"})
    b'{"text":"2 \\u00d7 2"}'
    """
    try:
        line = orjson.dumps(fields)
    except TypeError:  # half characters, or a number beyond 64 bits
        return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode("ascii")
    if line.isascii():
        return line
    return BEYOND.sub(lambda run: json.dumps(run[0])[1:-1], line.decode("utf-8")).encode("ascii")


def record_json(record: Record) -> dict[str, Json]:
    """Return all but the token arrays as a line has them; FieldError where a value cannot be kept."""
    body = cast("dict[str, Json]", encode(record, Record))
    for fields, completion in zip(_completions(body), completions_of(record.debate), strict=True):
        fields["prompt_count"], fields["token_count"] = _counts(completion)
    return body


def from_line(line: bytes, tokens_at: TokensAt | None = None) -> Record:
    """Return the record of a line, with its token arrays where ``tokens_at`` finds them.

    FieldError where the line is no record, with an empty field where it is no JSON at all.
    """
    data = parse_line(line)
    if not isinstance(data, dict):
        raise FieldError("schema", "not a debate transcript: the line is no JSON object")
    fields = migrate(data)
    at = fields.pop(AT, None)
    fields.pop(FACTS, None)
    completions = _completions(fields)
    for completion in completions:
        for name in ARRAYS:
            if tokens_at is None or name not in completion:
                _leave_out(completion, name)
    if tokens_at is not None and at is not None:
        if type(at) is not int:
            raise FieldError(AT, f"expected int, got {at!r:.60}")
        _join(fields, completions, tokens_at(at))
    return decode(fields, Record)


def head_of(line: bytes) -> bytes | None:
    """Return a line's fields before the debate as JSON of their own; None where the debate stands elsewhere.

    >>> head_of(b'{"schema":5,"tokens":0,"debate":{"problem":{}}}')
    b'{"schema":5,"tokens":0}'
    """
    end = line.find(HEAD_ENDS)
    return line[:end] + b"}" if end > 0 else None


def _leave_out(completion: dict[str, Json], name: str) -> None:
    """Take away an array that is not asked for, or that has a line of its own; its length stays known."""
    inline = completion.get(name)
    count = {"prompt_tokens": "prompt_count", "tokens": "token_count"}.get(name)
    if count is not None and isinstance(inline, list) and inline:
        completion[count] = len(inline)
    completion[name] = []


def _join(fields: dict[str, Json], completions: list[dict[str, Json]], line: bytes) -> None:
    if line:
        debate = fields.get("debate")
        join_tokens(completions, parse_line(line), debate.get("seed") if isinstance(debate, dict) else None)


def _completions(fields: dict[str, Json]) -> list[dict[str, Json]]:
    """Return what looks like completions in a line's fields: of the turns, then of the summaries."""
    debate = fields.get("debate")
    lists = [debate.get(name) for name in ("turns", "summaries")] if isinstance(debate, dict) else []
    parts = [part for each in lists if isinstance(each, list) for part in each if isinstance(part, dict)]
    found = (part.get("completion") for part in parts)
    return [one for one in found if isinstance(one, dict)]


def parse_line(line: bytes) -> Json:
    """Return the JSON of a line; FieldError with an empty field where it is none."""
    try:
        return json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise FieldError("", f"not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise FieldError("", f"not a whole line of JSON: {error.msg} at character {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise FieldError("", f"not a line of ours: {error}") from error


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def without_tokens(record: Record) -> Record:
    """Return the record without token ids, log-probabilities and offsets; how many there were is kept."""
    turns = tuple(replace(turn, completion=_text_only(turn.completion)) for turn in record.debate.turns)
    summaries = tuple(replace(one, completion=_text_only(one.completion)) for one in record.debate.summaries)
    debate: Debate = replace(record.debate, turns=turns, summaries=summaries)
    return replace(record, debate=debate)


def _text_only(completion: Completion) -> Completion:
    empty: dict[str, Any] = dict.fromkeys(ARRAYS, ())
    prompt, generated = _counts(completion)
    return replace(completion, **empty, prompt_count=prompt, token_count=generated)


def _counts(completion: Completion) -> tuple[int | None, int | None]:
    """Return how many tokens prompt and reply had, None where nobody told."""
    prompt, generated = token_counts(completion)
    return prompt or completion.prompt_count, generated or completion.token_count
