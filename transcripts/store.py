"""The store: one file of JSON lines per step, transcripts/step_000012.jsonl, one debate a line."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, cast

from debate.types import Completion, Debate
from transcripts.append import LineFile, free_name
from transcripts.codec import Json, decode, encode
from transcripts.errors import FieldError, TornTailWarning, TranscriptError, TranscriptWriteError
from transcripts.migrations import SCHEMA_VERSION, migrate
from transcripts.record import Record

SHARD_NAME = re.compile(r"step_(\d{6,})\.jsonl")


class ShardWriter:
    """Appends the debates of one step to its shard, one unbuffered write each; synced when closed.

    ``tokens=False`` leaves out token ids, log-probabilities and offsets: about a tenth of the size, enough
    for rewards and advantages, not for the loss.
    """

    def __init__(self, folder: Path, step: int, *, tokens: bool = True) -> None:
        self.step, self._tokens = step, tokens
        self.path = folder / shard_name(step)
        self._file = LineFile(self.path)

    def write(self, record: Record) -> None:
        """Append one record of this step."""
        if record.step != self.step:
            raise TranscriptError(f"{self.path}: a record of step {record.step} does not belong here")
        try:
            self._file.write(to_line(record if self._tokens else without_tokens(record)))
        except FieldError as error:
            raise TranscriptError(f"{self.path}: cannot store problem {record.group}: {error}") from error

    def close(self) -> None:
        """Bring the shard to the disk."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_step(folder: Path, step: int, records: Iterable[Record], *, tokens: bool = True) -> Path:
    """Append the records to the step's shard and return its path."""
    with ShardWriter(folder, step, tokens=tokens) as writer:
        for record in records:
            writer.write(record)
    return writer.path


def shard_name(step: int) -> str:
    """Return the file name of a step.

    >>> shard_name(12)
    'step_000012.jsonl'
    """
    return f"step_{step:06d}.jsonl"


def shard_step(path: Path) -> int | None:
    """Return the step of a shard's name, None for any other file.

    >>> shard_step(Path("step_000012.jsonl")), shard_step(Path("notes.jsonl"))
    (12, None)
    """
    match = SHARD_NAME.fullmatch(path.name)
    return int(match[1]) if match else None


def shard_paths(folder: Path) -> list[Path]:
    """Return the shards of a transcripts folder, or of a run folder, by step."""
    inner = folder / "transcripts"
    found = [path for path in (inner if inner.is_dir() else folder).iterdir() if shard_step(path) is not None]
    return sorted(found, key=lambda path: shard_step(path) or 0)


def set_aside_from(folder: Path, step: int) -> list[Path]:
    """Move the shards of ``step`` and later to superseded/: a resumed run writes these steps again.

    Returns where they went; nothing is deleted.
    """
    aside = folder / "superseded"
    moved: list[Path] = []
    for path in shard_paths(folder) if folder.is_dir() else []:
        if (shard_step(path) or 0) < step:
            continue
        try:
            aside.mkdir(exist_ok=True)
            moved.append(path.rename(free_name(aside / path.name)))
        except OSError as error:
            raise TranscriptWriteError.of(error, path) from error
    return moved


def warn_torn(message: str) -> None:
    """Report a torn last line as a warning."""
    warnings.warn(message, TornTailWarning, stacklevel=4)


def read_records(path: Path | str, *, on_torn: Callable[[str], None] = warn_torn) -> Iterator[Record]:
    """Yield the records of a shard, a transcripts folder or a run folder, in the order they were written.

    A torn last line is reported to ``on_torn`` and left out. Anything else that is not a record raises
    TranscriptError with file, line and field; so does a path that is not there.
    """
    path = Path(path)
    try:
        shards = shard_paths(path) if path.is_dir() else [path]
        for shard in shards:
            yield from _read_shard(shard, on_torn)
    except OSError as error:
        raise TranscriptError(
            f"{error.filename or path}: cannot read transcripts: {error.strerror}"
        ) from error


def _read_shard(path: Path, on_torn: Callable[[str], None]) -> Iterator[Record]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield from_line(line)
            except FieldError as error:
                if error.field == "" and not line.endswith(b"\n"):
                    on_torn(
                        f"{path}:{number}: the last line was cut off while it was written; it is left out"
                    )
                else:
                    raise TranscriptError(f"{path}:{number}: {error}") from error


def to_line(record: Record) -> bytes:
    """Return the record as one line of JSON in ASCII, without newline; FieldError where it cannot be kept."""
    fields = {"schema": SCHEMA_VERSION, **cast("dict[str, Json]", encode(record, Record))}
    return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_line(line: bytes) -> Record:
    """Return the record of a line; FieldError, with an empty field where the line is no JSON at all."""
    data = _parse(line)
    if not isinstance(data, dict):
        raise FieldError("schema", "not a debate transcript: the line is no JSON object")
    return decode(migrate(data), Record)


def _parse(line: bytes) -> Json:
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
    """Return the record without token ids, log-probabilities and offsets."""
    turns = tuple(replace(turn, completion=_text_only(turn.completion)) for turn in record.debate.turns)
    summaries = tuple(replace(one, completion=_text_only(one.completion)) for one in record.debate.summaries)
    debate: Debate = replace(record.debate, turns=turns, summaries=summaries)
    return replace(record, debate=debate)


def _text_only(completion: Completion) -> Completion:
    empty: tuple[Any, ...] = ()
    return replace(completion, prompt_tokens=empty, tokens=empty, logprobs=empty, offsets=empty, forced=empty)
