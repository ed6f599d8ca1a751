"""A debate as a test fixture: one JSON file, which a test parses and scores again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from debate.files import naming, read_plain
from debate_rl.formatting import figure
from debate_rl.inspector.views.parsing import reparsed
from debate_rl.replay.scheme import close, rewards_of
from rewards import STREAMS, RewardConfig, Rewards
from rewards.types import value_of
from transcripts import Record
from transcripts.codec import decode, from_line, to_line, token_line
from transcripts.errors import FieldError
from transcripts.record import check_record, named

if TYPE_CHECKING:
    from debate_rl.config import Config

SCHEMA = 1


class _Schema(msgspec.Struct):
    fixture: Any = None


class _File(msgspec.Struct):
    """The file: ``debate`` is a line of a transcript, ``tokens`` its line of token arrays."""

    fixture: int
    source: str
    rewards: RewardConfig
    debate: msgspec.Raw
    tokens: msgspec.Raw


LARGEST_FIXTURE = 256 << 20
"""Bytes of a debate with its tokens."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """A debate, the scheme that it was scored with, and where it is from; the record has what is expected."""

    record: Record
    rewards: RewardConfig
    source: str


def save_fixture(
    path: Path, record: Record, config: Config | None = None, *, source: str = "", tokens: bool = False
) -> str:
    """Write a debate to a new file and return a test of it; ValueError where the file exists."""
    text = fixture_text(record, config, source=source, tokens=tokens)
    try:
        with naming(path), path.open("x", encoding="ascii") as file:
            file.write(text)
    except FileExistsError as error:
        raise ValueError(f"{path}: is there already; choose another name") from error
    return test_of(path)


def fixture_text(
    record: Record, config: Config | None = None, *, source: str = "", tokens: bool = False
) -> str:
    """Return a debate as the JSON of a fixture, in ASCII.

    What is expected is what was parsed and rewarded; without stored rewards, or without the scheme that
    gave them, it is what parsing and scoring give today. ``tokens``: with the record's arrays.
    """
    check_record(record)
    scheme = RewardConfig() if config is None else config.rewards.at_step(record.step)
    if record.rewards is None or config is None:
        record = replace(record, rewards=rewards_of(record, scheme))
    arrays = token_line(record.debate) if tokens else None
    content: dict[str, Any] = {
        "fixture": SCHEMA,
        "source": source,
        "rewards": scheme.model_dump(mode="json"),
        "debate": json.loads(to_line(record, 0 if arrays is not None else None)),
        "tokens": None if arrays is None else json.loads(arrays),
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def test_of(path: Path) -> str:
    """Return a test of a fixture that lies beside it."""
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in path.stem)
    return (
        "from pathlib import Path\n\n"
        "from debate_rl.inspector.views.fixture import differences, load_fixture\n\n\n"
        f"def test_{name}():\n"
        f"    fixture = load_fixture(Path(__file__).with_name({json.dumps(path.name)}))\n"
        "    assert differences(fixture) == []\n"
    )


test_of.__test__ = False  # type: ignore[attr-defined]  # pytest is not to collect it


def load_fixture(path: Path | str) -> Fixture:
    """Return the debate of a file; ValueError names file and field of what is not a fixture."""
    try:
        return _read(read_plain(Path(path), LARGEST_FIXTURE))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read(data: bytes) -> Fixture:
    schema = decode(data, _Schema).fixture
    if type(schema) is not int:
        raise FieldError("fixture", "expected a debate saved by debate inspect RUN fixture")
    if schema > SCHEMA:
        raise FieldError("fixture", f"{schema} is newer than {SCHEMA}, which this version reads")
    file = decode(data, _File)
    arrays = bytes(file.tokens)
    record = from_line(bytes(file.debate), None if arrays == b"null" else lambda _: arrays)
    check_record(record)
    return Fixture(record, file.rewards, file.source)


def differences(fixture: Fixture) -> list[str]:
    """Return what parsing and scoring give otherwise today, a line each: [] when all is as it was."""
    record = fixture.record
    rewards = rewards_of(record, fixture.rewards)
    return [*_parsed(record), *_rewarded(record, rewards)]


def _parsed(record: Record) -> Iterator[str]:
    for turn in record.debate.turns:
        for change in reparsed(record, turn):
            field = f"turn {named(turn.id)}, {change.field}"
            yield f"{field}: was {change.stored!r:.200}, is {change.now!r:.200}"


def _rewarded(record: Record, now: Rewards) -> Iterator[str]:
    for stream in STREAMS:
        before, after = getattr(record.rewards, stream, ()), getattr(now, stream)
        for turn in record.debate.turns:
            was, is_now = value_of(before, turn.id), value_of(after, turn.id)
            if not close(was, is_now):
                yield f"turn {named(turn.id)}, {stream} reward: was {figure(was)}, is {figure(is_now)}"
