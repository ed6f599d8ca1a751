"""A debate as a test fixture: one JSON file, which a test parses and scores again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rewards import RewardConfig
from transcripts import Record

if TYPE_CHECKING:
    from learner.config import Config


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
    raise NotImplementedError


def load_fixture(path: Path | str) -> Fixture:
    """Return the debate of a file; ValueError names file and field of what is none."""
    raise NotImplementedError


def differences(fixture: Fixture) -> list[str]:
    """Return what parsing and scoring give otherwise today, a line each: [] when all is as it was."""
    raise NotImplementedError
