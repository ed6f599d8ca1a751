"""From lines to what the index holds: fast where a line keeps it, from the whole record where not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import to_builtins

from transcripts.codec import SCHEMA_VERSION, check_schema, convert, from_line, head_of
from transcripts.errors import FieldError, TranscriptError
from transcripts.files import reading
from transcripts.index.facts import FACTS_VERSION, IndexEntry, facts_of


class Head(msgspec.Struct, gc=False):
    """The fields of a line before the debate; ``facts`` may be of anybody's making."""

    schema: Any = None
    facts: IndexEntry | None = None


HEADS = msgspec.json.Decoder(Head)


def refuse_foreign(path: Path) -> None:
    """Raise TranscriptError where a shard's first line is not a debate, or not of this schema."""
    try:
        with reading(path) as file:
            line = file.line(0)
        if line.endswith(b"\n"):
            check_schema(line)
    except FieldError as error:
        raise TranscriptError(f"{path}:1: {error}") from error
    except FileNotFoundError:
        pass  # set aside or sealed in this moment
    except OSError as error:
        raise TranscriptError(f"{path}: cannot be read: {error.strerror}") from error


def read_facts(line: bytes) -> IndexEntry:
    """Return what the index holds of a line; FieldError where it is not a debate."""
    kept = _kept_facts(line)
    if kept is not None:
        return kept
    record = from_line(line)
    try:
        return convert(to_builtins(facts_of(record)), IndexEntry)
    except FieldError as error:
        raise FieldError("", f"cannot be indexed: facts{error}") from error
    except (LookupError, ValueError) as error:
        raise FieldError("", f"cannot be indexed: {error}") from error


def _kept_facts(line: bytes) -> IndexEntry | None:
    """Return the facts that stand at the head of a line, None where it has none that can be used."""
    head = head_of(line)
    try:
        found = HEADS.decode(head or b"{}")
    except (ValueError, RecursionError):
        return None
    kept = found.facts
    whole = kept is not None and kept.version == FACTS_VERSION and line.endswith(b"}\n")
    return kept if whole and found.schema == SCHEMA_VERSION else None
