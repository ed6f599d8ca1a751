"""The replays of a run (``debate replay``): what another scheme would have paid, in sum and each debate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debate.types import TurnId


@dataclass(frozen=True, slots=True)
class ReplayName:
    """A replay's folder, its overrides, debates and how many changed; ``problem``: why it cannot be read."""

    name: str
    overrides: tuple[str, ...]
    debates: int
    changed: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class StreamChange:
    """Advantages of one stream, of one persona and round or of all; shares and means as in replay.json."""

    stream: str
    turns: int
    flipped: float
    gained: float
    lost: float
    old: float
    new: float
    moved: float
    persona: str | None = None
    round: int | None = None


@dataclass(frozen=True, slots=True)
class TurnChange:
    """One turn under both schemes, by stream: rewards and advantages, (old, new), None without signal."""

    turn: TurnId
    persona: str
    rewards: Mapping[str, tuple[float | None, float | None]]
    advantages: Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class DebateReplay:
    """A debate under both schemes. ``differs``: what is stored is not what the run's own scheme gives."""

    id: str
    step: int
    problem: str
    change: float
    differs: bool
    turns: tuple[TurnChange, ...]


@dataclass(frozen=True, slots=True)
class ReplayComparison:
    """A replay: both schemes, the figures by stream and by cell, and the debates that changed most.

    ``own`` and ``scheme`` are the tables rewards, advantages and debates_per_problem.
    """

    name: str
    folder: Path
    overrides: tuple[str, ...]
    own: Mapping[str, Any]
    scheme: Mapping[str, Any]
    filter: str
    debates: int
    changed: int
    checked: int
    differ: int
    damaged_lines: int
    streams: tuple[StreamChange, ...]
    cells: tuple[StreamChange, ...]
    most_changed: tuple[tuple[str, float], ...]

    def debate(self, id: str) -> DebateReplay | None:
        """Return one debate, None where the replay did not show it."""
        raise NotImplementedError


def replays(run: Path) -> list[ReplayName]:
    """Return the replays of a run by name, those that cannot be read with the reason."""
    raise NotImplementedError


def read_replay(run: Path, name: str) -> ReplayComparison:
    """Return a replay; ReplayError, in one line, where it is not there, damaged or of a newer schema."""
    raise NotImplementedError
